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
    marked = int(rationale.sum())
    if not 0 < marked < len(rationale) or np.isnan(scores).any():
        return UNDEFINED
    drawn = rng.permuted(np.tile(scores, (draws, 1)), axis=1)
    order = np.argsort(-drawn, axis=1, kind="stable")
    right = rationale[order].cumsum(axis=1)
    wanted, at_end = spans(rationale), _ends(np.sort(scores)[::-1])  # the sorted scores are always the same
    precision = right[:, at_end] / (at_end + 1)
    chosen = np.zeros(drawn.shape, dtype=bool)
    np.put_along_axis(chosen, order[:, :marked], True, axis=1)
    return Plausibility(
        float(right[:, marked - 1].mean() / marked),
        float(np.mean([iou_f1(spans(some), wanted) for some in chosen])),
        float((precision * np.diff(right[:, at_end], prepend=0, axis=1)).sum(1).mean() / marked),
    )


def spans(marked: Marked) -> list[Span]:
    """Runs of neighbours that are marked."""
    edges = np.flatnonzero(np.diff(marked.astype(np.int8), prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def iou_f1(found: list[Span], wanted: list[Span]) -> float:
    """F1 of spans, where a span is right that shares half of its union with one of the others."""
    hits = [(i, j) for i, one in enumerate(found) for j, other in enumerate(wanted) if _fits(one, other)]
    precision, recall = len({i for i, _ in hits}) / len(found), len({j for _, j in hits}) / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _fits(one: Span, other: Span) -> bool:
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared > 0 and shared >= OVERLAP * (one[1] - one[0] + other[1] - other[0] - shared)


def average_precision(scores: Scores, rationale: Marked) -> float:
    """The area under precision and recall in steps: precision at every threshold, by the recall it gains."""
    order = np.argsort(-scores, kind="stable")
    right = rationale[order].cumsum()
    last = _ends(scores[order])
    precision = right[last] / (last + 1)
    return float((precision * np.diff(right[last], prepend=0)).sum() / rationale.sum())


def _ends(falling: Scores) -> np.ndarray:
    """Where equals end: a threshold lies only where the next score is smaller."""
    return np.flatnonzero(np.append(np.diff(falling) < 0, True))
