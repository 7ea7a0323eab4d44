"""Doing one cell, whatever its stage: read its inputs from the store, compute, write it whole."""

from __future__ import annotations

import json
import math
import os
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load as load_tensors

from attentest.bench.checkpoint import StoreCheckpoint, interrupts_between_steps
from attentest.bench.conclusion import conclude, generator
from attentest.bench.corpora import planned_outside, prepare_corpus, stored_corpus
from attentest.bench.engine.contract import Event, OnEvent
from attentest.bench.subjects import Stored, load_model, reading_rows, said_in
from attentest.corpus.example import Corpus
from attentest.corpus.vectors import fingerprint, load_vectors
from attentest.corpus.vocabulary import Vocabulary
from attentest.corpus.word2vec import train_vectors
from attentest.experiments.contract import Subject
from attentest.experiments.observers import experiment
from attentest.model.config import ModelConfig
from attentest.model.constructions import is_constructed
from attentest.model.network import AttentionModel
from attentest.model.seam import Model, network_of
from attentest.model.training.building import build, build_network
from attentest.model.training.files import to_files
from attentest.model.training.finite import check_finite
from attentest.model.training.imitation import Said
from attentest.model.training.loop import Progress, Record, Training
from attentest.model.training.provenance import parameters_digest
from attentest.model.training.tuning import best, candidates, merit, named
from attentest.refusal import Refusal
from attentest.store.about import spelled
from attentest.store.cell import Cell, short
from attentest.store.provenance import Provenance
from attentest.store.store import Store
from attentest.store.tables import from_parquet, to_parquet

Report = Callable[[dict[str, Any]], None]
REPORT_EVERY = 0.2  # seconds between two reports of progress


class Made(NamedTuple):
    """The files of a cell, and for its record the digests of the parameters that it is, or was made from."""

    files: dict[str, bytes]
    parameters: str | dict[str, str] | None = None


def untrained(
    cell: Cell, store: Store, device: str
) -> tuple[AttentionModel, Corpus, Mapping[str, Said] | None]:
    """The model as its training begins, its corpus, and what an imitated base said."""
    config = ModelConfig.of(cell.config)
    corpus, vocabulary = stored_corpus(store, cell.inputs["corpus"])
    vectors = guide = start = base = None
    if config.vectors.startswith("file:"):
        vectors = planned_vectors(cell, vocabulary)
    elif config.vectors.startswith("word2vec"):
        assert config.embedding is not None
        vectors = train_vectors(corpus, vocabulary, width=config.embedding, seed=config.seed)
    if "guide" in cell.inputs:
        rows = from_parquet(store.read(cell.inputs["guide"], "readings.parquet"))
        guide = {row["id"]: np.array(row["weights"]) for row in rows.to_dict("records")}
    if "start" in cell.inputs:
        start = load_tensors(store.read(cell.inputs["start"], "model.safetensors"))
    if "imitated" in cell.inputs:
        base = said_in(store, cell.inputs["imitated"])
    model = build_network(config, corpus, vocabulary, vectors=vectors, guide=guide, start=start).to(device)
    return model, corpus, base


def train_model(cell: Cell, store: Store, device: str, report: Report) -> Made:
    """Build and train; goes on where a killed run stopped."""
    config = ModelConfig.of(cell.config)
    if candidates(config):
        return chosen_model(cell, store, device)
    if is_constructed(config.encoder):
        constructed = build(config, *stored_corpus(store, cell.inputs["corpus"]))
        return made_model(constructed.to(device), asdict(Record()))
    model, corpus, base = untrained(cell, store, device)
    with interrupts_between_steps() as let_go:
        training = Training(
            model,
            corpus,
            base=base,
            checkpoint=StoreCheckpoint(store, cell.key, device),
            on_progress=_sometimes(report, let_go),
            save_every=seconds_between_saves(),
        )
        record = training.run()
    return trained_model(model, asdict(record))


def trained_model(model: Model, record: Mapping[str, Any]) -> Made:
    """A model that was trained, where it came to numbers."""
    check_finite(model, record)
    return made_model(model, record)


def made_model(model: Model, record: Mapping[str, Any]) -> Made:
    """A model with the record of its training."""
    files = {"training.json": spelled(record), **to_files(model)}
    return Made(files, parameters_digest(model.state_dict()))


def chosen_model(cell: Cell, store: Store, device: str) -> Made:
    """Of a model trained at several rates, the files of the one that dev prefers; what each was worth."""
    corpus, _ = stored_corpus(store, cell.inputs["corpus"])
    base = said_in(store, cell.inputs["imitated"]) if "imitated" in cell.inputs else None
    names = [named(each) for each in candidates(ModelConfig.of(cell.config))]
    tried = {name: cell.inputs[name] for name in names}  # a plan has its inputs sorted, equals are not
    models = [load_model(store, key, device) for key in tried.values()]
    records = [json.loads(store.read(key, "training.json")) for key in tried.values()]
    merits = [
        merit(network_of(model, "a choice between rates"), record["scores"]["dev"], corpus, base)
        for model, record in zip(models, records, strict=True)
    ]
    kept = best(merits)
    worth = dict(zip(names, merits, strict=True))
    return trained_model(models[kept], {**records[kept], "rates": worth})


def seconds_between_saves() -> float:
    """Five, or what the environment says."""
    said = os.environ.get("ATTENTEST_CHECKPOINT_SECONDS", "5")
    try:
        seconds = float(said)
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise Refusal(
            "ATTENTEST_CHECKPOINT_SECONDS",
            got=repr(said),
            needs="a number of seconds, zero or more",
            way_out="Unset it; five is the default.",
        )
    return seconds


def planned_vectors(cell: Cell, vocabulary: Vocabulary) -> np.ndarray:
    """The vectors the plan means, which must still be the file it was made with."""
    path = Path(cell.where["vectors"])
    if f"file:{fingerprint(path)}" != cell.config["vectors"]:
        raise Refusal(
            f"word vectors {path}",
            got="another content than when this was planned",
            needs="the file as it was",
            way_out="Plan again: other vectors are another model.",
        )
    return load_vectors(path, vocabulary)[0]


def _sometimes(report: Report, always: Callable[[], None]) -> Callable[[Progress], None]:
    last = 0.0

    def on_progress(progress: Progress) -> None:
        nonlocal last
        always()
        if time.monotonic() - last > REPORT_EVERY:
            last = time.monotonic()
            report(asdict(progress))

    return on_progress


def read_model(cell: Cell, store: Store, device: str, report: Report) -> Made:
    """Logits and weights of every text of the splits."""
    corpus, _ = stored_corpus(store, cell.inputs["corpus"])
    model = load_model(store, cell.inputs["model"], device)
    scores = cell.config.get("scores", False)
    rows = pd.concat([reading_rows(model, corpus, split, scores=scores) for split in cell.config["splits"]])
    digests = {"trained": parameters_digest(model.state_dict())}
    return Made({"readings.parquet": to_parquet(rows)}, digests)


def observe(cell: Cell, store: Store, device: str, report: Report) -> Made:
    """Run the experiment; its draws depend on the cell's key and nothing else."""
    corpus, _ = stored_corpus(store, cell.inputs["corpus"])
    sources = Stored(cell, store, device)
    step = experiment(cell.config["experiment"], cell.config["mode"], cell.config["parameters"])
    subject = Subject(corpus, sources.config("trained"), sources, outside=planned_outside(cell))
    rows = list(step.observe(subject, generator(cell.key)))
    return Made({"rows.parquet": to_parquet(rows)}, sources.digests())


def find(cell: Cell, store: Store, device: str, report: Report) -> Made:
    """Conclude."""
    return Made({"findings.parquet": to_parquet(conclude(cell, store))})


STAGES: Mapping[str, Callable[[Cell, Store, str, Report], Made]] = {
    "model": train_model,
    "reading": read_model,
    "observation": observe,
    "finding": find,
}


def do(key: str, store: Store, device: str, report: Report = lambda detail: None) -> None:
    """Make the planned cell exist; one that is there already is left alone."""
    if store.is_whole(key):
        return
    cell = store.cell(key)
    begun = time.monotonic()
    if cell.stage == "corpus":
        prepare_corpus(cell, store)
        return
    check_inputs(cell, store)
    device = device_of(cell, device)
    made = STAGES[cell.stage](cell, store, device, report)
    store.write(cell, made.files, notes_on(made, device, seconds=time.monotonic() - begun))


def notes_on(made: Made, device: str, *, seconds: float) -> dict[str, Any]:
    """What the record of a cell says of how it was made: nothing of this is in its key or its files."""
    notes = {"seconds": round(seconds, 3), "device": device, "torch": torch.__version__}
    return notes if made.parameters is None else {**notes, "parameters": made.parameters}


def check_inputs(cell: Cell, store: Store) -> None:
    """Refuse to make anything from models that a GPU trained under the keys of a CPU."""
    provenance = Provenance.of(store)
    for key in cell.inputs.values():
        provenance.check_usable(key)


def device_of(cell: Cell, here: str) -> str:
    """The device for this cell: of a model the one that its key says, of anything else the one at hand."""
    if cell.stage != "model":
        return here
    said = ModelConfig.of(cell.config).trained_on
    if said == "cuda" and here != "cuda":
        raise Refusal(
            f"model cell {short(cell.key)}",
            got=f"the device {here}",
            needs="a CUDA device: its key says trained_on = cuda",
            way_out="Run it where there is a GPU, or plan with --device cpu, which is another key.",
        )
    return said


def attempt(key: str, store: Store, device: str, on_event: OnEvent) -> None:
    """`do`, with what happened told as events: a failure is kept in the store, the study goes on.

    A cell that found no memory on the GPU is no failure of its own while other cells hold some.
    """
    try:
        do(key, store, device, lambda detail: on_event(Event("progress", key, detail)))
    except Refusal as refusal:
        on_event(Event("refused", key, refusal.as_json()))
    except Exception as error:  # noqa: BLE001  the engine's edge: whatever a cell raises is its failure
        trace = traceback.format_exc()
        said = {"error": f"{type(error).__name__}: {error}", "traceback": trace}
        if lacks_memory(error):
            on_event(Event("postponed", key, said))
            return
        store.fail(key, said["error"], trace)
        on_event(Event("failed", key, said))
    else:
        on_event(Event("done", key))


def lacks_memory(error: BaseException | None) -> bool:
    """Whether it came of this; a recording that finds no memory ends in another error, about recordings."""
    if error is None or isinstance(error, torch.OutOfMemoryError):
        return error is not None
    return lacks_memory(error.__context__)


def best_device(asked: str) -> str:
    """`auto` is a GPU where there is one; asking for one that is not there is refused."""
    if asked == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if asked not in ("cpu", "cuda"):
        raise Refusal("device", got=repr(asked), needs="auto, cpu or cuda", way_out="auto is the default.")
    if asked == "cuda" and not torch.cuda.is_available():
        raise Refusal(
            "device cuda",
            got="a torch without a GPU to use",
            needs="a CUDA device and a torch built for it",
            way_out="Use --device cpu, or install a CUDA build of torch.",
        )
    return asked
