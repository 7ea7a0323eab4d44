"""Gradient importance beside a backward pass of the whole model, 32 texts at a time."""

from __future__ import annotations

import torch

from attentest.evidence.importances.gradient import gradients
from attentest.model.batch import buckets
from attentest.model.reader import TEXTS, TOKENS
from benchmarks.made import LONG, SHORT, Row, Size, bench, seconds
from benchmarks.plain import PlainModel


def plain_gradient(model: PlainModel, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Attention held, the probability differentiated, gradient times input summed: as published."""
    model.zero_grad()
    embedded = model.embedding(tokens)
    embedded.retain_grad()
    torch.sigmoid(model.held(embedded, mask)).sum().backward()
    return (embedded.grad * embedded.detach()).sum(-1).abs().masked_fill(~mask, 0.0)


def row(size: Size) -> Row:
    model, split, _ = bench(size)
    other = PlainModel(len(model.vocabulary), 300, 128, "bilstm")
    batches = [split.batch(rows) for rows in buckets(split.lengths, 32)]
    wide = [split.batch(rows) for rows in buckets(split.lengths, TEXTS, tokens=TOKENS)]

    def plain() -> None:
        for batch in batches:
            plain_gradient(other, batch.tokens, batch.mask)

    def ours() -> None:
        for batch in wide:
            gradients(model, batch)

    return f"gradient importance, {size.name}", seconds(plain, 2), seconds(ours), "arithmetic of the LSTM"


def rows() -> list[Row]:
    return [row(SHORT), row(LONG)]
