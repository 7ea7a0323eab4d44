"""Attentions score each unit: `z_t` from its hidden state and, where there is one, the query.

Inner widths are half the hidden width, as in Jain & Wallace's published code. Parameters of these
modules get no weight decay.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.model.networks.log_odds import LOG_ODDS
from attentest.shapes import Hidden, Query

Scores = Float[Tensor, "batch unit"]


@runtime_checkable
class Attention(Protocol):
    """What every attention is: a module from hidden states and a query to raw scores."""

    def __call__(self, hidden: Hidden, query: Query | None) -> Scores:
        """The raw scores, before any masking or projection."""
        ...


@final
class Additive(nn.Module):
    """`v . tanh(W h + b)` (Bahdanau et al. 2015); with a query `v . tanh(W1 h + W2 q)`."""

    def __init__(self, width: int, has_query: bool, wide: bool = False) -> None:
        super().__init__()
        inner = width if wide else width // 2
        self.of_hidden = nn.Linear(width, inner, bias=not has_query)
        self.of_query = nn.Linear(width, inner, bias=False) if has_query else None
        self.to_score = nn.Linear(inner, 1, bias=False)

    def forward(self, hidden: Hidden, query: Query | None) -> Scores:
        """Score by a one-layer network."""
        inner = self.of_hidden(hidden)
        if self.of_query is not None and query is not None:
            inner = inner + self.of_query(query)[:, None]
        return self.to_score(torch.tanh(inner)).squeeze(-1)


@final
class Dot(nn.Module):
    """`u . h` with a learned `u`, or `q . h`; divided by the root of the width unless told otherwise."""

    def __init__(self, width: int, has_query: bool, scaled: bool = True) -> None:
        super().__init__()
        self.learned = None if has_query else nn.Linear(width, 1, bias=False)
        self.divisor = math.sqrt(width) if scaled else 1.0

    def forward(self, hidden: Hidden, query: Query | None) -> Scores:
        """Score by an inner product."""
        if self.learned is not None:
            return self.learned(hidden).squeeze(-1) / self.divisor
        assert query is not None
        return torch.einsum("buh,bh->bu", hidden, query) / self.divisor


@final
class Deep(nn.Module):
    """`W2 relu(W1 relu(W_h h + W_q q))` (Wen et al. 2022, depth 2: the paper gives none)."""

    def __init__(self, width: int, has_query: bool) -> None:
        super().__init__()
        inner = width // 2
        self.of_hidden = nn.Linear(width, inner, bias=False)
        self.of_query = nn.Linear(width, inner, bias=False) if has_query else None
        self.layers = nn.Sequential(nn.ReLU(), nn.Linear(inner, inner), nn.ReLU(), nn.Linear(inner, 1))

    def forward(self, hidden: Hidden, query: Query | None) -> Scores:
        """Score by a deeper network."""
        inner = self.of_hidden(hidden)
        if self.of_query is not None and query is not None:
            inner = inner + self.of_query(query)[:, None]
        return self.layers(inner).squeeze(-1)


@final
class Multiplicative(nn.Module):
    """`h . W q` (Luong et al. 2015, "general"); without a query, a learned vector stands in for it."""

    def __init__(self, width: int, has_query: bool) -> None:
        super().__init__()
        self.between = nn.Linear(width, width, bias=False)
        self.learned = None if has_query else nn.Parameter(torch.randn(width) / math.sqrt(width))

    def forward(self, hidden: Hidden, query: Query | None) -> Scores:
        """Score by a bilinear form."""
        if self.learned is not None:
            return torch.einsum("buh,h->bu", hidden, self.between(self.learned))
        assert query is not None
        return torch.einsum("buh,bh->bu", hidden, self.between(query))


def wide_additive(width: int, has_query: bool) -> Additive:
    """The additive attention of Serrano & Smith, whose inner width is the hidden one."""
    return Additive(width, has_query, wide=True)


def scaled_dot(width: int, has_query: bool) -> Dot:
    """The dot attention of Jain & Wallace."""
    return Dot(width, has_query)


def unscaled_dot(width: int, has_query: bool) -> Dot:
    """The dot attention as Wen et al. print it, without the root of the width."""
    return Dot(width, has_query, scaled=False)


# Without attention the decision rests on the encoder's last state, which the seam shows as one unit.
LAST_STATE = "last-state"

# None: not scored from hidden states. The seam knows what to do instead.
ATTENTIONS: dict[str, Callable[[int, bool], nn.Module] | None] = {
    "additive": Additive,
    "additive-wide": wide_additive,
    "dot": scaled_dot,
    "dot-unscaled": unscaled_dot,
    "deep": Deep,
    "multiplicative": Multiplicative,
    LOG_ODDS: None,
    LAST_STATE: None,
}
