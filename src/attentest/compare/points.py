"""Grid points: everything a store holds about one way of making a model for one corpus."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from attentest import notebook
from attentest.claims.claims import AXES
from attentest.compare.stored import Stored, StoredCorpus, StoredFinding
from attentest.experiments.catalogue import CONCLUSIONS
from attentest.store.cell import canonical
from attentest.store.provenance import CPU

TOLERANCES = (0.01, 0.05)  # of the output, without a query and with one, as the adversary has them


@final
@dataclass(frozen=True, eq=False)
class GridPoint:
    """One corpus and one kind of model with its settings; findings of several experiments."""

    findings: Sequence[StoredFinding]
    file: str  # the page about it

    @property
    def axes(self) -> dict[str, str]:
        """Corpus, encoder, attention, projection."""
        return {axis: self.findings[0].cell.config[axis] for axis in AXES}

    @property
    def corpus(self) -> str:
        """The corpus by name."""
        return self.axes["corpus"]

    @property
    def model(self) -> str:
        """The model in words; softmax goes without saying."""
        axes = self.axes
        return in_words(axes["encoder"], axes["attention"], axes["projection"])

    @property
    def settings(self) -> Mapping[str, Any]:
        """How its models were made."""
        return self.findings[0].settings

    @property
    def trained_on(self) -> str:
        """Where its models were trained; empty where the store does not say."""
        return next((finding.trained_on for finding in self.findings if finding.trained_on), "")

    @property
    def seeds(self) -> int:
        """The most seeds that any of its findings is about."""
        return max(len(finding.cell.inputs) for finding in self.findings)

    @cached_property
    def models(self) -> dict[str, str]:
        """The keys of its trained models by seed, as far as the store tells."""
        seen = {
            str(seed): finding.stored.cells.get(key)
            for finding in self.findings
            for seed, key in finding.cell.observations.items()
        }
        return {seed: cell.inputs["model"] for seed, cell in seen.items() if cell and "model" in cell.inputs}

    @cached_property
    def stored_corpus(self) -> StoredCorpus | None:
        """The corpus's own cell, where the store has it."""
        return self.findings[0].stored.corpus(self.findings[0].corpus_key)

    @property
    def labels(self) -> list[str] | None:
        """The labels in the corpus's order, where the store says."""
        return None if self.stored_corpus is None else self.stored_corpus.about["labels"]

    @property
    def tolerance(self) -> float:
        """How far the adversary may move the output: the paper allows more where there is a question."""
        asks = self.stored_corpus is not None and self.stored_corpus.about["has_query"]
        return TOLERANCES[bool(asks)]

    def of(self, experiment: str) -> StoredFinding | None:
        """The experiment's findings; where it was done in several ways, the first by `_rank`."""
        return next((f for f in self.findings if f.cell.config["experiment"] == experiment), None)


def in_words(encoder: str, attention: str, projection: str) -> str:
    """A kind of model; softmax goes without saying."""
    return f"{encoder} + {attention}" + ("" if projection == "softmax" else f" + {projection}")


def grid_points(stored: Stored) -> list[GridPoint]:
    """Every grid point of the store, by corpus and model."""
    groups: dict[str, list[StoredFinding]] = {}
    for finding in sorted(stored.every, key=_rank):
        config = finding.cell.config
        point = {axis: config[axis] for axis in AXES} | {"model": dict(finding.settings)}
        groups.setdefault(canonical(point | {"corpus cell": finding.corpus_key}), []).append(finding)
    named = Counter(_slug(findings) for findings in groups.values())
    points = [
        GridPoint(findings, _file(_slug(findings), same, alone=named[_slug(findings)] == 1))
        for same, findings in groups.items()
    ]
    return sorted(points, key=lambda point: (*point.axes.values(), point.file))


def _rank(finding: StoredFinding) -> tuple[int, bool, str]:
    """Experiments in their order, corrected before as-published, and then in any order that stays."""
    config = finding.cell.config
    order = [*CONCLUSIONS, config["experiment"]].index(config["experiment"])
    return order, config["mode"] != "corrected", finding.cell.key


def _slug(findings: Sequence[StoredFinding]) -> str:
    """The grid point as the name of a file; names are untrusted, so only plain letters and digits stay."""
    words = "-".join(findings[0].cell.config[axis] for axis in AXES).lower().removesuffix("-softmax")
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:80]


def _file(slug: str, same: str, *, alone: bool) -> str:
    """The page's name; a digest tells those apart that differ only in their settings."""
    return f"{slug}.html" if alone else f"{slug}-{hashlib.sha256(same.encode()).hexdigest()[:8]}.html"


def of_one_device(points: Sequence[GridPoint]) -> list[GridPoint]:
    """Those whose models were trained where most were: a number over several points does not mix devices."""
    places = Counter(point.trained_on or CPU for point in points)
    return [point for point in points if (point.trained_on or CPU) == places.most_common(1)[0][0]]


def told_apart(points: Sequence[GridPoint]) -> list[str]:
    """What distinguishes grid points of one name, such as `epochs 4`; empty for one that is alone.

    That models were not trained on a CPU is always said.
    """
    same = Counter((point.corpus, point.model) for point in points)
    return [
        _differing(point, points) if same[point.corpus, point.model] > 1 else _place(point)
        for point in points
    ]


def _place(point: GridPoint) -> str:
    return f"trained on {point.settings['trained_on']}" if "trained_on" in point.settings else ""


def _short(value: object) -> str:
    """A setting in words; a vector file by the first digits of its sha256."""
    return notebook.word_vectors(value, None) if isinstance(value, str) else str(value)


def _differing(point: GridPoint, points: Sequence[GridPoint]) -> str:
    others = [other for other in points if (other.corpus, other.model) == (point.corpus, point.model)]
    names = dict.fromkeys(name for other in others for name in other.settings)
    varying = [name for name in names if len({str(other.settings.get(name)) for other in others}) > 1]
    said = [
        f"{name} {_short(point.settings.get(name, 'default'))}" for name in varying if name != "trained_on"
    ]
    if "trained_on" in varying or _place(point):
        said.append(_place(point) or f"trained on {CPU}")
    return ", ".join(said) or f"corpus cell {(point.findings[0].corpus_key or 'unknown')[:12]}"
