"""Weights over the words of a text, small enough to travel: whole shares of the text's largest weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attentest.compare.stored import StoredText
from attentest.evidence.importances.names import IMPORTANCES, column

STEPS = 9999  # of the largest weight: four digits on a page
UNKNOWN = -1  # stands where a weight is not a number
ATTENTIONS = ("own", "permuted", "search", "exact")
LONGEST = 120  # signs of a token; what is longer is cut, and says so
HEAD = 14  # words of a text in a table
TOKENS, TEXTS = 30_000, 400  # of a shard, whichever is reached first

Packed = dict[str, Any]


def packed(vectors: Mapping[str, Any]) -> Packed | None:
    """The strips of one text in steps of their largest weight, so that all are on one scale.

    Importances have no scale of their own: each becomes its share of their sum.
    """
    strips = {name: _floats(vectors[name]) for name in ATTENTIONS if _there(vectors.get(name))}
    strips |= {
        name: _shares(_floats(vectors[name]))
        for name in map(column, IMPORTANCES)
        if _there(vectors.get(name))
    }
    tops = [float(np.nanmax(strip)) for strip in strips.values() if np.isfinite(strip).any()]
    top = max(tops, default=0.0)
    if top <= 0:
        return None
    steps = {name: _steps(strip, top) for name, strip in strips.items()}
    return {"top": top, **steps}


def words(text: StoredText) -> Packed:
    """The tokens, the question, the places that decide, and where sentences begin."""
    told: Packed = {"t": [_cut(token) for token in text.tokens]}
    if text.query:
        told["q"] = " ".join(_cut(token) for token in text.query)
    if text.rationale:
        told["r"] = list(text.rationale)
    if text.sentences:
        told["s"] = list(text.sentences)
    return told


def head(text: StoredText) -> str:
    """How the text begins, for a table that lists many."""
    begins = " ".join(text.tokens[:HEAD])
    return begins[:LONGEST] + ("…" if len(text.tokens) > HEAD or len(begins) > LONGEST else "")


def chunks(lengths: Sequence[int]) -> list[int]:
    """Where each shard of texts begins: none is large, so that one text costs no more than its shard."""
    starts, tokens = [0], 0
    for place, length in enumerate(lengths):
        if place > starts[-1] and (tokens + length > TOKENS or place - starts[-1] >= TEXTS):
            starts.append(place)
            tokens = 0
        tokens += length
    return starts


def _there(vector: Any) -> bool:
    return isinstance(vector, list | tuple | np.ndarray) and len(vector) > 0


def _floats(vector: Any) -> np.ndarray:
    return np.asarray(vector, dtype=np.float64)


def _shares(strip: np.ndarray) -> np.ndarray:
    sizes = np.abs(strip)
    total = np.nansum(sizes)
    return sizes / total if total > 0 else sizes


def _steps(strip: np.ndarray, top: float) -> np.ndarray:
    known = np.isfinite(strip)
    return np.where(known, np.rint(np.where(known, strip, 0.0) / top * STEPS), UNKNOWN).astype(np.int64)


def _cut(token: str) -> str:
    return token if len(token) <= LONGEST else f"{token[:LONGEST]}… ({len(token):,} signs)"
