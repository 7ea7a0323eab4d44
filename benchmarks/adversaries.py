"""Adversarial attention: the exact optimum and our batched search beside the published one, done plainly."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from attentest.evidence.adversary.search import PublishedSearch
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.model.reader import readings
from attentest.model.seam import Reading
from benchmarks.made import LONG, SHORT, Row, Size, bench, seconds

LOUD = 15.0  # an untrained decoder hardly hears attention: every one would be allowed, and nothing searched
MEASURED = {SHORT: 64, LONG: 32}  # texts that the plain search is timed on; the rest is arithmetic


def divergence(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """Jensen-Shannon by the book, with a small number under every logarithm."""
    middle = 0.5 * (p + q)
    kl = [(x * ((x + 1e-10).log() - (middle + 1e-10).log())).sum(-1) for x in (p, q)]
    return 0.5 * (kl[0] + kl[1])


def plain_search(dense: nn.Linear, reading: Reading, k: int = 5, steps: int = 500) -> torch.Tensor:
    """One batch: k free attentions a text, a context vector and a decoder call each step, autograd, Adam."""
    hidden, own, absent = reading.hidden, reading.weights[:, None], ~reading.mask[:, None]
    output = torch.sigmoid(dense(own @ hidden))
    scores = (3 * torch.randn(len(hidden), k, hidden.shape[1])).requires_grad_()
    adam = torch.optim.Adam([scores], lr=0.01, amsgrad=True)
    for _ in range(steps):
        adam.zero_grad()
        weights = scores.masked_fill(absent, float("-inf")).softmax(-1)
        change = (torch.sigmoid(dense(weights @ hidden)) - output).abs().squeeze(-1)
        far = divergence(weights, own)
        apart = divergence(weights[:, :, None], weights[:, None]).sum((1, 2)) / (k * (k - 1))
        loss = (-far + 500 * functional.relu(change - 0.01)).sum() - apart.sum()
        loss.backward()
        adam.step()
    with torch.no_grad():
        weights = scores.masked_fill(absent, float("-inf")).softmax(-1)
        change = (torch.sigmoid(dense(weights @ hidden)) - output).abs().squeeze(-1)
        return divergence(weights, own).where(change <= 0.01, 0.0).amax(1)


def adversary_rows(size: Size) -> list[Row]:
    """Exact optimum against plain search, and our search against it."""
    model, split, _ = bench(size, vectors="random(1.0)")
    with torch.no_grad():
        model.decoder.dense.weight.mul_(LOUD)
        read = [reading for _, reading in readings(model, split)]  # by a decoder that hears attention
        batches = [model.read(split.batch(range(n, n + 32))) for n in range(0, MEASURED[size], 32)]
    decoder = nn.Linear(model.decoder.dense.in_features, 1).requires_grad_(False)
    decoder.load_state_dict(model.decoder.dense.state_dict())

    def plain() -> None:
        for reading in batches:
            plain_search(decoder, reading)

    def exact() -> None:
        for reading in read:
            strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, 0.01)

    def search() -> None:
        for reading in read:
            PublishedSearch().run(model, reading, rng=torch.Generator().manual_seed(0))

    slow = seconds(plain, 1) * size.texts / MEASURED[size]
    return [
        (
            f"adversary, exact against search, {size.name}",
            slow,
            seconds(exact, 3),
            "logarithms of pairs of tokens",
        ),
        (
            f"adversary, the published search, {size.name}",
            slow,
            seconds(search, 1),
            "element-wise work: no operation takes over a sixth",
        ),
    ]


def rows() -> list[Row]:
    return [*adversary_rows(SHORT), *adversary_rows(LONG)]
