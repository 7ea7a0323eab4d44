"""The rule of `planted-reviews`: how the words of a review make its label, and what each word contributes.

1. A review consists of clauses. A clause ends at `.`, `!` or `;`, and before ", and" and ", while".
2. A clause with a noun of `ELSEWHERE` (somebody else's opinion, the packaging, the popcorn) counts nothing.
3. Every other clause with a word of `GRADES` has one such word, its cue. It contributes the grade of the cue,
   from -4 to 4 without 0; with the opposite sign if a negator (not, n't, never) is before it in the clause.
4. The score of the review is the sum of its contributions.
5. Two classes: `positive` if the score is above 0, `negative` if it is below 0; a score of 0 does not occur.
   Five classes: `1 star` up to -5, `2 stars` from -4 to -2, `3 stars` from -1 to 1, `4 stars` from 2 to 4,
   `5 stars` from 5 on.

The rationale of a review marks the cues that count and their negators, and no other word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attentest.corpus.example import Example
from attentest.corpus.generators.review_lexicon import GRADES, NEGATORS
from attentest.refusal import Refusal

LABELS = {2: ("negative", "positive"), 5: ("1 star", "2 stars", "3 stars", "4 stars", "5 stars")}
BORDERS = {2: (0,), 5: (-4, -1, 2, 5)}  # the lowest score of every class but the first


class Cue(NamedTuple):
    """A sentiment word that counts, in lower case, and whether it is negated."""

    word: str
    negated: bool

    @property
    def contribution(self) -> int:
        """Its grade, with the opposite sign if it is negated."""
        return -GRADES[self.word] if self.negated else GRADES[self.word]


def score(cues: Iterable[Cue]) -> int:
    """The sum of the contributions of a review's cues."""
    return sum(cue.contribution for cue in cues)


def label_of(total: int, classes: int) -> str | None:
    """The label that the rule gives to a score; None for a tie between two classes."""
    if classes == 2 and total == 0:
        return None
    return LABELS[classes][bisect_right(BORDERS[classes], total)]


def cues_of(example: Example) -> list[Cue]:
    """The cues that count in a review, in their order, read from its tokens and its rationale."""
    return [cue for cue, _, _ in _located(example)]


def contributions(example: Example) -> tuple[int, ...]:
    """What every token contributes to the score, by the rule: they sum to the score.

    A cue has its contribution, negation included; a negator and every other token have 0. What a negator
    does on its own shows in `deletion_effects`.
    """
    found = [0] * len(example.tokens)
    for cue, place, _ in _located(example):
        found[place] = cue.contribution
    return tuple(found)


def deletion_effects(example: Example) -> tuple[int, ...]:
    """By how much the score falls if one token is deleted: what leave-one-out finds if a model is the rule.

    Without its cue a clause counts nothing; without its negator it counts the other way round, so that a
    negator has twice the contribution of its cue.
    """
    found = [0] * len(example.tokens)
    for cue, place, negator in _located(example):
        found[place] = cue.contribution
        if negator is not None:
            found[negator] = 2 * cue.contribution
    return tuple(found)


def _located(example: Example) -> Iterator[tuple[Cue, int, int | None]]:
    """The cues that count, with the positions of their words and of their negators."""
    negator = None
    for place in example.rationale or ():
        word = example.tokens[place].lower()
        if word in NEGATORS:
            negator = place
        elif word in GRADES:
            yield Cue(word, negator is not None), place, negator
            negator = None
        else:
            raise Refusal(
                f"text {example.id!r}",
                got=f"the marked word {word!r}",
                needs="a rationale of graded words and negators",
                way_out="Only texts of planted-reviews have contributions by its rule.",
            )
    if not example.rationale:
        raise Refusal(
            f"text {example.id!r}",
            got="no marked words",
            needs="the rationale that planted-reviews stores with every text",
            way_out="Load the corpus again.",
        )
