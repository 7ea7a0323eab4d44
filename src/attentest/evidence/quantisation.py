"""Vectors become symbols: k-means, the quantiser of Wen et al. (2022).

Lloyd's steps from k-means++ seeds, the best of some restarts, as scikit-learn has them. Here every rank of
every model is quantised, so two things are done for speed. All restarts draw their seeds together, one
product a step. And a centre whose members stayed has not moved, so its distances are those of the step
before: only moved centres are measured again, and after a few steps these are few. The steps remain Lloyd's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.refusal import Refusal

Vectors = Float[Tensor, "text hidden"]
Centres = Float[Tensor, "symbol hidden"]
Symbols = Int[Tensor, " text"]

# Rounding tells copies of a vector apart by a few of these, relative to its length: they are one place.
ROUNDING = 64


class Codebook(NamedTuple):
    """Centres, the symbol of each vector they were fitted to, and the squared distances they leave."""

    centres: Centres
    symbols: Symbols
    inertia: float


def k_means(
    vectors: Vectors, number: int, *, rng: torch.Generator, restarts: int = 10, iterations: int = 300
) -> Codebook:
    """The tightest of some clusterings into `number`; fewer only where the vectors lie in fewer places."""
    if not 1 <= number <= len(vectors) or restarts < 1:
        raise Refusal(
            "quantising vectors",
            got=f"{len(vectors)} vectors, {number} clusters, {restarts} restarts",
            needs="at least as many vectors as clusters, and one restart",
            way_out="Ask for fewer clusters, or give more texts.",
        )
    middle = vectors.mean(0)
    about = vectors - middle  # the differences of large numbers would be lost to rounding
    across = about.T.contiguous()
    found = [
        _lloyd(about, across, about[places], iterations)
        for places in _seeds(about, across, number, restarts, rng)
    ]
    best = min(found, key=lambda codebook: codebook.inertia)
    inertia = max(0.0, best.inertia + float(about.double().square().sum()))
    return Codebook(best.centres + middle, best.symbols, inertia)


def nearest(vectors: Vectors, centres: Centres) -> Symbols:
    """The symbol of vectors that the centres need not have been fitted to."""
    middle = centres.mean(0)
    return _apart(centres - middle, (vectors - middle).T.contiguous()).min(0).indices


class Quantised(NamedTuple):
    """The symbols of every rank, from codebooks of one size."""

    symbols: Int[Tensor, "rank text"]
    number: int
    small: float  # the largest share, over the ranks, of clusters with fewer than two members


def rank_symbols(
    vectors: Float[Tensor, "rank text hidden"],
    numbers: Sequence[int],
    *,
    rng: torch.Generator,
    restarts: int = 10,
    singletons: float = 0.05,
) -> Quantised:
    """Each rank by a codebook of its own, all of the largest of these sizes at which no cluster is small.

    Small is one member or none, and a share of `singletons` may be small (A10). Where no size does, it is the
    smallest: whoever reads `small` sees that it failed.
    """
    texts = vectors.shape[1]
    sizes = [number for number in sorted(numbers, reverse=True) if number <= texts]
    if not sizes:
        raise Refusal(
            "quantising hidden states",
            got=f"{texts} texts that are long enough for {min(numbers, default=0)} clusters or more",
            needs="at least as many texts as clusters",
            way_out="Give smaller numbers of clusters, or more texts.",
        )
    for number in sizes[:-1]:
        found = _at_each_rank(vectors, number, singletons, restarts, rng)
        if found.small <= singletons:
            return found
    return _at_each_rank(vectors, sizes[-1], 1.0, restarts, rng)


def _at_each_rank(
    vectors: Float[Tensor, "rank text hidden"],
    number: int,
    allowed: float,
    restarts: int,
    rng: torch.Generator,
) -> Quantised:
    """All ranks, or those up to the first with more small clusters than allowed: the rest changes nothing."""
    found, small = [], 0.0
    for of_rank in vectors:
        found.append(k_means(of_rank, number, rng=rng, restarts=restarts).symbols)
        small = max(small, small_share(found[-1], number))
        if small > allowed:
            break
    return Quantised(torch.stack(found), number, small)


def small_share(symbols: Symbols, number: int) -> float:
    """The share of `number` clusters that have fewer than two members."""
    return float((torch.bincount(symbols, minlength=number) < 2).double().mean())


def _apart(centres: Centres, across: Float[Tensor, "hidden text"]) -> Float[Tensor, "symbol text"]:
    """Squared distances, less the vector's own square: that is the same for every centre."""
    return (centres.square().sum(1, keepdim=True)).addmm(centres, across, alpha=-2)


def _seeds(
    vectors: Vectors,
    across: Float[Tensor, "hidden text"],
    number: int,
    restarts: int,
    rng: torch.Generator,
) -> list[Int[Tensor, " seed"]]:
    """For every restart the places of its seeds, drawn by squared distance from those before (k-means++).

    A restart has fewer seeds where they already stand on every place there is.
    """
    squares = vectors.square().sum(1)
    runs = torch.arange(restarts, device=vectors.device)
    far = torch.ones(restarts, len(vectors), dtype=torch.float64, device=vectors.device)  # no seed yet
    chosen, left = [], []
    for step in range(number):
        heaped = far.cumsum(1)
        left.append(heaped[:, -1] > 0)
        drawn = torch.rand(restarts, 1, dtype=torch.float64, generator=rng).to(far.device) * heaped[:, -1:]
        place = torch.searchsorted(heaped, drawn, right=True)[:, 0].clamp(max=len(vectors) - 1)
        chosen.append(place)
        lengths = squares[place][:, None] + squares
        apart = lengths - 2 * vectors[place] @ across
        apart = torch.where(_same_place(apart, lengths), 0.0, apart).double()
        far = apart if step == 0 else torch.minimum(far, apart)
        far[runs, place] = 0.0
    return [places[some] for places, some in zip(torch.stack(chosen, 1), torch.stack(left, 1), strict=True)]


def _same_place(
    apart: Float[Tensor, "run text"], lengths: Float[Tensor, "run text"]
) -> Bool[Tensor, "run text"]:
    """Whether a squared distance is no more than rounding, beside the squared lengths behind it."""
    return apart <= ROUNDING * torch.finfo(apart.dtype).eps * lengths


def _lloyd(
    vectors: Vectors, across: Float[Tensor, "hidden text"], centres: Centres, iterations: int
) -> Codebook:
    """Until no vector changes its cluster; the inertia lacks the vectors' own squares, as `_apart` does.

    An empty cluster keeps its centre: a vector may come back.
    """
    apart = _apart(centres, across)
    symbols = apart.min(0).indices
    sums = torch.zeros_like(centres).index_add_(0, symbols, vectors)
    moved = torch.arange(len(centres), device=vectors.device)
    for _ in range(iterations):
        sizes = torch.bincount(symbols, minlength=len(centres))[moved, None]
        centres[moved] = torch.where(sizes > 0, sums[moved] / sizes.clamp(min=1), centres[moved])
        apart[moved] = _apart(centres[moved], across)
        closest = apart.min(0).indices
        changed = (closest != symbols).nonzero()[:, 0]
        if not len(changed):
            break
        came, went, of_changed = closest[changed], symbols[changed], vectors[changed]
        sums.index_add_(0, came, of_changed).index_add_(0, went, of_changed, alpha=-1)
        moved, symbols = torch.cat([came, went]).unique(), closest
    return Codebook(centres, symbols, float(apart.min(0).values.double().sum()))
