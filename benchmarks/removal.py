"""Removing items until decisions flip, beside one removal and one decision at a time."""

from __future__ import annotations

import importlib.util

import numpy as np
import torch

from attentest.evidence.permutation import orders
from attentest.evidence.removal.decisions import attended, in_double, without
from attentest.experiments.removal.observe import measured
from attentest.foreign.roads import Whole
from attentest.foreign.views import HeadsTogether
from attentest.model.network import AttentionModel
from attentest.model.reader import readings
from attentest.model.seam import Reading
from benchmarks.hugging_face import bert_sized, bert_split
from benchmarks.made import LONG, SHORT, Row, Size, bench, seconds

DRAWN = 5
LOUD = 15.0  # an untrained decoder hardly hears attention, and nothing would ever flip
TEXTS, WORDS = 10, 30
PLAIN = {SHORT: 173, LONG: 24}  # texts that the plain way is timed on; the rest is arithmetic


def plain_first_flip(model: AttentionModel, reading: Reading, order: list[int]) -> int:
    """One text, one order: zero a weight, renormalise, decide, until the answer is another one."""
    own = bool(model.decide(reading) > 0)
    weights = reading.weights.clone()
    for count, unit in enumerate(order, start=1):
        weights[0, unit] = 0.0
        left = weights.sum()
        given = weights / left if left > 0 else weights
        if bool(model.decide(reading, given) > 0) != own:
            return count
    return -1


def plain_removal(model: AttentionModel, reading: Reading, rng: torch.Generator) -> list[int]:
    """All rankings of one text; the gradient goes back through the decision."""
    free = reading.weights.clone().requires_grad_()
    logit = model.decide(reading, free)
    torch.sigmoid(logit.abs()).sum().backward()
    assert free.grad is not None
    weights = reading.weights[0]
    scores = [torch.rand(len(weights), generator=rng) for _ in range(DRAWN)]
    scores += [weights, free.grad[0], weights * free.grad[0]]
    with torch.no_grad():
        return [plain_first_flip(model, reading, one.argsort(descending=True).tolist()) for one in scores]


def removal_row(size: Size) -> Row:
    model, split, _ = bench(size, vectors="random(1.0)")
    with torch.no_grad():
        model.decoder.dense.weight.mul_(LOUD)
        read = [reading for _, reading in readings(model, split)]
        # No class wins everywhere: a decision that never flips is the plain way's longest.
        model.decoder.dense.bias -= torch.cat([model.decide(reading) for reading in read]).median()
        read = [reading for _, reading in readings(model, split)]
        chosen = np.linspace(0, len(split) - 1, PLAIN[size]).astype(int)
        texts = [model.read(split.batch([row])) for row in chosen]

    def ours() -> None:
        for reading in map(in_double, read):
            drawn = orders(attended(reading), DRAWN, rng=torch.Generator().manual_seed(0))
            measured(model, reading, drawn)

    def plain() -> None:
        for reading in texts:
            plain_removal(model, reading, torch.Generator().manual_seed(0))

    slow = seconds(plain, 1) * size.texts / len(texts)
    return f"removal to the first flip, {size.name}", slow, seconds(ours), "sums along orders"


def transformer_row() -> Row:
    """Last layer of a BERT, heads together; the plain way reads the whole text again for every removal."""
    inner = bert_sized()
    model, split = HeadsTogether(inner), bert_split(inner, TEXTS, WORDS)
    with torch.no_grad():
        reading = model.read(split.batch(range(TEXTS)))
    drawn = orders(attended(reading), DRAWN, rng=torch.Generator().manual_seed(0))
    whole = Whole(inner.transformer, inner.proof, inner.layer, inner.typed, inner.tables)

    @torch.no_grad()
    def plain() -> None:
        inner.road, fast = whole, inner.road
        model.decide(reading, without(reading.weights, drawn[:, :1] == 0))
        inner.road = fast

    removals = (DRAWN + 3) * WORDS
    name = f"removal to the first flip, last layer of a BERT, {TEXTS} texts of {WORDS + 2} places"
    slow, fast = removals * seconds(plain, 1), seconds(lambda: measured(model, reading, drawn), 1)
    return f"{name} (plain: 1 in {removals})", slow, fast, "feed-forward layers"


def rows() -> list[Row]:
    transformers = importlib.util.find_spec("transformers") is not None
    return [removal_row(SHORT), removal_row(LONG), *([transformer_row()] if transformers else [])]
