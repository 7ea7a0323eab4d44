"""What is kept of the half-states that a recurrence yields: as little as the attention and decoder allow.

A variant's state at a unit is one new half and the text's own other half. Additive attention and an affine
decision are linear in the state before anything else happens to it, so the own half enters as a sum made
once for each unit of a text, and of each new half only a score and its values remain. Everything else gets
the states themselves.
"""

from __future__ import annotations

from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure.cells import squash_
from attentest.evidence.erasure.remainder import Carried, Scalars, rescored
from attentest.model.networks.attention import Additive
from attentest.model.networks.decoder import Affine
from attentest.model.seam import Network, Reading

Places = Int[Tensor, " row"]
NewHalf = Float[Tensor, "row half"]
PairValues = Float[Tensor, "batch variant unit class"]


@runtime_checkable
class Halves(Protocol):
    """Takes half-states in, direction by direction; gives scores and, once there are weights, sums."""

    def turn(self, backward: bool) -> None:
        """From now on half-states are of this direction."""
        ...

    def keep(self, read: Places, written: Places, hidden: NewHalf) -> None:
        """New halves, by (text, unit) and by (text, variant, unit)."""
        ...

    def scores(self) -> Scalars:
        """The raw scores of all units in all variants."""
        ...

    def sums(self, weights: Scalars) -> Carried:
        """What attention sums up."""
        ...

    def values(self) -> PairValues:
        """What each unit of each variant would say alone, where the decision is affine."""
        ...


@final
class HalvesAsValues:
    """For additive attention and an affine decision: one score and the values of every pair."""

    def __init__(self, model: Network, reading: Reading, variants: int) -> None:
        assert isinstance(model.attention, Additive) and isinstance(model.decoder, Affine)
        assert reading.values is not None
        self.attention, self.decoder, self.reading = model.attention, model.decoder, reading
        self.inner = model.attention.of_hidden.out_features
        self.pair_scores = reading.scores[:, None].repeat(1, variants, 1)
        self.pair_values = reading.values[:, None].repeat(1, variants, 1, 1)

    @staticmethod
    def floats_per_unit(model: Network) -> int:
        """How many numbers are kept for one unit of one variant, those to work with included."""
        return 8 + 2 * len(model.labels)

    def turn(self, backward: bool) -> None:
        """What the text's own other halves add to the scores' inner layer and to the values, side by side."""
        both = torch.cat([self.attention.of_hidden.weight, self.decoder.dense.weight]).T
        ahead, behind = both.chunk(2)
        self.of_new, of_own = (behind, ahead) if backward else (ahead, behind)
        own = self.reading.hidden.chunk(2, dim=2)[not backward] @ of_own
        if self.attention.of_hidden.bias is not None:
            own[..., : self.inner] += self.attention.of_hidden.bias
        if self.attention.of_query is not None and self.reading.query is not None:
            own[..., : self.inner] += self.attention.of_query(self.reading.query)[:, None]
        self.own = own.flatten(0, 1)

    def keep(self, read: Places, written: Places, hidden: NewHalf) -> None:
        """Score the new halves and take their values."""
        inner, values = self.own[read].addmm_(hidden, self.of_new).tensor_split([self.inner], dim=1)
        self.pair_scores.view(-1)[written] = squash_(inner) @ self.attention.to_score.weight[0]
        self.pair_values.flatten(0, 2)[written] = values

    def scores(self) -> Scalars:
        """The raw scores of all units in all variants."""
        return self.pair_scores

    def sums(self, weights: Scalars) -> Carried:
        """The values under attention."""
        return (weights[:, :, None] @ self.pair_values)[:, :, 0]

    def values(self) -> PairValues:
        """They are what is kept."""
        return self.pair_values


@final
class HalvesAsStates:
    """For any attention and any decoder: the states of every pair."""

    def __init__(self, model: Network, reading: Reading, variants: int) -> None:
        self.model, self.reading = model, reading
        self.pair_states = reading.hidden[:, None].repeat(1, variants, 1, 1)

    @staticmethod
    def floats_per_unit(model: Network) -> int:
        """How many numbers are kept for one unit of one variant, those to work with included."""
        return 2 * model.encoder.width

    def turn(self, backward: bool) -> None:
        """The half of all states that is written from now on."""
        self.half = self.pair_states.flatten(0, 2).chunk(2, dim=1)[backward]

    def keep(self, read: Places, written: Places, hidden: NewHalf) -> None:
        """Write the new halves over the text's own."""
        self.half.index_copy_(0, written, hidden)

    def scores(self) -> Scalars:
        """Attention over all states, whatever it makes of them."""
        batch, variants, units, _ = self.pair_states.shape
        new = rescored(self.model, self.reading, self.pair_states.flatten(1, 2))
        if new is None:
            return self.reading.scores[:, None].expand(-1, variants, -1)
        return new.view(batch, variants, units)

    def sums(self, weights: Scalars) -> Carried:
        """The context vector, and its values where the decision is affine."""
        context = (weights[:, :, None] @ self.pair_states)[:, :, 0]
        return self.model.decoder.values(context) if isinstance(self.model.decoder, Affine) else context

    def values(self) -> PairValues:
        """From the states."""
        assert isinstance(self.model.decoder, Affine)
        return self.model.decoder.values(self.pair_states)


def kept_halves(model: Network) -> type[HalvesAsValues] | type[HalvesAsStates]:
    """Values where they do and are fewer than the states they come from."""
    linear = isinstance(model.attention, Additive) and isinstance(model.decoder, Affine)
    return HalvesAsValues if linear and len(model.labels) < model.encoder.width else HalvesAsStates
