"""Accuracy, F1 and AUC of one model's answers, as functions of weights of the texts.

The score printed after training, the estimate on a page and each resample behind its interval are one
piece of code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from attentest.statistics.interval import PerDraw, Weights

NOT_A_NUMBER = "the output is not a number"


@final
@dataclass(frozen=True, kw_only=True)
class Predictions:
    """One seed's answers, and to which texts, since other seeds answer the same ones."""

    ids: Shaped[np.ndarray, " n"]
    gold: Int[np.ndarray, " n"]
    predicted: Int[np.ndarray, " n"]
    probabilities: Float[np.ndarray, "n class"]

    def __len__(self) -> int:
        return len(self.gold)

    def only(self, chosen: Bool[np.ndarray, " n"]) -> Predictions:
        """The same answers, fewer questions."""
        return Predictions(
            ids=self.ids[chosen],
            gold=self.gold[chosen],
            predicted=self.predicted[chosen],
            probabilities=self.probabilities[chosen],
        )


def accuracy(sample: Predictions, weights: Weights) -> PerDraw:
    """The share of texts given their gold label."""
    return weights @ (sample.gold == sample.predicted).astype(np.float64) / weights.sum(axis=1)


def f1(sample: Predictions, weights: Weights) -> PerDraw:
    """Two classes: F1 of class 1, as in Jain & Wallace (2019), Table 1. More: the plain mean over classes.

    A class counts once it is gold or predicted somewhere in the (re)sample; where none counts, NaN.
    """
    classes = np.array([1]) if is_binary(sample) else np.union1d(sample.gold, sample.predicted)
    gold, predicted = sample.gold[:, None] == classes, sample.predicted[:, None] == classes
    hits = weights @ (gold & predicted).astype(np.float64)
    claims = weights @ (gold.astype(np.float64) + predicted)
    return _mean_where(claims > 0, 2.0 * hits, claims)


def auc(sample: Predictions, weights: Weights) -> PerDraw:
    """The chance that a text of the class is ranked above one that is not; ties count half.

    Two classes: class 1. More: one class against the rest, the plain mean over classes that are gold
    for some texts and not for all; where there is none, NaN.
    """
    classes = np.array([1]) if is_binary(sample) else np.unique(sample.gold)
    wins, pairs = np.zeros((2, len(weights), len(classes)))
    for column, number in enumerate(classes):
        ranked_by = sample.probabilities[:, number]
        wins[:, column], pairs[:, column] = _won_pairs(ranked_by, sample.gold == number, weights)
    return _mean_where(pairs > 0, wins, pairs)


MEASURES = {"accuracy": accuracy, "f1": f1, "auc": auc}
UNDEFINED = {
    "accuracy": "no texts",
    "f1": "no text is of the class or predicted as it",
    "auc": "all gold labels alike: nothing to rank",
}


def scores(gold: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Accuracy, F1 and AUC of one model's outputs; all NaN if any output is, so that it is never chosen."""
    sample = predictions(np.arange(len(gold)), gold, probabilities)
    if not len(sample) or not np.isfinite(sample.probabilities).all():
        return dict.fromkeys(MEASURES, math.nan)
    return {name: value_of(name, sample) for name in MEASURES}


def value_of(measure: str, sample: Predictions) -> float:
    """The measure of the answers; NaN where there are none."""
    return float(MEASURES[measure](sample, np.ones((1, len(sample))))[0]) if len(sample) else math.nan


def predictions(ids: np.ndarray, gold: np.ndarray, probabilities: np.ndarray) -> Predictions:
    """Answers from gold labels and probabilities; one sigmoid output is the probability of class 1."""
    both = np.asarray(probabilities, dtype=np.float64)
    if both.shape[1] == 1:  # one sigmoid output is the probability of class 1
        both = np.hstack([1.0 - both, both])
    return Predictions(ids=ids, gold=np.asarray(gold), predicted=both.argmax(axis=1), probabilities=both)


def is_binary(sample: Predictions) -> bool:
    """Whether there are two classes."""
    return sample.probabilities.shape[1] == 2


def _won_pairs(
    ranked_by: Float[np.ndarray, " n"], positive: Bool[np.ndarray, " n"], weights: Weights
) -> tuple[PerDraw, PerDraw]:
    """How many (positive, negative) pairs are ranked rightly, of how many."""
    order = np.argsort(ranked_by, kind="stable")
    up, down = order[positive[order]], order[~positive[order]]
    below = np.zeros((len(weights), len(down) + 1))  # the weight of the k lowest negatives
    np.cumsum(weights[:, down], axis=1, out=below[:, 1:])
    first, last = (np.searchsorted(ranked_by[down], ranked_by[up], side) for side in ("left", "right"))
    beaten = below[:, first]
    if (first < last).any():  # a tie is half a win: halfway between all below and all not above
        beaten = (beaten + below[:, last]) / 2.0
    ours = weights[:, up]
    return np.einsum("dp,dp->d", ours, beaten), ours.sum(axis=1) * below[:, -1]


def _mean_where(
    defined: Bool[np.ndarray, "draw class"],
    above: Float[np.ndarray, "draw class"],
    below: Float[np.ndarray, "draw class"],
) -> PerDraw:
    """The mean ratio over the classes where it is defined, NaN where there are none."""
    ratios = np.divide(above, below, out=np.zeros_like(above), where=defined)
    counts = defined.sum(axis=1)
    return np.divide(ratios.sum(axis=1), counts, out=np.full(len(counts), np.nan), where=counts > 0)
