"""What explainers send (Treviso & Martins 2020): a few words of each text, as a bag.

Texts of a split lie one behind the other, token by token, so that a whole split is chosen from at once and
there is no padding that could be sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int

PerToken = Float[np.ndarray, " token"]


def places(lengths: Int[np.ndarray, " text"], texts: Int[np.ndarray, " chosen"]) -> Int[np.ndarray, " token"]:
    """Where the tokens of these texts are, text by text."""
    starts = (np.cumsum(lengths) - lengths)[texts]
    sizes = lengths[texts]
    before = np.cumsum(sizes) - sizes
    return np.repeat(starts - before, sizes) + np.arange(sizes.sum())


def ranks(
    scores: PerToken, lengths: Int[np.ndarray, " text"], *, rng: np.random.Generator
) -> Int[np.ndarray, " token"]:
    """The rank of each token within its text, 0 for the largest score; NaN comes last.

    Equal scores are ranked by chance. Their order in the text would make an explainer that knows nothing, as
    uniform attention, send the beginning of every text, which is no bad guess at what matters.
    """
    texts = np.repeat(np.arange(len(lengths)), lengths)
    order = np.lexsort((rng.random(len(scores)), -scores, texts))
    found = np.empty(len(scores), dtype=np.int64)
    found[order] = np.arange(len(scores)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return found


def by_chance(
    counts: Int[np.ndarray, " text"], lengths: Int[np.ndarray, " text"], *, rng: np.random.Generator
) -> Bool[np.ndarray, " token"]:
    """As many random tokens of each text as are counted."""
    return ranks(np.zeros(lengths.sum()), lengths, rng=rng) < np.repeat(counts, lengths)


def counted(
    chosen: Bool[np.ndarray, " token"], lengths: Int[np.ndarray, " text"]
) -> Int[np.ndarray, " text"]:
    """How many tokens of each text were chosen."""
    return np.add.reduceat(chosen.astype(np.int64), np.cumsum(lengths) - lengths)


@final
@dataclass(frozen=True, eq=False)
class Messages:
    """The words of every text, and to which laypeople each of them was sent.

    A bag counts: a word that stands in a text twice and is chosen twice is sent twice. Word 0 belongs to
    every message, being the constant of a linear model; no text holds it, since it is padding's number.
    """

    words: Int[np.ndarray, " token"]
    lengths: Int[np.ndarray, " text"]
    sent: Bool[np.ndarray, "token layperson"]

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def of(
        cls,
        words: Int[np.ndarray, " token"],
        lengths: Int[np.ndarray, " text"],
        chosen: Bool[np.ndarray, "token layperson"],
        known: list[Int[np.ndarray, " _"]],
    ) -> Messages:
        """Behind the words that were chosen from each text, what every layperson knows of it anyway."""
        with_constant = [np.append(each, 0) for each in known]
        extra = np.array([len(each) for each in with_constant])
        text = np.arange(len(lengths))
        order = np.concatenate([np.repeat(text, lengths), np.repeat(text, extra)]).argsort(kind="stable")
        everywhere = np.ones((extra.sum(), chosen.shape[1]), dtype=bool)
        return cls(
            words=np.concatenate([words, *with_constant])[order],
            lengths=lengths + extra,
            sent=np.concatenate([chosen, everywhere])[order],
        )

    def only(self, texts: Int[np.ndarray, " chosen"]) -> Messages:
        """These texts, in this order."""
        at = places(self.lengths, texts)
        return Messages(self.words[at], self.lengths[texts], self.sent[at])

    def span(self, begin: int, end: int) -> Messages:
        """The texts from one to another."""
        at = slice(self._starts[begin], self._starts[end])
        return Messages(self.words[at], self.lengths[begin:end], self.sent[at])

    @cached_property
    def _starts(self) -> Int[np.ndarray, " _"]:
        return np.concatenate([[0], np.cumsum(self.lengths)])
