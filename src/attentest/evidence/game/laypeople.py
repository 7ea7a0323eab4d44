"""Laypeople (Treviso & Martins 2020): linear models that guess a classifier's answer from a bag of words.

There is one for every kind of message, and all learn at once: they read the same texts in the same order, so
their weights lie side by side in one table of words, and a step moves the rows of the words that it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.game.gliding_adam import GlidingAdam
from attentest.evidence.game.messages import Messages
from attentest.refusal import Refusal

RATE, EPOCHS, PATIENCE = 1e-3, 10, 3  # the paper's
BATCH = 16  # of its classifier; of its layperson no size is known
MOST = 2**25  # numbers in the table of weights, of which four are held: a gigabyte
AT_ONCE = 4_000_000  # numbers while listening

Table = Float[Tensor, "word layperson class"]
Answers = Int[np.ndarray, " text"]


@final
@dataclass(frozen=True, eq=False)
class Laypeople:
    """What each word says for each class, to each of them."""

    table: Table

    def says(self, messages: Messages) -> Int[np.ndarray, "text layperson"]:
        """The likeliest class, and of equals the first."""
        size = self.table[0].numel()
        said = [_logits(self.table, *_tensors(part)).argmax(-1) for part in _parts(messages, size)]
        return torch.cat(said).numpy()


def taught(
    lessons: Messages,
    answers: Answers,
    exam: Messages,
    expected: Int[np.ndarray, " asked"],
    *,
    words: int,
    classes: int,
    rng: np.random.Generator,
) -> Laypeople:
    """Those who, of all epochs, guessed the classifier's answers best on other texts (dev).

    They start from zero: of a word that was never sent a layperson then knows nothing, where a random start
    would make it a little evidence for anything.
    """
    table = _empty(words, lessons.sent.shape[1], classes)
    adam = GlidingAdam(table, rate=RATE, steps=EPOCHS * -(-len(lessons) // BATCH))
    best, highest = table.clone(), np.full(table.shape[1], -1.0)
    waited = np.zeros(table.shape[1], dtype=np.int64)
    for _ in range(EPOCHS):
        order = rng.permutation(len(lessons))
        _read_through(adam, lessons.only(order), answers[order])
        guessed = (Laypeople(table).says(exam) == expected[:, None]).mean(0)
        better = (guessed > highest) & (waited < PATIENCE)
        best[:, better] = table[:, better]
        highest, waited = np.where(better, guessed, highest), np.where(better, 0, waited + 1)
        if (waited >= PATIENCE).all():
            break
    return Laypeople(best)


def _empty(words: int, laypeople: int, classes: int) -> Table:
    if words * laypeople * classes > MOST:
        raise Refusal(
            "laypeople",
            got=f"{laypeople} of them, {words:,} words and {classes} classes",
            needs=f"at most {MOST:,} weights in all",
            way_out="Ask for fewer k and draws; a corpus of many answers is not for a linear layperson.",
        )
    # Texts that contradict each other cancel in a gradient. In single precision they would leave rounding,
    # and Adam makes whole steps even of that.
    return torch.zeros(words, laypeople, classes, dtype=torch.float64)


def _read_through(adam: GlidingAdam, lessons: Messages, answers: Answers) -> None:
    """One epoch in this order of texts."""
    for begin in range(0, len(lessons), BATCH):
        end = min(begin + BATCH, len(lessons))
        words, texts, sent = _tensors(lessons.span(begin, end))
        rows, place = torch.unique(words, return_inverse=True)
        adam.catch_up(rows)
        slope = _logits(adam.table[rows], place, texts, sent).softmax(-1)
        slope[torch.arange(end - begin), :, torch.from_numpy(answers[begin:end])] -= 1.0
        slope /= end - begin
        gradient = slope.new_zeros(len(rows), *slope.shape[1:])
        adam.step(rows, gradient.index_add_(0, place, sent * slope[texts]))
    adam.catch_up()


def _logits(
    table: Table,
    words: Int[Tensor, " token"],
    texts: Int[Tensor, " token"],
    sent: Float[Tensor, "token layperson 1"],
) -> Float[Tensor, "text layperson class"]:
    """The sum of what the words of a message say."""
    count = int(texts[-1]) + 1  # the constant is in every text
    return table.new_zeros(count, *table.shape[1:]).index_add_(0, texts, sent * table[words])


def _tensors(
    messages: Messages,
) -> tuple[Int[Tensor, " token"], Int[Tensor, " token"], Float[Tensor, "token layperson 1"]]:
    """Words, the text of each, and 1 where it was sent."""
    texts = np.repeat(np.arange(len(messages)), messages.lengths)
    sent = torch.from_numpy(messages.sent).double()[:, :, None]
    return torch.from_numpy(messages.words), torch.from_numpy(texts), sent


def _parts(messages: Messages, size: int) -> Iterator[Messages]:
    """As many texts at a time as memory should hold."""
    ends = np.cumsum(messages.lengths)
    begin = 0
    while begin < len(messages):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + AT_ONCE // size, side="right")))
        yield messages.span(begin, end)
        begin = end
