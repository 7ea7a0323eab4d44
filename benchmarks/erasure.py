"""Leave-one-out beside the straightforward way: a full forward pass of the batch for every position."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.model.batch import buckets
from benchmarks.made import LONG, SHORT, Row, Size, bench, seconds
from benchmarks.plain import PlainModel

BATCH = 32
BOUNDS = {
    "bilstm": "arithmetic: matrix products are over half",
    "cnn": "taps and scores of changed units: matrix products are half",
    "average": "calls: the closed form itself is a subtraction a token",
}


class PlainCNN(nn.Module):
    """Parallel convolutions, additive attention, one sigmoid logit."""

    def __init__(self, words: int, emb: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, emb, padding_idx=0)
        self.kernels = nn.ModuleList(nn.Conv1d(emb, hidden // 4, k, padding=k // 2) for k in (1, 3, 5, 7))
        self.attend = nn.Sequential(
            nn.Linear(hidden, hidden // 2), nn.Tanh(), nn.Linear(hidden // 2, 1, bias=False)
        )
        self.out = nn.Linear(hidden, 1)

    def forward(self, tokens, mask):
        across = self.embedding(tokens).transpose(1, 2)
        hidden = torch.relu(torch.cat([kernel(across) for kernel in self.kernels], dim=1)).transpose(1, 2)
        weights = self.attend(hidden).squeeze(-1).masked_fill(~mask, float("-inf")).softmax(-1)
        return self.out((weights[..., None] * hidden).sum(1)).squeeze(-1), weights, hidden


def plain_leave_one_out(model: nn.Module, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Position by position: delete it from every text that has it, read the batch again."""
    with torch.no_grad():
        own = torch.sigmoid(model(tokens, mask)[0])
        changes = []
        for left in range(tokens.shape[1]):
            fewer = torch.cat([tokens[:, :left], tokens[:, left + 1 :]], dim=1)
            there = torch.cat([mask[:, :left], mask[:, left + 1 :]], dim=1)
            changes.append((torch.sigmoid(model(fewer, there)[0]) - own).abs())
        return torch.stack(changes, dim=1).masked_fill(~mask, 0.0)


def leave_one_out_row(encoder: str, size: Size) -> Row:
    """One row of the table; of the plain way only every `share`-th batch is run, and the time scaled up."""
    model, split, read = bench(size, encoder)

    def ours() -> None:
        for reading in read:
            leave_one_out(model, reading)

    words, emb, hidden = len(model.vocabulary), 300, 128
    other = PlainCNN(words, emb, hidden) if encoder == "cnn" else PlainModel(words, emb, hidden, encoder)
    chosen = buckets(split.lengths, BATCH)[size.share // 2 :: size.share]

    def plain() -> None:
        for rows in chosen:
            batch = split.batch(rows)
            plain_leave_one_out(other, batch.tokens, batch.mask)

    # Work grows with the square of a text's length.
    scale = np.square(split.lengths).sum() / np.square(split.lengths[np.concatenate(chosen)]).sum()
    name = f"leave-one-out, {encoder}, {size.name}"
    return name, float(scale) * seconds(plain, 1), seconds(ours, 2), BOUNDS[encoder]


def rows() -> list[Row]:
    return [leave_one_out_row(encoder, size) for size in (SHORT, LONG) for encoder in BOUNDS]
