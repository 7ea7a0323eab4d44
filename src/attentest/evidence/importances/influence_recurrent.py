"""The influence of words on hidden states under an LSTM: states walk back through time as rows of one batch.

In the forward direction a state depends on the words up to its own. Going back from the last step, states
therefore join at their own word and none ever leaves: a step is one product over all that have joined, and
none is spent where the derivative is zero. The backward direction is the same over texts turned round. Only
at its own word do both halves of a state meet, so there alone two vectors are added before a norm is taken.
The walk ends before the marker at which reading began: markers are no tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.corpus.vocabulary import END, START
from attentest.evidence.erasure.cells import LSTMDirection, squash_
from attentest.model.networks.encoders import Recurrent
from attentest.model.networks.recurrence import reversal, turned
from attentest.model.seam import Network, Reading

Places = Int[Tensor, "batch position"]
There = Bool[Tensor, "batch position"]
Norms = Float[Tensor, "batch position token"]
Rows = Int[Tensor, " row"]
Cotangents = Float[Tensor, "row half"]
Slopes = Float[Tensor, "row emb"]

# Rows that walk together: enough for fast products, few enough that their gates stay in the cache.
ROWS, GPU_ROWS = 512, 65_536
LANES = 16  # numbers that a processor multiplies at once


@final
@dataclass(frozen=True)
class Direction:
    """One direction of a batch, read: what a change of state or cell does to the gates at every step.

    Gates are in torch's order i, f, g, o: the three that act on the cell lie side by side. The factors of
    the gates come first, then what passes from state to cell, then what the cell keeps.
    """

    factors: Float[Tensor, "step batch 6 half"]  # from step 1 on: step 0 reads a marker
    weights: Float[Tensor, "gate both"]  # from gates to the state before, then to the word, then nothing
    emb: int

    @classmethod
    def of(cls, model: Network, reading: Reading, *, backward: bool) -> Direction:
        """The gates again. States are known, so one product has them all; cells are added up in order."""
        assert isinstance(model.encoder, Recurrent)
        cell = model.encoder.cell
        words, states = _words(reading, backward), reading.hidden.chunk(2, dim=2)[backward].transpose(0, 1)
        if backward:
            states = turned(states, reversal(reading.mask.sum(1), len(words)))
        marker = model.embedding(torch.tensor(END if backward else START, device=model.device))
        side = "_reverse" if backward else ""
        inputs, across = (getattr(cell, f"weight_{kind}_l0{side}") for kind in ("ih", "hh"))
        # One product for both, as wide as products are quickest.
        beyond = inputs.new_zeros(len(inputs), -(inputs.shape[1] + across.shape[1]) % LANES)
        factors = _factors(LSTMDirection(cell, backward), marker, words, states)
        return cls(factors, torch.cat([across, inputs, beyond], dim=1), inputs.shape[1])

    def back(
        self, texts: Rows, joins: Rows, cotangents: Cotangents
    ) -> Iterator[tuple[int, int, Float[Tensor, "joined emb"]]]:
        """Step by step: its number, how many had joined before, and the slopes of all that have by now.

        Rows come in the order in which they join, the latest step first. Slopes last until the next step.
        """
        rows, width = cotangents.shape
        counts = torch.bincount(joins).flip(0).cumsum(0).flip(0).tolist()
        cell = torch.zeros_like(cotangents)
        # A row that has not joined yet holds its cotangent, where one that has finds what reached its state.
        found = cotangents.new_empty(rows, self.weights.shape[1])
        hidden, slopes = found[:, :width], found[:, width : width + self.emb]
        hidden.copy_(cotangents)
        gates = cotangents.new_empty(rows, 4, width)
        room = cotangents.new_empty(rows, 6 * width)
        before = 0
        for step in range(len(counts) - 1, 0, -1):
            now = counts[step]
            torch.index_select(self.factors[step - 1].flatten(1), 0, texts[:now], out=room[:now])
            to_cell_gates, to_leave, to_cell, keep = room[:now].view(now, 6, width).split([3, 1, 1, 1], dim=1)
            cell[:now].addcmul_(hidden[:now], to_cell[:, 0])
            torch.mul(cell[:now, None], to_cell_gates, out=gates[:now, :3])
            torch.mul(hidden[:now], to_leave[:, 0], out=gates[:now, 3])
            cell[:now].mul_(keep[:, 0])
            torch.mm(gates[:now].flatten(1), self.weights, out=found[:now])
            yield step, before, slopes[:now]
            before = now


def _factors(
    direction: LSTMDirection,
    marker: Float[Tensor, " emb"],
    words: Float[Tensor, "step batch emb"],
    states: Float[Tensor, "step batch half"],
) -> Float[Tensor, "step batch 6 half"]:
    """Of every word, from the states that were found; what was read before the first is the marker alone."""
    width = states.shape[2]
    gates = functional.linear(marker[None], direction.inputs, direction.bias)
    start = gates.new_zeros(1, width), gates.new_zeros(1, width)
    direction.step(gates, start)
    found = torch.cat([start[0].expand_as(states[:1]), states[:-1]])
    gates = functional.linear(words, direction.inputs, direction.bias)
    gates.flatten(0, 1).addmm_(found.flatten(0, 1), direction.across)
    factors = gates.new_empty(*states.shape[:2], 6, width)
    cell = start[1].expand_as(states[0]).clone()
    for opening, written in zip(gates, factors, strict=True):  # step by step, as much as the cache holds
        _write(written, opening, cell)
    return factors


def _write(
    factors: Float[Tensor, "batch 6 half"],
    gates: Float[Tensor, "batch gate"],
    cell: Float[Tensor, "batch half"],
) -> None:
    """The factors of one step; its gates are used up, and the cell it found becomes the one it leaves."""
    to_enter, to_keep, to_content, to_leave, to_cell, passed = factors.unbind(1)
    width = cell.shape[1]
    opened = gates[:, : 3 * width].sigmoid_()
    content = squash_(gates[:, 3 * width :])
    slopes = torch.addcmul(opened, opened, opened, value=-1.0)  # of a sigmoid, by its value
    (enter, keep, leave), (of_enter, of_keep, of_leave) = opened.chunk(3, 1), slopes.chunk(3, 1)
    torch.mul(cell, of_keep, out=to_keep)
    torch.mul(content, of_enter, out=to_enter)
    cell.mul_(keep).addcmul_(enter, content)
    squashed = squash_(cell.clone())
    torch.mul(squashed, of_leave, out=to_leave)
    torch.addcmul(enter, enter, content.square_(), value=-1.0, out=to_content)
    torch.addcmul(leave, leave, squashed.square_(), value=-1.0, out=to_cell)
    passed.copy_(keep)


@final
@dataclass(frozen=True)
class _Asked:
    """The states asked about, as rows: their texts, their words, and where both are in each direction."""

    texts: Rows
    places: Rows
    lengths: Rows  # of their texts
    tokens: int

    @classmethod
    def of(cls, reading: Reading, places: Places, there: There) -> _Asked:
        texts = there.nonzero(as_tuple=True)[0]
        return cls(texts, places[there], reading.mask.sum(1)[texts], reading.mask.shape[1])

    def joins(self, backward: bool) -> Rows:
        """The step at which the direction reads the state's own word; step 0 reads a marker."""
        return self.lengths - self.places if backward else self.places + 1

    def by_token(
        self, by_step: Float[Tensor, "*norm row token"], backward: bool
    ) -> Float[Tensor, "*norm row token"]:
        """What was found at the steps after the marker, at the tokens that were read there."""
        if not backward:
            return by_step
        step = self.lengths[:, None] - 1 - torch.arange(self.tokens, device=self.lengths.device)
        there = by_step.gather(-1, step.clamp_min(0).expand_as(by_step))
        return there.masked_fill(step < 0, 0.0)


@torch.no_grad()
def recurrent(model: Network, reading: Reading, places: Places, there: There) -> tuple[Norms, Norms]:
    """The L2 and the L1 norm of d||h_p|| / dx_i; 0 where no state was asked about and on padding."""
    asked = _Asked.of(reading, places, there)
    state = reading.hidden[asked.texts, asked.places]
    size = state.norm(dim=1, keepdim=True)
    # The norm has no derivative at 0; as autograd does, take that of least size.
    halves = torch.where(size > 0, state / size, 0.0).chunk(2, dim=1)
    own = state.new_zeros(len(state), reading.embeddings.shape[2])
    found = state.new_zeros(2, len(state), asked.tokens)
    for backward, half in enumerate(halves):
        direction = Direction.of(model, reading, backward=bool(backward))
        joins, by_step = asked.joins(bool(backward)), torch.zeros_like(found)
        for rows in _chunks(joins, 1):
            part = found.new_zeros(2, len(rows), asked.tokens)
            for step, before, slopes in direction.back(asked.texts[rows], joins[rows], half[rows]):
                own[rows[before : len(slopes)]] += slopes[before:]
                part[:, :before, step - 1] = _norms(slopes[:before])
            by_step[:, rows] = part
        found += asked.by_token(by_step, bool(backward))
    found.scatter_(2, asked.places[None, :, None].expand(2, -1, 1), _norms(own)[..., None])
    norms = found.new_zeros(2, *there.shape, asked.tokens)
    norms[:, there] = found
    return norms[0], norms[1]


@torch.no_grad()
def recurrent_frobenius(model: Network, reading: Reading, places: Places, there: There) -> Norms:
    """The Frobenius norm of dh_p / dx_i: every unit of a half-state is a row, and squares are added."""
    asked = _Asked.of(reading, places, there)
    units = torch.eye(reading.hidden.shape[2] // 2).to(reading.hidden)
    squares = units.new_zeros(len(asked.texts), asked.tokens)
    for backward in (False, True):
        direction = Direction.of(model, reading, backward=backward)
        joins, by_step = asked.joins(backward), torch.zeros_like(squares)
        for rows in _chunks(joins, len(units)):
            each = rows.repeat_interleave(len(units))
            part = squares.new_zeros(len(rows), asked.tokens)
            for step, _, slopes in direction.back(asked.texts[each], joins[each], units.repeat(len(rows), 1)):
                squared = slopes.square().sum(1).view(-1, len(units)).sum(1)
                part[: len(squared), step - 1] = squared
            by_step[rows] = part
        squares += asked.by_token(by_step, backward)
    norms = squares.new_zeros(*there.shape, asked.tokens)
    norms[there] = squares.sqrt()
    return norms


@torch.no_grad()
def recurrent_slopes(
    model: Network, reading: Reading, outputs: Float[Tensor, "output hidden"]
) -> Float[Tensor, "batch output unit token"]:
    """`(d(w . h_u) / de_t) . e_t` for every output w, unit and token; 0 where no unit is.

    A product with the word is linear, so what both halves of a state find at a word is simply added.
    """
    batch, units = reading.mask.shape
    asked = _Asked.of(reading, torch.arange(units, device=model.device).expand(batch, -1), reading.mask)
    found = outputs.new_zeros(batch, len(outputs), units, units)
    for backward in (False, True):
        direction, words = Direction.of(model, reading, backward=backward), _words(reading, backward)
        joins = asked.joins(backward)
        for number, half in enumerate(outputs.chunk(2, dim=1)[backward]):
            by_step = found.new_zeros(len(joins), units)
            for rows in _chunks(joins, 1):
                texts, part = asked.texts[rows], found.new_zeros(len(rows), units)
                for step, _, slopes in direction.back(texts, joins[rows], half.expand(len(rows), -1)):
                    now = len(slopes)
                    part[:now, step - 1] = (slopes * words[step - 1, texts[:now]]).sum(1)
                by_step[rows] = part
            found[:, number][reading.mask] += asked.by_token(by_step, backward)
    return found


def _words(reading: Reading, backward: bool) -> Float[Tensor, "step batch emb"]:
    """The vectors in the order in which the direction reads them."""
    words = reading.embeddings.transpose(0, 1)
    return turned(words, reversal(reading.mask.sum(1), len(words))) if backward else words


def _chunks(joins: Rows, each: int) -> tuple[Int[Tensor, " _"], ...]:
    """States in the order in which they join, so many at a time: alike ones walk together."""
    rows = GPU_ROWS if joins.is_cuda else ROWS
    return joins.argsort(descending=True, stable=True).split(max(1, rows // each))


def _norms(slopes: Slopes) -> Float[Tensor, "2 row"]:
    return torch.stack([slopes.norm(dim=1), slopes.abs().sum(1)])
