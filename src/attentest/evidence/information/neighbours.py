"""Who is near whom: what a nearest-neighbour estimate of information is made of (Ross 2014)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.information.seeding import ROUNDING
from attentest.refusal import Refusal

CELLS = 2**22  # distances held at once


class Neighbours(NamedTuple):
    """How many other texts lie no further than a text's k-th neighbour of the same symbol."""

    alike: Int[Tensor, " text"]  # of the same symbol: k, or more where several are equally far; 0: alone
    within: Int[Tensor, " text"]  # of any symbol


def neighbours(
    vectors: Float[Tensor, "text hidden"], symbols: Int[Tensor, " text"], number: int = 3
) -> Neighbours:
    """Counted for every text. A symbol of few texts uses all it has; one text alone is as if absent.

    Ties count in both numbers: a token-wise encoder gives every occurrence of a word the same vector, and
    then the k-th neighbour is no further than some others (Gao et al. 2017).
    """
    if number < 1:
        raise Refusal(
            "counting neighbours",
            got=f"the {number}-th neighbour",
            needs="the first or a later one",
            way_out="3 is the usual choice.",
        )
    about = vectors - vectors.mean(0)
    squares, across = about.square().sum(1), about.T.contiguous()
    alone = torch.bincount(symbols)[symbols] == 1
    alike, within = torch.zeros_like(symbols), torch.zeros_like(symbols)
    for symbol in symbols[~alone].unique():
        members = (symbols == symbol).nonzero()[:, 0]
        k = min(number, len(members) - 1)
        for some in members.split(max(1, CELLS // len(vectors))):
            apart = (squares[some, None] + squares).addmm_(about[some], across, alpha=-2)
            apart[:, alone] = torch.inf
            apart[torch.arange(len(some)), some] = torch.inf
            own = apart[:, members]
            reach = own.topk(k, largest=False).values.amax(1, keepdim=True)
            # A difference within rounding is a tie: it would depend on the order of summation.
            reach += ROUNDING * torch.finfo(apart.dtype).eps * (squares[some, None] + reach)
            alike[some], within[some] = (own <= reach).sum(1), (apart <= reach).sum(1)
    return Neighbours(alike, within)
