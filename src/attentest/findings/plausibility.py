"""Plausibility: whether a ranking of words finds those that people marked as reasons (DeYoung et al. 2020).

People mark some words, a ranking has no threshold of its own. So as many words are taken from its top as were
marked: a threshold on the scores would reward whoever guesses how many. Then precision, recall and F1 are
one number. Average precision needs no number of words at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Float

Scores: TypeAlias = Float[np.ndarray, " unit"]
Marked: TypeAlias = Bool[np.ndarray, " unit"]
Span: TypeAlias = tuple[int, int]  # of units, the end outside

OVERLAP = 0.5  # of intersection and union, from which on a span is found


class Plausibility(NamedTuple):
    """Three ways in which a ranking finds a rationale, each 1 at best."""

    token_f1: float
    iou_f1: float
    auprc: float


UNDEFINED = Plausibility(math.nan, math.nan, math.nan)


def plausibility(scores: Scores, rationale: Marked) -> Plausibility:
    """Of one text. Undefined where nothing is marked or everything: then all rankings are alike."""
    marked = int(rationale.sum())
    if not 0 < marked < len(rationale) or np.isnan(scores).any():
        return UNDEFINED
    chosen = np.zeros(len(scores), dtype=bool)
    chosen[np.argsort(-scores, kind="stable")[:marked]] = True
    return Plausibility(
        float((chosen & rationale).sum() / marked),
        iou_f1(spans(chosen), spans(rationale)),
        average_precision(scores, rationale),
    )


def shuffled_plausibility(
    scores: Scores, rationale: Marked, *, draws: int, rng: np.random.Generator
) -> Plausibility:
    """The null: the mean over draws in which the scores have changed places."""
    drawn = [plausibility(rng.permutation(scores), rationale) for _ in range(draws)]
    return Plausibility(*np.mean(drawn, axis=0).tolist())


def spans(marked: Marked) -> list[Span]:
    """Runs of neighbours that are marked."""
    edges = np.flatnonzero(np.diff(marked.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def iou_f1(found: list[Span], wanted: list[Span]) -> float:
    """F1 of spans, where a span is right that shares half of its union with one of the others."""
    hits = np.array([[_overlap(one, other) >= OVERLAP for other in wanted] for one in found])
    precision, recall = float(hits.any(axis=1).mean()), float(hits.any(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _overlap(one: Span, other: Span) -> float:
    shared = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def average_precision(scores: Scores, rationale: Marked) -> float:
    """The area under precision and recall in steps: precision at every threshold, by the recall it gains."""
    order = np.argsort(-scores, kind="stable")
    right = rationale[order].cumsum()
    # Equals come together: a threshold lies only where the next score is smaller.
    last = np.flatnonzero(np.append(np.diff(scores[order]) < 0, True))
    precision = right[last] / (last + 1)
    return float((precision * np.diff(right[last], prepend=0)).sum() / rationale.sum())
