"""Where k-means begins: k-means++ seeds of many runs, drawn together."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Rounding tells copies of a vector apart by a few of these, relative to its length: they are one place.
ROUNDING = 64


class Seeds(NamedTuple):
    """The texts that the seeds stand on. Where every place is taken, what is drawn is not `real`."""

    places: Int[Tensor, "*rank run seed"]
    real: Bool[Tensor, "*rank run seed"]  # the first, and all until places run out


def seeds(
    vectors: Float[Tensor, "*rank text hidden"],
    across: Float[Tensor, "*rank hidden text"],
    number: int,
    runs: int,
    rng: torch.Generator,
) -> Seeds:
    """For every run, in every rank if there are ranks, by squared distance from the seeds before (k-means++).

    One product a step serves all runs. All luck is drawn beforehand: it reaches a GPU in one transfer.
    """
    *ranks, texts, hidden = vectors.shape
    luck = torch.rand(number, *ranks, runs, 1, dtype=torch.float64, generator=rng).to(vectors.device)
    squares = _squares(vectors)
    far = torch.ones(*ranks, runs, texts, dtype=torch.float64, device=vectors.device)  # no seed yet
    chosen, left = [], []
    for step in range(number):
        heaped = far.cumsum(-1)
        left.append(heaped[..., -1] > 0)
        place = torch.searchsorted(heaped, luck[step] * heaped[..., -1:], right=True).clamp(max=texts - 1)
        chosen.append(place[..., 0])
        at = vectors.gather(-2, place.expand(*place.shape[:-1], hidden))
        lengths = squares.gather(-1, place[..., 0])[..., None] + squares[..., None, :]
        apart = lengths - 2 * at @ across
        apart = torch.where(_same_place(apart, lengths), 0.0, apart).double()
        far = apart if step == 0 else torch.minimum(far, apart)
        far.scatter_(-1, place, 0.0)
    return Seeds(torch.stack(chosen, -1), torch.stack(left, -1))


def _squares(vectors: Float[Tensor, "*rank text hidden"]) -> Float[Tensor, "*rank text"]:
    """Rank by rank: the squares of all coordinates are as large as the vectors."""
    if vectors.ndim == 2:
        return vectors.square().sum(1)
    return torch.stack([_squares(of_rank) for of_rank in vectors])


def _same_place(
    apart: Float[Tensor, "*rank run text"], lengths: Float[Tensor, "*rank run text"]
) -> Bool[Tensor, "*rank run text"]:
    """Whether a squared distance is no more than rounding, beside the squared lengths behind it."""
    return apart <= ROUNDING * torch.finfo(apart.dtype).eps * lengths
