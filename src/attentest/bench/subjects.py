"""Readings, models and subjects, from cells of the store."""

from __future__ import annotations

from functools import lru_cache
from typing import final

import pandas as pd

from attentest.bench.corpora import stored_corpus
from attentest.corpus.example import Corpus, Split
from attentest.experiments.contract import AbstractSources
from attentest.model.config import ModelConfig
from attentest.model.seam import Model
from attentest.model.text_rows import text_rows
from attentest.model.training.files import from_files
from attentest.model.training.imitation import Said, said
from attentest.model.training.provenance import parameters_digest
from attentest.store.cell import Cell, short
from attentest.store.store import Store
from attentest.store.tables import from_parquet


def load_model(store: Store, key: str, device: str) -> Model:
    """A model from its cell."""
    return from_files(lambda name: store.read(key, name), f"cell {short(key)}").to(device)


def reading_rows(model: Model, corpus: Corpus, split: Split, *, scores: bool = False) -> pd.DataFrame:
    """id, split, label, logits, weights (and scores): one row a text, in the order of the split."""
    return pd.DataFrame(text_rows(model, corpus, split, scores=scores))


@lru_cache(maxsize=8)
def said_in(store: Store, reading: str) -> dict[str, Said]:
    """What the model of a reading cell said of its texts, for others to imitate; a few stay in memory."""
    rows = from_parquet(store.read(reading, "readings.parquet")).to_dict("records")
    base = ModelConfig.of(store.cell(store.cell(reading).inputs["model"]).config)
    return said(rows, base.projection)


@final
class Stored(AbstractSources):
    """A subject's parts, from cells."""

    def __init__(self, cell: Cell, store: Store, device: str) -> None:
        self.store, self.device = store, device
        self.loaded: dict[str, str] = {}  # role -> digest of the parameters
        self.keys = {"trained": cell.inputs["model"]}
        self.reading = cell.inputs.get("reading", "")  # where the experiment asks for one
        self.corpus = cell.inputs["corpus"]
        for role, key in cell.inputs.items():
            if role.startswith("sibling."):
                self.keys[role.removeprefix("sibling.")] = key
        self.siblings = {name: self.config(name) for name in self.keys if name != "trained"}

    def config(self, name: str) -> ModelConfig:
        """The configuration of the subject or a sibling."""
        return ModelConfig.of(self.store.cell(self.keys[name]).config)

    def model(self, name: str) -> Model:
        """The model, loaded."""
        model = load_model(self.store, self.keys[name], self.device)
        self.loaded[name] = parameters_digest(model.state_dict())
        return model

    def digests(self) -> dict[str, str]:
        """The digest of every model by its role; of one that was not loaded, what its own cell records."""
        told = {
            name: self.store.about(key).get("parameters")
            for name, key in self.keys.items()
            if name not in self.loaded and self.store.has(key)
        }
        return {name: digest for name, digest in told.items() if digest} | self.loaded

    def readings(self, name: str) -> pd.DataFrame:
        """The subject's readings are stored; a sibling's are taken now."""
        if name == "trained":
            return from_parquet(self.store.read(self.reading, "readings.parquet"))
        return reading_rows(self.model(name), stored_corpus(self.store, self.corpus)[0], "test")
