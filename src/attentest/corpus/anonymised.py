"""A corpus without some of its words: what is left for a model that must not have seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attentest.corpus.example import Corpus, Example
from attentest.corpus.marks import Marks, marks
from attentest.corpus.vocabulary import RESERVED, UNK

NOTHING = RESERVED[UNK]  # all that is left of a text that had no other words


def anonymised(corpus: Corpus, omit: str) -> Corpus:
    """The corpus with the tokens that `omit` marks cut out of every text of every split.

    Queries stay as they are: they are not attended. A text of which nothing is left becomes one `<unk>`,
    because a model must answer it; `preparation` counts them as `emptied`. Done twice it is done once.
    """
    if not omit or corpus.preparation.get("omit") == omit:
        return corpus
    splits: dict[str, tuple[Example, ...]] = {}
    emptied = 0
    for split, examples in corpus.splits().items():
        marked = marks(examples, omit)
        emptied += sum(bool(each.all()) for each in marked)
        splits[split] = tuple(_without(*pair) for pair in zip(examples, marked, strict=True))
    preparation = {**corpus.preparation, "omit": omit, "emptied": emptied}
    return replace(corpus, **splits, preparation=preparation, rows=None)  # type: ignore[arg-type]


def _without(example: Example, marked: Marks) -> Example:
    """What is left of a text, its positions counted anew."""
    if not marked.any():
        return example
    kept = [token for token, gone in zip(example.tokens, marked, strict=True) if not gone]
    before = np.concatenate([[0], (~marked).cumsum()])  # how many are left of those before each position
    rationale = None
    if example.rationale is not None:
        rationale = tuple(int(before[place]) for place in example.rationale if not marked[place])
    sentences = None
    if example.sentences is not None:
        sentences = _begins([int(before[place]) for place in example.sentences], len(kept))
    return replace(
        example,
        tokens=tuple(kept) or (NOTHING,),
        rationale=rationale,
        sentences=sentences,
        text=None,  # it holds the words that were cut out
    )


def _begins(places: Sequence[int], length: int) -> tuple[int, ...]:
    """Where sentences begin; one that lost all its tokens begins where the next does, or behind the end."""
    return tuple(sorted({place for place in places if place < length})) or (0,)
