"""The texts of an audit that a person looks at: those where attention is most and least borne out.

A text is borne out by how much more of its answer's probability is lost without the most attended words than
without as many random ones (ERASER's comprehensiveness beyond its null): what `erasure` measured anyway. They
are the ends of a ranking of noisy numbers, so they illustrate what the criteria say and are no evidence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import Any, final

import numpy as np
import pandas as pd
import torch

from attentest.auditing.rankings import answering
from attentest.evidence.erasure.drawn_units import drawn_units
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.presence import changes_without, explained
from attentest.experiments.contract import Subject
from attentest.model.seam import Model
from attentest.statistics.comparison import kendall

OF_EACH = 3
FEWEST = 4  # units: in a shorter text almost any order is right
ASKED = "erasure"  # the question whose rows rank the texts
MEASURE = (
    "Texts are ordered by how much more the probability of the answer falls without the most attended words"
    " than without as many random words. These are the ends of that order: they illustrate, the criteria"
    " judge."
)
SCALE = " Every strip shows shares of its sum, all on one scale."
WHY_NOT = (
    "The words were not erased in this audit, or hardly any text has 4 words or more: there is nothing to"
    " order texts by."
)
ENDS = ("most", "least")


@final
@dataclass(frozen=True, kw_only=True)
class ShownText:
    """One text with what was answered, and attention beside the importances of its units."""

    id: str
    label: str  # empty where nobody gave one
    predicted: str
    probability: float  # of what was predicted
    borne_out: float  # the fall of it without the most attended words, beyond random words
    tau: float  # rank correlation of attention and leave-one-out; NaN where one is constant
    words: tuple[str, ...]
    query: tuple[str, ...] | None
    strips: Mapping[str, tuple[float, ...]]  # each as shares of its sum

    @property
    def says(self) -> str:
        """Both numbers in words."""
        points = 100 * self.borne_out
        told = (
            "Without its most attended words the probability falls by"
            f" {abs(points):.0f} points {'more' if points >= 0 else 'less'} than without random words"
        )
        known = f"; rank correlation of attention with leave-one-out {self.tau:.2f}"
        return told + ("" if np.isnan(self.tau) else known) + "."

    def document(self, *, with_text: bool) -> dict[str, Any]:
        """As plain values; without its words where texts are to stay out."""
        kept = self if with_text else replace(self, words=(), query=None, strips={})
        return {**asdict(kept), "says": self.says}


@final
@dataclass(frozen=True)
class ShownTexts:
    """Those at both ends, the extreme one first."""

    most: tuple[ShownText, ...] = ()
    least: tuple[ShownText, ...] = ()

    def document(self, *, with_text: bool) -> dict[str, Any]:
        """As plain values, with what the order is by."""
        there = bool(self.most)
        ends = {name: [one.document(with_text=with_text) for one in getattr(self, name)] for name in ENDS}
        return {
            "measure": MEASURE + (SCALE if with_text else "") if there else "",
            "why": "" if there else WHY_NOT,
            "with_text": with_text,
            **ends,
        }


def borne_out(rows: pd.DataFrame) -> dict[str, float]:
    """The measure of every text that is long enough, from the rows of `erasure`."""
    own = rows[(rows["subject"] == "trained") & (rows["length"] >= FEWEST)]
    beyond = own["comprehensiveness"].astype(float) - own["null_comprehensiveness"].astype(float)
    return {str(id): float(value) for id, value in zip(own["id"], beyond, strict=True) if np.isfinite(value)}


def shown_texts(subject: Subject, measured: Mapping[str, float]) -> ShownTexts:
    """The texts at both ends of the order, read once more with their importances."""
    order = sorted(measured, key=lambda id: (-measured[id], id))
    count = min(OF_EACH, len(order) // 2)
    if not count:
        return ShownTexts()
    most, least = order[:count], order[-count:][::-1]
    rows = {example.id: row for row, example in enumerate(subject.texts.examples)}
    made = {id: _shown(subject, rows[id], measured[id]) for id in (*most, *least)}
    return ShownTexts(tuple(made[id] for id in most), tuple(made[id] for id in least))


def _shown(subject: Subject, row: int, value: float) -> ShownText:
    example, model = subject.texts.examples[row], subject.model
    batch = subject.texts.batch([row]).to(model.device)
    weights, gradient, left = _importances(model, subject, row)
    with torch.no_grad():
        about = explained(model, model.read(batch))
    ranked = np.isfinite(left[: len(weights)]).nonzero()[0]
    sizes = {"attention": weights, "gradient": gradient, "leave-one-out": left}
    strips = {name: _shares(size[: len(weights)]) for name, size in sizes.items()}
    return ShownText(
        id=example.id,
        label=example.label,
        predicted=subject.labels[int(about.predicted[0])],
        probability=float(about.probability[0]),
        borne_out=value,
        tau=kendall(weights[ranked], left[ranked])[0],
        words=_words(subject, row, len(weights)),
        query=example.query,
        strips=strips,
    )


def _importances(model: Model, subject: Subject, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The weights that are audited, what gradient says, and leave-one-out, as far as it is known already."""
    batch = subject.texts.batch([row]).to(model.device)
    answered_by = model.capabilities.answered_by
    found = gradients(model.with_heads if answered_by is None else answered_by.model, batch)
    with torch.no_grad():
        reading = model.read(batch)
        units = drawn_units(reading, subject.ranked)
        left = changes_without(*answering(model, reading), known=subject.known, units=units)
        if units is not None:
            left = left.masked_fill(~units, torch.nan)
    sizes = (reading.weights, found.times_input, left)
    weights, gradient, changes = (size[0].detach().double().cpu().numpy() for size in sizes)
    return weights, gradient, changes


def _shares(sizes: np.ndarray) -> tuple[float, ...]:
    """Sizes as shares of their sum, to four digits; what is unknown stays so."""
    sizes = np.abs(sizes.astype(np.float64))
    total = np.nansum(sizes)
    return tuple(np.round(sizes / total if total > 0 else sizes, 4).tolist())


def _words(subject: Subject, row: int, count: int) -> tuple[str, ...]:
    """What is written at each unit; where a unit is a sentence, its words together."""
    words, numbers = subject.texts.unit_texts(row), subject.texts.sentences
    if len(words) == count or numbers is None:
        return words
    groups = groupby(zip(numbers[row].tolist(), words, strict=True), key=lambda pair: pair[0])
    return tuple(" ".join(word for _, word in group) for _, group in groups)
