"""Laypeople that learn side by side in one table, beside one at a time in a table of its own."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional

from attentest.evidence.game.laypeople import BATCH, EPOCHS, RATE, taught
from attentest.evidence.game.messages import Messages, by_chance
from benchmarks.made import SHORT, Row, made_corpus, seconds

TEXTS, WORDS, LAYPEOPLE = 6354, 14_000, 44  # of SST; 44 messages are what the experiment sends by default
PLAIN = 2  # laypeople that are taught plainly; the rest is arithmetic


def made_messages() -> tuple[Messages, np.ndarray]:
    """Five random words of every text, drawn anew for each layperson, and answers that words decide."""
    rng = np.random.default_rng(0)
    texts = [np.array([int(word[1:]) + 1 for word in e.tokens]) for e in made_corpus(SHORT, TEXTS).train[:-1]]
    lengths = np.array([len(text) for text in texts])
    five = np.minimum(lengths, 5)
    chosen = np.stack([by_chance(five, lengths, rng=rng) for _ in range(LAYPEOPLE)], axis=1)
    nothing = [np.empty(0, dtype=np.int64)] * len(texts)
    answers = np.array([int(text.sum() % 2) for text in texts])
    return Messages.of(np.concatenate(texts), lengths, chosen, nothing), answers


def plain_lessons(messages: Messages, answers: np.ndarray, layperson: int) -> None:
    """One layperson: torch's own bags of words, its own Adam over the whole table."""
    sent = messages.sent[:, layperson]
    counts = np.add.reduceat(sent.astype(np.int64), np.cumsum(messages.lengths) - messages.lengths)
    bags = np.split(messages.words[sent], np.cumsum(counts)[:-1])
    linear = torch.nn.EmbeddingBag(WORDS + 1, 2, mode="sum")
    adam, rng = torch.optim.Adam(linear.parameters(), lr=RATE), np.random.default_rng(0)
    for _ in range(EPOCHS):
        order = rng.permutation(len(messages))
        for begin in range(0, len(order), BATCH):
            some = order[begin : begin + BATCH]
            words = torch.from_numpy(np.concatenate([bags[text] for text in some]))
            starts = torch.from_numpy(np.cumsum(counts[some]) - counts[some])
            adam.zero_grad()
            functional.cross_entropy(linear(words, starts), torch.from_numpy(answers[some])).backward()
            adam.step()


def rows() -> list[Row]:
    messages, answers = made_messages()

    def ours() -> None:
        rng = np.random.default_rng(0)
        taught(messages, answers, messages, answers, words=WORDS + 1, classes=2, rng=rng)

    def plain() -> None:
        for layperson in range(PLAIN):
            plain_lessons(messages, answers, layperson)

    slow = seconds(plain, 1) * LAYPEOPLE / PLAIN
    name = f"{LAYPEOPLE} laypeople, {TEXTS:,} texts, {EPOCHS} epochs"
    return [(name, slow, seconds(ours, 1), "rows of words: gathering, Adam, scattering")]
