"""Leave-one-out under a recurrence: variants run only behind their gap, all of them as rows of one product.

In each direction a variant has the text's own states up to the unit left out and new ones behind it, so
every pair of variant and unit needs one new half of a bidirectional state; the other half is the text's.
Behind the gap all variants of a text read the same word at the same step: its input projection is made
once, and a step is one product over all variants that have passed their gap. Texts are aligned at the end
they are read towards: variants then join, none ends before the others, and no step is spent on padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attentest.corpus.vocabulary import END, START
from attentest.evidence.erasure.cells import Gates, GRUDirection, LSTMDirection, Sequences
from attentest.evidence.erasure.halves import Halves, kept_halves
from attentest.evidence.erasure.remainder import AbstractWeighedRemainder, Carried, Scalars, parts_of
from attentest.model.networks.encoders import Recurrent
from attentest.model.seam import Model, Network, Reading


def floats_per_variant(model: Model, units: int) -> int:
    """Memory of one variant: what is kept of each unit, its gates and states."""
    network = parts_of(model)
    return units * kept_halves(network).floats_per_unit(network) + 8 * network.width


@final
class RecurrentRemainder(AbstractWeighedRemainder):
    """The new half-states of every variant, or what is kept of them."""

    def __init__(self, model: Model, reading: Reading, lefts: range) -> None:
        super().__init__(model, reading, lefts)
        self.halves = kept_halves(self.network)(self.network, reading, len(lefts))
        for backward in (False, True):
            _run_behind_the_gap(self.network, reading, lefts, self.halves, backward)

    def scores(self) -> Scalars:
        """From the new states."""
        return self.halves.scores()

    def sums(self, weights: Scalars) -> Carried:
        """Of values, or of states."""
        return self.halves.sums(weights)

    def pair_values(self) -> Float[Tensor, "batch variant unit class"]:
        """From the new states."""
        return self.halves.values()


@final
@dataclass(frozen=True)
class Joining:
    """The variants of one direction in the order in which they pass their gap."""

    begin: Int[
        Tensor, " row"
    ]  # the (text, unit) left out: what it would have found is where the variant starts
    reads: Int[
        Tensor, " row"
    ]  # the (text, unit) to read at step 0, were there one; the next lies `stride` on
    writes: Int[Tensor, " row"]  # the (text, variant, unit) to write, likewise
    counts: list[int]  # how many have joined by each step
    stride: int

    @classmethod
    def of(cls, reading: Reading, lefts: range, backward: bool) -> Joining:
        """Step j reads unit `units - 1 - j` backward, and forward `j - (units - length)`."""
        batch, units = reading.mask.shape
        lengths = reading.mask.sum(1, keepdim=True)
        left = torch.arange(lefts.start, lefts.stop, device=lengths.device).expand(batch, -1)
        joins = units - left if backward else left + 1 + units - lengths
        texts, variants = ((joins < units) & (left < lengths)).nonzero(as_tuple=True)
        steps, order = joins[texts, variants].sort(stable=True)
        texts, variants = texts[order], variants[order]
        first = torch.full_like(texts, units - 1) if backward else lengths[texts, 0] - units
        return cls(
            begin=texts * units + variants + lefts.start,
            reads=texts * units + first,
            writes=(texts * len(lefts) + variants) * units + first,
            counts=torch.bincount(steps, minlength=units).cumsum(0).tolist(),
            stride=-1 if backward else 1,
        )


def _run_behind_the_gap(
    model: Network, reading: Reading, lefts: range, halves: Halves, backward: bool
) -> None:
    """One direction: every variant's new states, handed to `halves` as they come."""
    assert isinstance(model.encoder, Recurrent)
    kind = LSTMDirection if isinstance(model.encoder.cell, nn.LSTM) else GRUDirection
    direction = kind(model.encoder.cell, backward)
    gates = nn.functional.linear(reading.embeddings, direction.inputs, direction.bias)
    joining = Joining.of(reading, lefts, backward)
    found = _found(model, reading, direction, gates, backward)
    states = [state.flatten(0, 1)[joining.begin] for state in found]
    gates = gates.flatten(0, 1)
    room = gates.new_empty(len(joining.begin), gates.shape[1])
    halves.turn(backward)
    for step, count in enumerate(joining.counts):
        if count:
            read = joining.reads[:count] + step * joining.stride
            written = joining.writes[:count] + step * joining.stride
            torch.index_select(gates, 0, read, out=room[:count])
            direction.step(room[:count], [state[:count] for state in states])
            halves.keep(read, written, states[0][:count])


def _found(
    model: Network,
    reading: Reading,
    direction: LSTMDirection | GRUDirection,
    gates: Gates,
    backward: bool,
) -> list[Sequences]:
    """The states that each unit finds when the whole text is read: its neighbour's, or the marker's."""
    own = reading.hidden.chunk(2, dim=2)[backward]
    marker = model.embedding(torch.tensor([END if backward else START], device=model.device))
    start = [own.new_zeros(1, own.shape[2]) for _ in range(direction.kinds)]
    direction.step(nn.functional.linear(marker, direction.inputs, direction.bias), start)
    begun = start[0].expand(len(own), 1, -1)
    if backward:
        follows = nn.functional.pad(reading.mask[:, 1:], (0, 1))[..., None]
        hidden = torch.where(follows, torch.cat([own[:, 1:], begun], dim=1), begun)
        return direction.found(gates, hidden, start, reading.mask, reversed(range(own.shape[1])))
    hidden = torch.cat([begun, own[:, :-1]], dim=1)
    return direction.found(gates, hidden, start, reading.mask, range(own.shape[1]))
