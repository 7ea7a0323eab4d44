"""Influence of words on hidden states beside the straightforward way: a pass back for every state."""

from __future__ import annotations

import numpy as np
import torch

from attentest.evidence.importances.influence import AT_MOST, Positions, influence
from attentest.model.batch import Batch, buckets
from benchmarks.made import Row, Size, bench, seconds
from benchmarks.plain import PlainModel

MEDIUM, LONG = Size(128, 60, 100, 4), Size(128, 120, 240, 4)
BOUND = "arithmetic: products of gates with state and input weights"
BATCHES = {32: "32 texts a pass", 1: "a text a pass"}


def asked(mask: torch.Tensor, at_most: int) -> Positions:
    return Positions.sampled(mask, at_most, rng=torch.Generator().manual_seed(0))


def plain_influence(model: PlainModel, batch: Batch, at_most: int) -> torch.Tensor:
    """State by state: the gradient of its size, for one state of every text of the batch at once."""
    embedded = model.embedding(batch.tokens).detach().requires_grad_()
    sizes = model.read(embedded, batch.mask)[2].norm(dim=2).gather(1, asked(batch.mask, at_most).places)
    slopes = [torch.autograd.grad(state.sum(), embedded, retain_graph=True)[0] for state in sizes.unbind(1)]
    return torch.stack([slope.norm(dim=2) for slope in slopes], dim=1)


def influence_row(size: Size, at_most: int, texts: int) -> Row:
    """One row of the table; of the plain way only some batches of so many texts are run, and scaled up."""
    model, split, read = bench(size)
    other = PlainModel(len(model.vocabulary), 300, 128, "bilstm")

    def ours() -> None:
        for reading in read:
            influence(model, reading, asked(reading.mask, at_most))

    share = size.share if texts > 1 else 4 * size.share
    chosen = buckets(split.lengths, texts)[share // 2 :: share]

    def plain() -> None:
        for rows in chosen:
            plain_influence(other, split.batch(rows), at_most)

    work = split.lengths * np.minimum(split.lengths, at_most)
    scale = float(work.sum() / work[np.concatenate(chosen)].sum())
    states = "every state" if at_most > size.longest else f"{at_most} states"
    name = f"influence on {states}, {size.name}, {BATCHES[texts]}"
    return name, scale * seconds(plain, 2), seconds(ours), BOUND


def rows() -> list[Row]:
    asks = ((MEDIUM, 1000), (LONG, AT_MOST))
    return [influence_row(size, at_most, texts) for size, at_most in asks for texts in BATCHES]
