"""The influence of each word on each hidden state (Meister et al. 2021, ME-1).

`g_{h_p}(x_i) = || d||h_p||_2 / dx_i ||_2`: how far the size of state p would move with the vector of word i.
In principle that is one pass back for every state, and the road "whole" goes it, all texts of a batch at
once. Without context a state depends on its own word alone, so one pass answers for all of them; under an
LSTM all states of all texts share one walk back.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attentest.evidence.importances import influence_recurrent
from attentest.evidence.permutation import orders
from attentest.model.networks.encoders import Recurrent, TokenWise
from attentest.model.seam import Model, Network, Reading, network_of
from attentest.model.subset import selected
from attentest.refusal import Refusal
from attentest.shapes import Embedded, Hidden, Mask

Norms = Float[Tensor, "batch position token"]
AT_MOST = 16  # states of a text
FLOATS = 16_000_000  # numbers held at a time, some 64 megabytes


@final
@dataclass(frozen=True)
class Positions:
    """The units of each text whose states are asked about, in their order; `there` is False past the last."""

    places: Int[Tensor, "batch position"]
    there: Bool[Tensor, "batch position"]

    @classmethod
    def sampled(cls, mask: Mask, at_most: int = AT_MOST, *, rng: torch.Generator) -> Positions:
        """All units of a text that has no more than `at_most`, and as many drawn from a longer one."""
        if at_most < 1:
            raise Refusal(
                "positions to be asked about",
                got=f"at most {at_most}",
                needs="at least 1",
                way_out=f"{AT_MOST} are the default.",
            )
        drawn = orders(mask, 1, rng=rng)[:, 0, :at_most]
        there = torch.arange(drawn.shape[1], device=mask.device) < mask.sum(1, keepdim=True)
        # Behind the last stands a unit that exists, so that it may be looked up.
        places = torch.where(there, drawn, mask.shape[1]).sort(dim=1).values
        return cls(places.masked_fill(~there, 0), there)


@final
@dataclass(frozen=True)
class Influence:
    """Norms of d||h_p|| / dx_i, one state a row, one token a column, 0 on padding; and the road to them.

    Tokens are the inputs: of a hierarchy, whose units are sentences, the words.
    """

    l2: Norms
    l1: Norms
    road: str


@final
@dataclass(frozen=True)
class Jacobian:
    """The Frobenius norms of dh_p / dx_i, laid out like an influence, and the road to them."""

    frobenius: Norms
    road: str


def influence(model: Model, reading: Reading, positions: Positions, *, road: str | None = None) -> Influence:
    """The influence of every token on the states asked about; `reading` is one without noise.

    NaN where a model made elsewhere does not show what its attention sums up.
    """
    name = _checked(model, road)
    if not reading.hidden_summed:
        unseen = torch.full((*positions.there.shape, reading.batch.mask.shape[1]), float("nan"))
        l2 = l1 = unseen.to(reading.embeddings)
    elif name == "recurrent":
        l2, l1 = influence_recurrent.recurrent(_parts(model), reading, positions.places, positions.there)
    else:
        l2, l1 = (_token_wise if name == "token-wise" else _whole)(model, reading, positions)
    return Influence(_silenced(l2, reading, positions), _silenced(l1, reading, positions), name)


def jacobian(model: Model, reading: Reading, positions: Positions, *, road: str | None = None) -> Jacobian:
    """`||dh_p / dx_i||_F`, which asks for every unit of a state and so takes as many times as long."""
    name = _checked(model, road)
    if name == "recurrent":
        norms = influence_recurrent.recurrent_frobenius(
            _parts(model), reading, positions.places, positions.there
        )
    else:
        name, norms = "whole", _whole_frobenius(model, reading, positions)
    return Jacobian(_silenced(norms, reading, positions), name)


def _checked(model: Model, road: str | None) -> str:
    fast, network = "whole", model.network
    # The last state alone depends on all words, whatever the encoder.
    if network is not None and network.attention is not None:
        if isinstance(network.encoder, TokenWise):
            fast = "token-wise"
        elif isinstance(network.encoder, Recurrent) and isinstance(network.encoder.cell, nn.LSTM):
            fast = "recurrent"
    if road not in (None, fast, "whole"):
        raise Refusal(
            f"influence with {model.capabilities.attention}",
            got=f"the road {road!r}",
            needs=" or ".join(dict.fromkeys([repr(fast), "'whole'"])),
            way_out="Leave the road out to take the fastest.",
        )
    return road or fast


def _parts(model: Model) -> Network:
    return network_of(model, "influence by one walk back")


def _encoded(model: Model, reading: Reading) -> tuple[Embedded, Hidden]:
    """Embeddings and the states that depend on them."""
    embeddings = reading.embeddings.detach().requires_grad_()
    return embeddings, model.read(reading.batch, embeddings=embeddings).hidden


@torch.enable_grad()
def _whole(model: Model, reading: Reading, positions: Positions) -> tuple[Norms, Norms]:
    """One pass back for each position: texts do not see each other, so a sum has each one's gradient."""
    embeddings, hidden = _encoded(model, reading)
    sizes = hidden.norm(dim=2).gather(1, positions.places)
    l2, l1 = [], []
    for column in sizes.unbind(1):
        (slope,) = torch.autograd.grad(column.sum(), embeddings, retain_graph=True)
        l2.append(slope.norm(dim=2))
        l1.append(slope.abs().sum(2))
    return torch.stack(l2, dim=1), torch.stack(l1, dim=1)


@torch.enable_grad()
def _token_wise(model: Model, reading: Reading, positions: Positions) -> tuple[Norms, Norms]:
    """One pass back for all positions: what a token moves is its own state and no other."""
    embeddings, hidden = _encoded(model, reading)
    (slope,) = torch.autograd.grad(hidden.norm(dim=2)[reading.mask].sum(), embeddings)
    own = positions.places[..., None] == torch.arange(slope.shape[1], device=slope.device)
    return slope.norm(dim=2)[:, None] * own, slope.abs().sum(2)[:, None] * own


@torch.enable_grad()
def _whole_frobenius(model: Model, reading: Reading, positions: Positions) -> Norms:
    """Each text as often as a state has units, as far as memory allows: every copy answers for one unit."""
    tokens = reading.batch.mask.shape[1]
    squares = reading.embeddings.new_zeros(*positions.there.shape, tokens)
    units = torch.arange(model.width, device=squares.device)
    at_once = max(1, FLOATS // ((tokens + 2) * (reading.embeddings.shape[2] + 8 * (len(units) + tokens))))
    for text, some in itertools.product(range(len(squares)), units.split(at_once)):
        copies = selected(reading, torch.full_like(some, text))
        embeddings, hidden = _encoded(model, copies)
        for slot in range(int(positions.there[text].sum())):
            asked = hidden[torch.arange(len(some), device=some.device), positions.places[text, slot], some]
            (slope,) = torch.autograd.grad(asked.sum(), embeddings, retain_graph=True)
            squares[text, slot, : slope.shape[1]] += slope.square().sum((0, 2))
    return squares.sqrt()


def _silenced(norms: Norms, reading: Reading, positions: Positions) -> Norms:
    """Zero where nobody asked and where nothing stands."""
    return norms.detach().masked_fill(~(positions.there[..., None] & reading.batch.mask[:, None]), 0.0)
