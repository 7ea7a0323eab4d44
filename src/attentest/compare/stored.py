"""What a store holds that can be laid beside a published number: findings by grid point, and corpora."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from attentest.compare.papers import DEV_FROM_TRAIN
from attentest.compare.translation import Wanted
from attentest.experiments.removed_measures import current
from attentest.statistics.record import completed
from attentest.store.cell import Cell, canonical
from attentest.store.observed import can_be_observed, observed
from attentest.store.provenance import CPU, Provenance
from attentest.store.store import Store
from attentest.store.tables import from_parquet

# Mean lengths, and the column of a corpus whose lists they are of.
LISTED = {"avg_length_tokens": "tokens", "avg_words": "tokens", "avg_sentences": "sentences"}
POINT = ("experiment", "corpus", "encoder", "attention", "projection")
RESERVED_WORDS = 4  # padding, unknown, start, end: in every vocabulary and in no text


@final
@dataclass(frozen=True)
class StoredFinding:
    """One finding cell: a grid point with all its settings."""

    cell: Cell
    stored: Stored

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """How its models were made; what is not in here is the class's default.

        Where the key does not say that the models were not trained on a CPU, `trained_on` says it here.
        """
        written = self.cell.config["model"]
        return written if self.trained_on in ("", CPU) else {**written, "trained_on": self.trained_on}

    @property
    def trained_on(self) -> str:
        """Where its models were trained: see `Provenance.trained_on`."""
        return self.stored.provenance.trained_on(self.cell.key)

    def row(self, measure: str, group: str) -> dict[str, Any] | None:
        """The finding of that measure in that group, if there is one."""
        return self._named.get((measure, group))

    @cached_property
    def records(self) -> list[dict[str, Any]]:
        """Its findings by the names of their fields, with numbers that are Python's own."""
        return [{str(k): v for k, v in row.items()} for row in self.table.to_dict("records")]

    @cached_property
    def _named(self) -> dict[tuple[str, str], dict[str, Any]]:
        # Pages ask for many single rows, and to search the table for each would take longer than to read it.
        return {(row["measure"], row["group"]): row for row in reversed(self.records)}

    @cached_property
    def table(self) -> pd.DataFrame:
        """Its findings, one a row, as this version reads them."""
        return current(self.whole_table)

    @cached_property
    def whole_table(self) -> pd.DataFrame:
        """The same with measures that were removed since: what an export hands on."""
        return completed(from_parquet(self.stored.store.read(self.cell.key, "findings.parquet")))

    def rows(self) -> pd.DataFrame | None:
        """What was observed, or None where the store holds no more than the findings; read anew each time."""
        store = self.stored.store
        return observed(self.cell, store) if can_be_observed(self.cell, store) else None

    @cached_property
    def observations(self) -> list[Cell]:
        """The observations it was concluded from, one a seed, as far as the store still has them."""
        cells = self.stored.cells
        return [cells[key] for key in self.cell.inputs.values() if key in cells]

    def weights(self, seed: int) -> dict[str, list[float]]:
        """The attention of that seed's model over every text it read, by id; empty where that is not kept."""
        seen = self.stored.cells.get(self.cell.observations.get(seed, ""))
        key = "" if seen is None else seen.inputs.get("reading", "")
        if not key or not self.stored.store.holds(key, "readings.parquet"):
            return {}
        content = self.stored.store.read(key, "readings.parquet")
        table = pq.read_table(pa.BufferReader(content), columns=["id", "weights"])
        return dict(zip(table["id"].to_pylist(), table["weights"].to_pylist(), strict=True))

    @property
    def corpus_key(self) -> str | None:
        """The very texts, not only their name.

        Where every observation is lost, the texts are those of all other findings about a corpus of that
        name, if these are of one corpus.
        """
        own = (cell.inputs["corpus"] for cell in self.observations if "corpus" in cell.inputs)
        return next(own, self.stored.only_corpora.get(self.cell.config["corpus"]))

    @cached_property
    def epochs_run(self) -> list[int] | None:
        """The fewest and the most epochs that its models were trained, where the store still knows."""
        models = [cell.inputs["model"] for cell in self.observations if "model" in cell.inputs]
        known = [epochs for key in models if (epochs := self.stored.epochs(key)) is not None]
        return [min(known), max(known)] if known else None


@final
@dataclass(frozen=True)
class StoredText:
    """The words of one text, and of the question put to it."""

    tokens: list[str]
    query: list[str]
    rationale: list[int] = field(default_factory=list)  # the places that decide, by whoever knows
    sentences: list[int] = field(default_factory=list)  # where each begins


@final
@dataclass(frozen=True)
class StoredCorpus:
    """One corpus cell."""

    cell: Cell
    stored: Stored

    @cached_property
    def about(self) -> dict[str, Any]:
        """Its labels, whether it asks questions, its counts."""
        return json.loads(self.stored.store.read(self.cell.key, "corpus.json"))

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Texts per split and label."""
        return self.about["counts"]

    def words(self, ids: Iterable[str]) -> dict[str, StoredText] | None:
        """The words of these texts by id; None where the store was passed on without them."""
        if not self.stored.store.holds(self.cell.key, "examples.parquet"):
            return None
        content = self.stored.store.read(self.cell.key, "examples.parquet")
        table = pq.read_table(pa.BufferReader(content), columns=["id", "tokens", "query"])
        found = table.filter(
            pc.is_in(table["id"], value_set=pa.array(list(ids), type=pa.string()))
        ).to_pylist()
        return {row["id"]: StoredText(row["tokens"] or [], row["query"] or []) for row in found}

    @cached_property
    def test(self) -> dict[str, StoredText] | None:
        """The texts that models are asked about, by id and in their order; None where they are not here."""
        if not self.stored.store.holds(self.cell.key, "examples.parquet"):
            return None
        content = self.stored.store.read(self.cell.key, "examples.parquet")
        columns = ["id", "split", "tokens", "query", "rationale", "sentences"]
        table = pq.read_table(pa.BufferReader(content), columns=columns)
        lists = ("tokens", "query", "rationale", "sentences")
        found = table.filter(pc.equal(table["split"], "test")).to_pylist()
        return {row["id"]: StoredText(**{name: row[name] or [] for name in lists}) for row in found}

    def size(self, measure: str, label: str) -> float | None:
        """One of the sizes the papers print; None where the store does not say."""
        if measure in LISTED:
            length = self._mean_length(LISTED[measure])
            return self._told(measure) if length is None else length
        counted = {
            "vocab_size": lambda: self._vocabulary,
            "num_classes": lambda: len(self.about["labels"]),
            "train_size": lambda: self.texts("train", label),
            "test_size": lambda: self.texts("test", label),
            "train_plus_dev_size": lambda: self._count(("train", "dev"), label),
        }
        found = counted[measure]()
        return self._told(measure) if found is None else float(found)

    def _told(self, measure: str) -> float | None:
        """The size that came with an imported corpus, whose texts are elsewhere."""
        return self.stored.about[self.cell.key].get("sizes", {}).get(measure)

    def texts(self, split: str, label: str = "") -> int | None:
        """How many texts the paper would have counted; None where there is no such label."""
        both = split == "train" and self.cell.config["name"] in DEV_FROM_TRAIN
        return self._count(("train", "dev") if both else (split,), label)

    def _count(self, splits: Iterable[str], label: str) -> int | None:
        found = [n for each in splits for name, n in self.counts[each].items() if label in ("", name)]
        return sum(found) if found else None

    def _mean_length(self, column: str) -> float | None:
        """Tokens or sentences a text, over all splits; a store may have been passed on without the texts."""
        if not self.stored.store.holds(self.cell.key, "examples.parquet"):
            return None
        content = self.stored.store.read(self.cell.key, "examples.parquet")
        lists = pq.read_table(pa.BufferReader(content), columns=[column])[column]
        return pc.mean(pc.list_value_length(lists)).as_py()

    @cached_property
    def _vocabulary(self) -> float | None:
        """The words that models trained on it know: they carry the list, so nothing is counted again."""
        store = self.stored.store
        for key, cell in self.stored.cells.items():
            trained_on_it = cell.stage == "model" and cell.inputs.get("corpus") == self.cell.key
            if trained_on_it and store.holds(key, "vocabulary.json"):
                return float(len(json.loads(store.read(key, "vocabulary.json"))) - RESERVED_WORDS)
        return None


@final
class Stored:
    """The cells of a store, their descriptions read once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.kept: dict[str, list[dict[str, Any]]] = {}  # few numbers from many rows, by their finding
        self.about = store.descriptions()
        self.provenance = Provenance(self.about.get)
        self.cells = {key: Cell.from_json(about) for key, about in self.about.items()}
        self.seconds = {key: float(about.get("seconds", math.nan)) for key, about in self.about.items()}
        self.every = _latest(
            StoredFinding(cell, self)
            for key, cell in self.cells.items()
            if cell.stage == "finding" and store.holds(key, "findings.parquet")
        )
        self._corpora = [
            StoredCorpus(cell, self)
            for key, cell in self.cells.items()
            if cell.stage == "corpus" and store.holds(key, "corpus.json")
        ]

    @cached_property
    def only_corpora(self) -> dict[str, str]:
        """The corpus cell of each name that all findings are about, as far as their observations are kept."""
        found: dict[str, set[str]] = defaultdict(set)
        for cell in self.cells.values():
            if cell.stage == "finding":
                seen = [self.cells[key] for key in cell.inputs.values() if key in self.cells]
                found[cell.config["corpus"]] |= {o.inputs["corpus"] for o in seen if "corpus" in o.inputs}
        return {name: keys.pop() for name, keys in found.items() if len(keys) == 1}

    def findings(self, wanted: Wanted, corpus: str) -> list[StoredFinding]:
        """Every finding cell at that grid point: one for each way its models were made, corrected first."""
        point = {"experiment": wanted.experiment, "corpus": corpus, "encoder": wanted.encoder}
        point |= {"attention": wanted.attention, "projection": wanted.projection}
        found = [
            finding
            for finding in self._by_point.get(canonical(point), ())
            if wanted.parameters.items() <= finding.cell.config["parameters"].items()
        ]
        return sorted(found, key=lambda finding: finding.cell.config["mode"] != "corrected")

    @cached_property
    def _by_point(self) -> dict[str, list[StoredFinding]]:
        """All findings by experiment and grid point: a comparison asks for hundreds of them."""
        found: dict[str, list[StoredFinding]] = defaultdict(list)
        for finding in self.every:
            point = {name: finding.cell.config.get(name) for name in POINT}
            found[canonical(point)].append(finding)
        return dict(found)

    def epochs(self, model: str) -> int | None:
        """How many epochs the model was trained; None where neither its record nor a note says so."""
        if self.store.holds(model, "training.json"):
            return len(json.loads(self.store.read(model, "training.json"))["history"])
        return self.about.get(model, {}).get("epochs")

    def corpora(self, name: str) -> list[StoredCorpus]:
        """Every corpus cell of that name."""
        return [corpus for corpus in self._corpora if corpus.cell.config["name"] == name]

    def corpus(self, key: str | None) -> StoredCorpus | None:
        """The corpus of that key, if it is still there."""
        return next((corpus for corpus in self._corpora if corpus.cell.key == key), None)


def _latest(findings: Iterable[StoredFinding]) -> list[StoredFinding]:
    """Of those that differ in nothing but seeds and versions the newest, and of these the one of most seeds.

    The version comes first: it changes when the numbers of the old one should no longer be read.
    """
    best: dict[str, tuple[tuple[int, ...], StoredFinding]] = {}
    for finding in findings:
        made = {"config": dict(finding.cell.config), "corpus": finding.corpus_key}
        same = canonical({**made, "trained on": finding.trained_on or CPU})
        observed = max((cell.version for cell in finding.observations), default=0)
        rank = (finding.cell.version, observed, len(finding.cell.inputs))
        if same not in best or rank > best[same][0]:
            best[same] = rank, finding
    return [finding for _, finding in best.values()]
