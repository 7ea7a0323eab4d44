"""Vectors become symbols: k-means, the quantiser of Wen et al. (2022).

Lloyd's steps from k-means++ seeds, the best of some restarts, as scikit-learn has them. Here every rank of
every model is quantised, so two things are done for speed. All restarts draw their seeds together, one
product a step. And a centre whose members stayed has not moved, so its distances are those of the step
before: only moved centres are measured again, and after a few steps these are few. The steps remain Lloyd's.
On a GPU there is another road, on which all ranks and restarts go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.information.quantisation_together import tightest
from attentest.evidence.information.seeding import seeds
from attentest.model.precision import full_precision
from attentest.refusal import Refusal

Vectors = Float[Tensor, "text hidden"]
Centres = Float[Tensor, "symbol hidden"]
Symbols = Int[Tensor, " text"]

ITERATIONS = 300


class Codebook(NamedTuple):
    """Centres, the symbol of each vector they were fitted to, and the squared distances they leave."""

    centres: Centres
    symbols: Symbols
    inertia: float


def k_means(
    vectors: Vectors, number: int, *, rng: torch.Generator, restarts: int = 10, iterations: int = ITERATIONS
) -> Codebook:
    """The tightest of some clusterings into `number`; fewer only where the vectors lie in fewer places."""
    _refuse_too_few(len(vectors), number, restarts)
    middle = vectors.mean(0)
    about = vectors - middle  # the differences of large numbers would be lost to rounding
    best = (_in_lockstep if on_gpu(vectors) else _in_turn)(about, number, restarts, iterations, rng)
    inertia = max(0.0, best.inertia + float(about.double().square().sum()))
    return Codebook(best.centres + middle, best.symbols, inertia)


def on_gpu(vectors: Tensor) -> bool:
    """Whether the vectors take the road on which all runs go together."""
    return vectors.is_cuda


def _refuse_too_few(texts: int, number: int, restarts: int) -> None:
    if not 1 <= number <= texts or restarts < 1:
        raise Refusal(
            "quantising vectors",
            got=f"{texts} vectors, {number} clusters, {restarts} restarts",
            needs="at least as many vectors as clusters, and one restart",
            way_out="Ask for fewer clusters, or give more texts.",
        )


def _in_turn(vectors: Vectors, number: int, restarts: int, iterations: int, rng: torch.Generator) -> Codebook:
    across = vectors.T.contiguous()
    found = [
        _lloyd(vectors, across, vectors[places], iterations)
        for places in _seeds(vectors, across, number, restarts, rng)
    ]
    return min(found, key=lambda codebook: codebook.inertia)


def _in_lockstep(
    vectors: Vectors, number: int, restarts: int, iterations: int, rng: torch.Generator
) -> Codebook:
    found = tightest(vectors[None], number, rng=rng, restarts=restarts, iterations=iterations)
    return Codebook(found.centres[found.real], found.symbols[0], float(found.inertia))


@full_precision()
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
    if on_gpu(vectors):
        return _at_all_ranks(vectors, number, restarts, rng)
    found, small = [], 0.0
    for of_rank in vectors:
        found.append(k_means(of_rank, number, rng=rng, restarts=restarts).symbols)
        small = max(small, small_share(found[-1], number))
        if small > allowed:
            break
    return Quantised(torch.stack(found), number, small)


def _at_all_ranks(
    vectors: Float[Tensor, "rank text hidden"], number: int, restarts: int, rng: torch.Generator
) -> Quantised:
    _refuse_too_few(vectors.shape[1], number, restarts)
    about = vectors - vectors.mean(1, keepdim=True)
    found = tightest(about, number, rng=rng, restarts=restarts, iterations=ITERATIONS)
    small = max(small_share(of_rank, number) for of_rank in found.symbols)
    return Quantised(found.symbols, number, small)


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
    """The places of every restart's seeds, fewer where they already stand on every place there is."""
    drawn = seeds(vectors, across, number, restarts, rng)
    return [places[real] for places, real in zip(*drawn, strict=True)]


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
