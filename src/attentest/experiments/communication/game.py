"""One classifier's communication game: what is sent of its texts, who learns from it, what they guess."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from attentest.evidence.game.laypeople import Laypeople, taught
from attentest.evidence.game.messages import Messages, by_chance, counted, ranks
from attentest.experiments.communication.conclude import (
    CHANCE,
    EMBEDDED,
    JOINT,
    RANDOM,
    SILENCE,
    SURROGATE,
    WHOLE,
)
from attentest.experiments.shared.explained_split import IMPORTANCES, ExplainedSplit

Scores = Float[np.ndarray, " token"]
Columns = dict[str, Float[np.ndarray, " text"]]
# A message of a split by its name, True where a word is sent.
Message = tuple[str, Bool[np.ndarray, " _"]]
Sent = list[Message]  # what was drawn several times is there as often, under the same name


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Game:
    """Laypeople learn from train, the best epoch of each is chosen on dev, and test is asked."""

    train: ExplainedSplit
    dev: ExplainedSplit
    test: ExplainedSplit
    vocabulary: int
    classes: int

    def columns(self, sizes: tuple[int, ...], draws: int, *, rng: np.random.Generator) -> Columns:
        """`agrees_` and `right_` of every message.

        In a first round one layperson hears nothing and another everything; what the second has learnt is
        what the surrogate chooses by in the round of all others.
        """
        extremes = [untouched(split) for split in self.splits]
        first = self._taught(extremes, rng)
        sent = [[*messages(split, surrogate(split, first), sizes, draws, rng)] for split in self.splits]
        return self._guesses(first, extremes[-1]) | self._guesses(self._taught(sent, rng), sent[-1])

    def joint_columns(
        self,
        weights: Sequence[Float[np.ndarray, " _"]],
        sizes: tuple[int, ...],
        draws: int,
        *,
        rng: np.random.Generator,
    ) -> Columns:
        """The same of an explainer that learnt together with a layperson, by its weights of every split.

        Who hears its words here has learnt from them as from anybody's: what the two agreed on while they
        learnt counts only as far as it can be learnt again from the words alone. `words_joint` is how many
        words have weight.
        """
        sent = [
            [*joint_messages(split, own, sizes, draws, rng)]
            for split, own in zip(self.splits, weights, strict=True)
        ]
        words = counted(weights[-1] > 0, self.test.lengths).astype(np.float64)
        return {f"words_{JOINT}": words} | self._guesses(self._taught(sent, rng), sent[-1])

    @property
    def splits(self) -> tuple[ExplainedSplit, ExplainedSplit, ExplainedSplit]:
        """Those who learn, those who choose, those who are asked."""
        return self.train, self.dev, self.test

    @cached_property
    def teachable(self) -> bool:
        """Whether the classifier has an answer to any text of train and of dev."""
        return bool(self.train.defined.any() and self.dev.defined.any())

    @property
    def _words(self) -> int:
        """A query's words come behind the text's."""
        return self.vocabulary * (2 if self.train.split.queries else 1)

    def _taught(self, sent: list[Sent], rng: np.random.Generator) -> Laypeople:
        """A layperson for each message, from the texts that the classifier has an answer to."""
        if not self.teachable:
            return Laypeople(torch.zeros(self._words, len(sent[0]), self.classes, dtype=torch.float64))
        (lessons, answers), (exam, expected) = (
            self._lessons(self.train, sent[0]),
            self._lessons(self.dev, sent[1]),
        )
        return taught(lessons, answers, exam, expected, words=self._words, classes=self.classes, rng=rng)

    def _lessons(self, split: ExplainedSplit, sent: Sent) -> tuple[Messages, Int[np.ndarray, " text"]]:
        there = np.flatnonzero(split.defined)
        return split.messages(_chosen(sent), self.vocabulary).only(there), split.answers[there]

    def _guesses(self, people: Laypeople, sent: Sent) -> Columns:
        """How often the laypeople of each message say what the classifier says, and what is right.

        NaN where there is nothing to be guessed, and everywhere if there was nothing to learn from.
        """
        test = self.test
        says = people.says(test.messages(_chosen(sent), self.vocabulary))
        names = np.array([name for name, _ in sent])
        asked = test.defined & self.teachable
        found: Columns = {}
        for what, truth in (("agrees", test.answers), ("right", test.split.labels)):
            hits = (says == truth[:, None]).astype(np.float64)
            for name in dict.fromkeys(names.tolist()):
                found[f"{what}_{name}"] = np.where(asked, hits[:, names == name].mean(1), np.nan)
        return found


def untouched(split: ExplainedSplit) -> Sent:
    """No word of any text, and all of them."""
    everything = np.ones(split.lengths.sum(), dtype=bool)
    return [(SILENCE, ~everything), (WHOLE, everything)]


def messages(
    split: ExplainedSplit, by_surrogate: Scores, sizes: tuple[int, ...], draws: int, rng: np.random.Generator
) -> Iterator[Message]:
    """What each explainer sends of a split, and random words: as many as it sent of each text.

    A text that is shorter than k is sent whole. Words without weight are never sent in the name of attention,
    so a sparse one may send fewer than k, and has random words of its own.
    """
    lengths, support = split.lengths, split.support
    ranked = {name: ranks(split.importances[name], lengths, rng=rng) for name in IMPORTANCES}
    ranked[SURROGATE] = ranks(by_surrogate, lengths, rng=rng)
    for k in sizes:
        for name, rank in ranked.items():
            yield f"{name}@{k}", (rank < k) & (split.attended | (name != "attention"))
        for _ in range(draws):
            yield f"{RANDOM}@{k}", by_chance(np.minimum(k, lengths), lengths, rng=rng)
            yield f"{CHANCE}attention@{k}", by_chance(np.minimum(k, support), lengths, rng=rng)
    yield EMBEDDED, split.attended
    for _ in range(draws):
        yield f"{CHANCE}{EMBEDDED}", by_chance(support, lengths, rng=rng)


def joint_messages(
    split: ExplainedSplit, weights: Scores, sizes: tuple[int, ...], draws: int, rng: np.random.Generator
) -> Iterator[Message]:
    """Its k words of largest weight, never one without, and as many random ones."""
    rank, there = ranks(weights, split.lengths, rng=rng), weights > 0
    support = counted(there, split.lengths)
    for k in sizes:
        yield f"{JOINT}@{k}", (rank < k) & there
        for _ in range(draws):
            yield f"{CHANCE}{JOINT}@{k}", by_chance(np.minimum(k, support), split.lengths, rng=rng)


def surrogate(split: ExplainedSplit, people: Laypeople) -> Scores:
    """How much more each word speaks for the classifier's answer than for the average one.

    To the layperson who heard whole texts, the last of the first round.
    """
    learnt = people.table[:, -1].numpy()
    answers = np.repeat(split.answers, split.lengths)
    return learnt[split.words, answers] - learnt[split.words].mean(1)


def _chosen(sent: Sent) -> Bool[np.ndarray, "token layperson"]:
    return np.stack([chosen for _, chosen in sent], axis=1)
