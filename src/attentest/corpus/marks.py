"""Marking tokens of texts: by their word, or because somebody marked them as the reason for the label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from attentest.corpus.example import Example
from attentest.refusal import Refusal

RATIONALE = "<rationale>"  # the example's own marks instead of words

Marks = Bool[np.ndarray, " token"]


def marks(examples: Sequence[Example], words: str) -> list[Marks]:
    """For every text, which tokens are among these words (whatever their case), or in its rationale."""
    if words.strip() == RATIONALE:
        _check_rationales(examples)
        return [_at(example.rationale or (), len(example.tokens)) for example in examples]
    wanted = vocabulary_of(words)
    return [
        np.fromiter((token.lower() in wanted for token in example.tokens), bool, len(example.tokens))
        for example in examples
    ]


def vocabulary_of(words: str) -> frozenset[str]:
    """The words of a list with blanks between them; commas there would silently match nothing."""
    found = frozenset(words.lower().split())
    if not found or any(len(word) > 1 and word.endswith(",") for word in found):
        raise Refusal(
            "words",
            got=repr(words),
            needs=f"words with blanks between them, or {RATIONALE}",
            way_out="For example: he she her his.",
        )
    return found


def _at(positions: Sequence[int], length: int) -> Marks:
    found = np.zeros(length, dtype=bool)
    found[list(positions)] = True
    return found


def _check_rationales(examples: Sequence[Example]) -> None:
    if all(example.rationale is None for example in examples):
        raise Refusal(
            RATIONALE,
            got="texts in which nobody marked anything",
            needs="a corpus with rationales",
            way_out="List words instead, for example: he she her his.",
        )
