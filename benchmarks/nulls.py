"""Importances under many attentions: one pass for all beside one for each; and what a whole study pays."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import replace

import torch

from attentest.bench.corpora import stored_corpus
from attentest.bench.subjects import Stored
from attentest.bench.verbs import run_study
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.given_attention import GivenAttention
from attentest.evidence.importances.gradient_under import gradients_under
from attentest.experiments.contract import Subject
from attentest.experiments.importance.observe import Importance, Importances, agreement
from attentest.experiments.shared.controls import beside_controls
from attentest.model.batch import buckets
from attentest.model.network import AttentionModel
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import Reading
from attentest.store.cell import Cell
from attentest.store.store import Store
from benchmarks.made import SHORT, Row, bench, seconds

DRAWS = 40  # twenty of each null


def plain_erasure(model: AttentionModel, reading: Reading, given: GivenAttention) -> None:
    """Every shortened text is encoded again for every draw."""
    for one in range(DRAWS):
        drawn = GivenAttention(given.weights[:, one : one + 1], given.scores[:, one : one + 1])
        leave_one_out(model, reading, given=drawn)


def rows_of(encoder: str) -> list[Row]:
    """Gradient and leave-one-out under 40 permutations of each text's weights."""
    model, _, read = bench(SHORT, encoder)
    some = [
        replace(reading, embeddings=model.embedding(reading.batch.tokens).detach()) for reading in read[:4]
    ]
    given = [GivenAttention.permuted(each, DRAWS, rng=torch.Generator().manual_seed(0)) for each in some]
    pairs = list(zip(some, given, strict=True))

    def gradient(road: str) -> float:
        return seconds(lambda: [gradients_under(model, r, g.weights, road=road) for r, g in pairs], 2)

    count = sum(len(reading.mask) for reading in some)
    about = f"under {DRAWS} attentions, {encoder}, {count} texts of 18 tokens"
    with torch.no_grad():
        loo = [
            seconds(lambda: [plain_erasure(model, r, g) for r, g in pairs], 1),
            seconds(lambda: [leave_one_out(model, r, given=g) for r, g in pairs], 2),
        ]
    return [
        (f"gradient {about}", gradient("each draw"), gradient("jacobian"), "the Jacobian of the values"),
        (f"leave-one-out {about}", *loo, "encoding the shortened texts once"),
    ]


def first_edition(cell: Cell, store: Store) -> float:
    """Seconds of what an observation of `importance` did before: one reading, and the null by trade."""
    sources = Stored(cell, store, "cpu")
    corpus, _ = stored_corpus(store, cell.inputs["corpus"])
    begun = time.perf_counter()
    for subject in beside_controls(Subject(corpus, sources.config("trained"), sources)):
        for rows in buckets(subject.texts.lengths, TEXTS, tokens=TOKENS):
            own = Importances.of(subject.model, subject.texts.batch(rows))
            agreement(own, 10)
            Importance().traded(subject.model, own, torch.Generator().manual_seed(0))
    return time.perf_counter() - begun


def study() -> Row | None:
    """The whole grid of Jain & Wallace on SST, one seed, with controls and training, two workers."""
    if not os.environ.get("ATTENTEST_DATA"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        run_study("jain-wallace-2019", folder, corpora=["sst"], seeds=1, device="cpu", workers=2)
        store = Store(folder)
        cells = {key: store.cell(key) for key in store.done()}
        spent = {key: float(store.about(key).get("seconds", 0.0)) for key in cells}
        asked = [
            key
            for key, cell in cells.items()
            if cell.stage == "observation" and cell.config["experiment"] == "importance"
        ]
        before = sum(spent.values()) + sum(first_edition(cells[key], store) - spent[key] for key in asked)
    name = "Jain & Wallace on SST, six models, one seed, with controls and training, beside the old null"
    return (
        name,
        before,
        sum(spent.values()),
        "training; at least 0.67x is asked for",
    )


def rows() -> list[Row | None]:
    return [*rows_of("bilstm"), *rows_of("cnn"), study()]
