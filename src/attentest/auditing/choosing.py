"""The best layer or the best head of a transformer, chosen on other texts than those that are audited.

Of many maps the one that looks best is partly lucky. If the same texts chose it and judged it, the verdict
would be too good. So every second text chooses, by the mean tau of the row and gradient importance with
attention held, and the audit is of the others.

With attention held, the gradient does not depend on which head is looked at. So the heads of a layer share
one pass of the model, and only layers need one each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from attentest.auditing.run import spread
from attentest.corpus.example import Example
from attentest.evidence.concordance import count_on
from attentest.evidence.importances.gradient import gradients
from attentest.model.batch import buckets
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import LayeredModel, Model
from attentest.refusal import Refusal
from attentest.statistics.rank_agreement import kendalls

BEST = "best"
PLACES = ("layer", "head")
BY = "mean Kendall tau of the row and gradient importance, attention held"


@final
@dataclass(frozen=True)
class Chosen:
    """Which row was chosen, among how many, and on how many texts; none of these is audited."""

    layer: int
    head: int | None  # None: the mean over heads
    among: int
    tau: float
    texts: int
    by: str = BY

    @property
    def sentence(self) -> str:
        """As a report says it."""
        head = "the mean over heads" if self.head is None else f"head {self.head}"
        return (
            f"Layer {self.layer}, {head}, was chosen as the best of {self.among} rows by the {self.by}:"
            f" {self.tau:.3f} on {self.texts} texts, none of which is audited."
        )

    @property
    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "sentence": self.sentence}


def to_be_chosen(attention: Mapping[str, Any] | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The choices that the user made, and the places that are to be chosen by looking."""
    choice = dict(attention or {})
    best = tuple(place for place in PLACES if choice.get(place) == BEST)
    if best and choice.get("kind", "row") != "row":
        raise _refusal(best, f"the kind {choice['kind']!r}")
    return {name: value for name, value in choice.items() if name not in best}, best


def best_row(
    model: Model, places: Sequence[str], examples: Sequence[Example], most: int
) -> tuple[LayeredModel, tuple[Example, ...], Chosen]:
    """The model with its best row, the texts that did not choose it, and what was done.

    `most` is how many texts choose at most, spread evenly over every second one.
    """
    layered = model.capabilities.layered
    if layered is None:
        raise _refusal(places, "a model that has one attention, or a map")
    choosing = spread(examples[::2], most)
    layers = range(layered.layers) if "layer" in places else [layered.layer]
    taus: dict[tuple[int, int | None], float] = {}
    for layer in layers:
        own = _taus(layered.placed(layer, None), choosing)
        if "head" in places:
            taus |= {(layer, head): tau for head, tau in enumerate(own[:-1])}
        else:
            taus[layer, layered.head] = own[-1 if layered.head is None else layered.head]
    layer, head = max(taus, key=lambda row: -math.inf if math.isnan(taus[row]) else taus[row])
    chosen = Chosen(layer, head, len(taus), taus[layer, head], len(choosing))
    return layered.placed(layer, head), tuple(examples[1::2]), chosen


def _taus(model: Model, examples: Sequence[Example]) -> list[float]:
    """The mean tau of every head of the model's layer, and of the mean over heads."""
    split, found = model.split(examples), []
    for rows in buckets(split.lengths, TEXTS, tokens=TOKENS):
        own = gradients(model, split.batch(rows).to(model.device))
        weights, lengths = own.reading.weights, own.reading.mask.sum(1).cpu().numpy()
        importance = own.times_input.cpu().numpy()
        count = count_on(model.device)
        of_heads = [*weights.unbind(1), weights.mean(1)]
        found.append([kendalls(each.cpu().numpy(), importance, lengths, count=count)[0] for each in of_heads])
    taus = np.concatenate(found, axis=1)
    return [float(np.nanmean(each)) if np.isfinite(each).any() else math.nan for each in taus]


def _refusal(places: Sequence[str], got: str) -> Refusal:
    return Refusal(
        f"the best {' and '.join(places)}",
        got=got,
        needs="the row of a Hugging Face model: other attentions are not chosen by looking",
        way_out="Name the layer and the head, or leave them out.",
    )
