"""Planning: from names to cells. What a cell needs is itself a cell, down to the corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, final

from attentest.bench.corpora import (
    OUTSIDE,
    check_is_canonical,
    check_may_be_stored,
    corpus_cell,
    digest_of,
    texts_outside,
    traits_of,
)
from attentest.claims.claims import AXES, Claim
from attentest.corpus.vectors import fingerprint, vector_file, width
from attentest.corpus.word2vec import check_gensim, width_of
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.observers import experiment
from attentest.model.config import ModelConfig
from attentest.model.losses import Loss
from attentest.model.networks.random_weights import RANDOM
from attentest.model.protocol import resolved
from attentest.model.training.building import random_scale
from attentest.model.training.provenance import config_of, placed
from attentest.model.training.tuning import candidates, named, settled
from attentest.store.cell import Cell, seed_role
from attentest.store.checking import fault
from attentest.store.provenance import Provenance
from attentest.store.store import Store
from attentest.studies.recipe import Study

READING_VERSION = 1
MODEL_VERSION = 1
ALL_SPLITS = ("train", "dev", "test")


@final
@dataclass(frozen=True)
class Point:
    """One point of a study's grid; None where the study does not vary a setting."""

    corpus: str
    encoder: str
    attention: str
    projection: str
    vectors: str | None = None
    embedding: int | None = None

    @property
    def axes(self) -> dict[str, str]:
        """What a finding is filed under; word vectors are among the settings of its models."""
        return {axis: getattr(self, axis) for axis in AXES}

    @property
    def settings(self) -> dict[str, Any]:
        """What the point says of its models."""
        return {name: value for name, value in asdict(self).items() if name != "corpus" and value is not None}


def file_of_vectors(vectors: str, data_dir: str | Path | None) -> Path | None:
    """The file that the setting names; None where vectors are made here. What cannot be had is refused."""
    if vectors.startswith("word2vec"):
        width_of(vectors, 1)
        check_gensim()
    elif vectors.startswith("random("):
        random_scale(vectors)
    if vectors.startswith(("word2vec", "random")):
        return None
    path = vector_file(vectors, data_dir).resolve()
    width(path)
    return path


@final
class Planner:
    """Collects cells; the same cell asked for twice is planned once.

    `device`, cpu or cuda, is where the models will be trained, which their keys say.
    """

    def __init__(
        self,
        store: Store,
        *,
        device: str = "cpu",
        data_dir: str | None = None,
        include_text: bool = False,
    ) -> None:
        self.store, self.device = store, device
        self.data_dir, self.include_text = data_dir, include_text
        self.cells: dict[str, Cell] = {}
        self._found: dict[tuple[str, tuple[str, ...]], str] = {}

    def add(self, cell: Cell) -> Cell:
        """Remember the cell."""
        return self.cells.setdefault(cell.key, cell)

    def corpus(self, name: str) -> Cell:
        """The prepared corpus; credentialed texts enter a store only if that is asked for."""
        if not self.include_text:
            check_may_be_stored(name)
        return self.add(corpus_cell(name, data_dir=self.data_dir))

    def resolve(self, config: ModelConfig, corpus: Cell) -> tuple[ModelConfig, dict[str, str]]:
        """The configuration with everything written out, and where its word vectors are."""
        where = {}
        if path := file_of_vectors(config.vectors, self.data_dir):
            config = replace(config, vectors=f"file:{fingerprint(path)}", embedding=width(path))
            where["vectors"] = str(path)
        traits = traits_of(corpus, self.store)
        full = resolved(
            config, family=traits["family"], classes=len(traits["labels"]), has_query=traits["has_query"]
        )
        return placed(full, self.device), where

    def model(self, config: ModelConfig, corpus: Cell, where: Mapping[str, str]) -> Cell:
        """A trained model of a resolved configuration; of several rates, each one's, and then the choice."""
        config = placed(settled(config), self.device)
        inputs = {"corpus": corpus.key}
        if config.guide and config.guide != RANDOM:  # drawn with the model, and no cell
            inputs["guide"] = config.guide
        if config.start_from:
            inputs["start"] = config.start_from
        if imitated := Loss.parse(config.loss).imitated:
            inputs["imitated"] = imitated
        for each in candidates(config):
            inputs[named(each)] = self.model(each, corpus, where).key
        return self.add(
            Cell(
                stage="model",
                version=MODEL_VERSION,
                config=config.spelled(),
                inputs=inputs,
                where={**where, "corpus": corpus.config["name"]},
            )
        )

    def reading(
        self, model: Cell, corpus: Cell, splits: tuple[str, ...] = ("test",), *, scores: bool = False
    ) -> Cell:
        """The model's logits and weights on some splits, with `scores` also what the weights were made of."""
        inputs = {"model": model.key, "corpus": corpus.key}
        config: dict[str, Any] = {"splits": list(splits)}
        if scores:
            config["scores"] = True
        return self.add(Cell(stage="reading", version=READING_VERSION, config=config, inputs=inputs))

    def observation(
        self, step: AbstractExperiment, config: ModelConfig, corpus: Cell, where: Mapping[str, str]
    ) -> Cell:
        """What the experiment sees of this model and the siblings it asks for."""
        subject = self.model(config, corpus, where)
        inputs = {"corpus": corpus.key, "model": subject.key}
        if step.reads:
            inputs["reading"] = self.reading(subject, corpus).key
        known = {"subject": subject}
        for name, wanted in step.siblings(config).items():
            known[name] = self.model(self._bound(wanted, known, corpus), corpus, where)
            inputs[f"sibling.{name}"] = known[name].key
        about, texts = spelled(step), self._outside(step, corpus)
        if texts:
            about[OUTSIDE] = digest_of(texts)
        told = {OUTSIDE: texts} if texts else {}
        return self.add(
            Cell(stage="observation", version=step.version, config=about, inputs=inputs, where=told)
        )

    def _outside(self, step: AbstractExperiment, corpus: Cell) -> str:
        """The texts that the step reads beyond its corpus, looked up once."""
        ids = step.outside(corpus.config["name"])
        asked = corpus.key, ids
        if asked not in self._found:
            self._found[asked] = texts_outside(ids, corpus, self.store)
        return self._found[asked]

    def _bound(self, wanted: ModelConfig, known: Mapping[str, Cell], corpus: Cell) -> ModelConfig:
        """A sibling may name the subject, or a sibling before it, as its guide, start or model to imitate."""
        if wanted.guide and wanted.guide in known:
            guide = self.reading(known[wanted.guide], corpus, ALL_SPLITS)
            wanted = replace(wanted, guide=guide.key)
        if wanted.start_from and wanted.start_from in known:
            wanted = replace(wanted, start_from=known[wanted.start_from].key)
        loss = Loss.parse(wanted.loss)
        if loss.imitated in known:
            base = self.reading(known[loss.imitated], corpus, ALL_SPLITS, scores=True)
            wanted = replace(wanted, loss=loss.bound(base.key))
        return wanted

    def study(self, study: Study) -> list[Cell]:
        """Every finding the study asks for; what they need is planned with them."""
        for name in study.grid.corpus:
            check_is_canonical(name)
        for claim in study.claim:
            Claim(**claim.model_dump())  # a rule that cannot be read is refused before anything runs
        steps = [(step, experiment(step.name, step.mode, step.parameters)) for step in study.experiment]
        found = [
            self.finding(asked, point, study.model, study.seeds)
            for point in points(study)
            for step, asked in steps
            if step.is_about(point.axes)
        ]
        # A vector file has one width, so asking for it at several widths is asking twice.
        return list({cell.key: cell for cell in found}.values())

    def finding(
        self, step: AbstractExperiment, point: Point, settings: Mapping[str, Any], seeds: int
    ) -> Cell:
        """What the rows of all seeds say."""
        base = config_of({**settings, **point.settings})
        corpus = self.corpus(point.corpus)
        inputs = {}
        shared: dict[str, Any] = {}
        for seed in range(seeds):
            config, where = self.resolve(replace(base, seed=seed), corpus)
            inputs[seed_role(seed)] = self.observation(step, config, corpus, where).key
            shared = {k: v for k, v in config.spelled().items() if k != "seed"}
        about = spelled(step) | point.axes | {"model": shared}
        version = CONCLUSIONS[step.name].version
        return self.add(Cell(stage="finding", version=version, config=about, inputs=inputs))

    def missing(self, targets: list[Cell]) -> dict[str, Cell]:
        """The cells that must be done for the targets to exist, inputs before what needs them.

        Inputs of a cell that is done may be absent: a store without model weights still counts. Models that
        a GPU trained under the key of a CPU are refused, and so is whatever was made from them. A cell of the
        plan that is damaged is set aside here, and one that was set aside must be done again in any case.
        """
        needed: dict[str, Cell] = {}
        for key in self.cells.keys() & set(self.store.folder.names("cells")) - self.store.left_out:
            if (damage := fault(self.store, key)) is not None:
                self.store.leave_out(damage, at_once=True)
        provenance = Provenance.of(self.store)

        def need(key: str) -> None:
            if key in needed:
                return
            provenance.check_usable(key)
            if self.store.is_whole(key):
                return
            cell = self.cells[key] if key in self.cells else self.store.cell(key)
            for other in cell.inputs.values():
                need(other)
            needed[key] = cell

        for key in [*(target.key for target in targets), *sorted(self.store.set_aside() & self.cells.keys())]:
            need(key)
        return needed


def points(study: Study) -> list[Point]:
    """The study's grid, corpora outermost."""
    grid = study.grid
    widths = [None if width == "default" else width for width in grid.embedding or ["default"]]
    vectors: Sequence[str | None] = grid.vectors or [None]
    every = product(grid.corpus, grid.encoder, grid.attention, grid.projection, vectors, widths)
    return [Point(*names) for names in dict.fromkeys(every)]  # a name written twice is one name


def spelled(step: AbstractExperiment) -> dict[str, Any]:
    """An experiment as it enters a key."""
    unsaid = {name for name, unchanged in step.later.items() if getattr(step, name) == unchanged}
    parameters = {k: v for k, v in asdict(step).items() if k not in {"mode", *unsaid}}
    return {"experiment": step.name, "mode": step.mode, "parameters": parameters}
