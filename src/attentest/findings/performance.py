"""How well the models predict: the first thing to know before asking whether their attention explains.

Every measure is a function of instance weights, so the score printed after training, the estimate on
the page and each resample behind its interval are one piece of code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped

from attentest.findings.interval import PerDraw, Weights, interval_of_statistic, over_seeds
from attentest.findings.record import Finding, ordered, seeds_as_json

COLUMNS = ("seed", "subject", "id", "label", "predicted", "gold", "probabilities")
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
    classes = np.array([1]) if _binary(sample) else np.union1d(sample.gold, sample.predicted)
    gold, predicted = sample.gold[:, None] == classes, sample.predicted[:, None] == classes
    hits = weights @ (gold & predicted).astype(np.float64)
    claims = weights @ (gold.astype(np.float64) + predicted)
    return _mean_where(claims > 0, 2.0 * hits, claims)


def auc(sample: Predictions, weights: Weights) -> PerDraw:
    """The chance that a text of the class is ranked above one that is not; ties count half.

    Two classes: class 1. More: one class against the rest, the plain mean over classes that are gold
    for some texts and not for all; where there is none, NaN.
    """
    classes = np.array([1]) if _binary(sample) else np.unique(sample.gold)
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
    sample = _predictions(np.arange(len(gold)), gold, probabilities)
    if not len(sample) or not np.isfinite(sample.probabilities).all():
        return dict.fromkeys(MEASURES, math.nan)
    return {name: _value(name, sample) for name in MEASURES}


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Accuracy, F1 and AUC of the trained models over all texts, and accuracy by gold label."""
    rows = ordered(rows, COLUMNS)
    rows = rows[rows["subject"] == "trained"]
    if rows.empty:
        return []
    number = dict(zip(rows["label"], rows["gold"], strict=True))
    samples = [_from_rows(of_seed, number) for _, of_seed in rows.groupby("seed")]
    null = _constant_answers(samples)
    findings = [_finding(name, "overall", samples, null[name], mode, rng) for name in MEASURES]
    majority = max(sorted(number.values()), key=lambda index: (rows["gold"] == index).sum())
    for label, index in sorted(number.items(), key=lambda item: item[1]):
        texts = [sample.only(sample.gold == index) for sample in samples]
        findings.append(_finding("accuracy", f"label={label}", texts, float(index == majority), mode, rng))
    return findings


def _finding(
    measure: str,
    group: str,
    samples: Sequence[Predictions],
    null: float,
    mode: str,
    rng: np.random.Generator,
) -> Finding:
    numeric = [sample.only(np.isfinite(sample.probabilities).all(axis=1)) for sample in samples]
    values = [_value(measure, sample) for sample in numeric]
    used = [sample for sample, value in zip(numeric, values, strict=True) if not math.isnan(value)]
    total, left, n = (sum(len(sample) for sample in some) for some in (samples, numeric, used))
    why = [NOT_A_NUMBER] * (left < total) + [UNDEFINED[measure]] * (n < left)
    interval = interval_of_statistic(used, [sample.ids for sample in used], MEASURES[measure], rng=rng)
    of_seeds = [value for value in values if not math.isnan(value)]
    estimate, seed_std = over_seeds(of_seeds)
    right = np.concatenate([sample.gold == sample.predicted for sample in used] or [np.empty(0)])
    return Finding(
        experiment="performance",
        measure=measure,
        group=group,
        estimate=estimate,
        std=float(right.std()) if measure == "accuracy" and n else math.nan,
        seed_std=seed_std,
        n=n,
        seeds=len(used),
        excluded=total - n,
        why="; ".join(why),
        null=null,
        mode=mode,
        by_seed=seeds_as_json(of_seeds),
        **interval._asdict(),
    )


def _value(measure: str, sample: Predictions) -> float:
    return float(MEASURES[measure](sample, np.ones((1, len(sample))))[0]) if len(sample) else math.nan


def _constant_answers(samples: Sequence[Predictions]) -> dict[str, float]:
    """What the best answer that never looks at the text would score.

    For accuracy that is the majority class. For F1 of class 1 it is class 1, always: to answer the
    majority would score 0 whenever class 1 is the rarer, and any model would seem to beat it.
    """
    gold = np.concatenate([sample.gold for sample in samples])
    shares = np.unique(gold, return_counts=True)[1] / len(gold)
    asked = np.array([(gold == 1).mean()]) if _binary(samples[0]) else shares
    always = 2.0 * asked.max() / (1.0 + asked.max()) / len(asked)
    return {"accuracy": float(shares.max()), "f1": float(always), "auc": 0.5}


def _from_rows(rows: pd.DataFrame, number: dict[str, int]) -> Predictions:
    probabilities = np.array(rows["probabilities"].tolist(), dtype=np.float64)
    sample = _predictions(rows["id"].to_numpy(), rows["gold"].to_numpy(), probabilities)
    # The stored answer decides, since probabilities that round to a tie cannot say which logit was larger.
    # A class that is never gold has no number here, and there the probabilities must do.
    named = rows["predicted"].map(number)
    predicted = named.fillna(pd.Series(sample.predicted, index=rows.index)).to_numpy(dtype=np.int64)
    return replace(sample, predicted=predicted)


def _predictions(ids: np.ndarray, gold: np.ndarray, probabilities: np.ndarray) -> Predictions:
    both = np.asarray(probabilities, dtype=np.float64)
    if both.shape[1] == 1:  # one sigmoid output is the probability of class 1
        both = np.hstack([1.0 - both, both])
    return Predictions(ids=ids, gold=np.asarray(gold), predicted=both.argmax(axis=1), probabilities=both)


def _binary(sample: Predictions) -> bool:
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
