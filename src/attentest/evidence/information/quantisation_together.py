"""k-means of all ranks and all restarts in lockstep: the quantiser's road on a GPU.

A GPU waits for its orders. One fit after another orders a few small kernels a step and asks after each step
whether to go on: fifty ranks of ten restarts ask some ten thousand times. Here every run of every rank takes
its step in the same few products, one question is asked for all, and whoever has arrived leaves the batch.
On a CPU, where orders cost nothing, it takes four times as long as measuring only the centres that moved.

Sums are products with memberships, not additions in the order in which threads arrive: the same bits again.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.information.seeding import seeds
from attentest.model.precision import full_precision

BYTES = 2**30  # that a temporary of a step may have


class Codebooks(NamedTuple):
    """What many fits ended with. Inertias lack the vectors' own squares, which no centre changes."""

    centres: Float[Tensor, "run symbol hidden"]
    real: Bool[Tensor, "run symbol"]  # not all, where a run's vectors lie in fewer places
    symbols: Int[Tensor, "run text"]
    inertia: Float[Tensor, " run"]


class Assigned(NamedTuple):
    """Who is nearest to which centre, and what the next centres are made of."""

    symbols: Int[Tensor, "run text"]
    inertia: Float[Tensor, " run"]
    sums: Float[Tensor, "run symbol hidden"]
    sizes: Float[Tensor, "run symbol 1"]


@full_precision()
def tightest(
    vectors: Float[Tensor, "rank text hidden"],
    number: int,
    *,
    rng: torch.Generator,
    restarts: int,
    iterations: int,
) -> Codebooks:
    """Of every rank the tightest of some clusterings. Distances are sharpest where vectors lie about zero."""
    ranks = torch.arange(len(vectors), device=vectors.device)
    begun = seeds(vectors, vectors.mT, number, restarts, rng)
    places, real = (of_ranks.flatten(0, 1) for of_ranks in begun)
    rank = ranks.repeat_interleave(restarts)
    found = lloyd(vectors, rank, vectors[rank[:, None], places], real, iterations)
    best = ranks * restarts + found.inertia.view(-1, restarts).argmin(1)
    return Codebooks(*(of_runs[best] for of_runs in found))


def lloyd(
    vectors: Float[Tensor, "rank text hidden"],
    rank: Int[Tensor, " run"],
    centres: Float[Tensor, "run symbol hidden"],
    real: Bool[Tensor, "run symbol"],
    iterations: int,
) -> Codebooks:
    """Every run on the vectors of its rank, until no vector of the run changes its cluster.

    An empty cluster keeps its centre: a vector may come back. A centre that is not real is infinitely far.
    """
    centres = centres.where(real[..., None], 0.0)
    symbols, inertia, sums, sizes = _assigned(vectors, rank, centres, real)
    running = torch.arange(len(rank), device=rank.device)
    for _ in range(iterations):
        moved = torch.where(sizes > 0, sums / sizes.clamp(min=1), centres[running])
        now = _assigned(vectors, rank[running], moved, real[running])
        changed = (now.symbols != symbols[running]).any(1)
        centres[running], symbols[running], inertia[running] = moved, now.symbols, now.inertia
        on = changed.nonzero()[:, 0]  # the one wait of a step
        if not len(on):
            break
        running, sums, sizes = running[on], now.sums[on], now.sizes[on]
    return Codebooks(centres, real, symbols, inertia)


def _assigned(
    vectors: Float[Tensor, "rank text hidden"],
    rank: Int[Tensor, " run"],
    centres: Float[Tensor, "run symbol hidden"],
    real: Bool[Tensor, "run symbol"],
) -> Assigned:
    """Every vector to its nearest centre, some texts at a time: each run has them and their distances."""
    squares = centres.square().sum(2).masked_fill(~real, torch.inf)[..., None]
    sums, sizes = torch.zeros_like(centres), torch.zeros_like(squares)
    inertia = torch.zeros(len(rank), dtype=torch.float64, device=centres.device)
    symbols = []
    wide = len(rank) * max(centres.shape[1:]) * centres.element_size()
    for some in vectors.split(max(1, BYTES // wide), dim=1):
        own = some[rank]
        apart = torch.baddbmm(squares, centres, own.mT, alpha=-2)
        least, closest = apart.min(1)
        member = apart.zero_().scatter_(1, closest[:, None], 1.0)
        sums.baddbmm_(member, own)
        sizes += member.sum(2, keepdim=True)
        inertia += least.double().sum(1)
        symbols.append(closest)
    return Assigned(torch.cat(symbols, 1), inertia, sums, sizes)
