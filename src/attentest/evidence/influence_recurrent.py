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

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attentest.corpus.vocabulary import END, PAD, START
from attentest.evidence.erasure_cells import LSTMDirection
from attentest.model.encoders import Recurrent
from attentest.model.recurrence import reversal, turned
from attentest.model.seam import AttentionModel, Reading, framed

Places = Int[Tensor, "batch position"]
There = Bool[Tensor, "batch position"]
Norms = Float[Tensor, "batch position token"]
Rows = Int[Tensor, " row"]
Cotangents = Float[Tensor, "row half"]
Slopes = Float[Tensor, "row emb"]

# Rows that walk together: enough for fast products, few enough that their gates stay in the cache.
ROWS, GPU_ROWS = 512, 65_536


@dataclass(frozen=True)
class Direction:
    """One direction of a batch, read: what a change of state or cell does to the gates at every step.

    Gates are in torch's order i, f, g, o: the three that act on the cell lie side by side. The factors of
    the gates come first, then what passes from state to cell, then what the cell keeps.
    """

    factors: Float[Tensor, "step batch 6 half"]
    inputs: Float[Tensor, "gate emb"]
    across: Float[Tensor, "gate half"]

    @classmethod
    def of(cls, model: AttentionModel, reading: Reading, *, backward: bool) -> Direction:
        """Read once more, keeping the gates: one pass, where there will be one back for every state asked."""
        assert isinstance(model.encoder, Recurrent)
        cell = model.encoder.cell
        markers = model.embedding(torch.tensor([PAD, START, END], device=model.device))
        text = framed(reading.embeddings, markers, reading.mask)
        words = functional.embedding(text.places.T, text.rows)
        if backward:
            words = turned(words, reversal(text.present.sum(1), len(words)))
        side = "_reverse" if backward else ""
        inputs, across = (getattr(cell, f"weight_{kind}_l0{side}") for kind in ("ih", "hh"))
        return cls(_factors(cell, words, backward), inputs, across)

    def back(
        self, texts: Rows, joins: Rows, cotangents: Cotangents
    ) -> Iterator[tuple[int, int, Float[Tensor, "joined emb"]]]:
        """Step by step: its number, how many had joined before, and the slopes of all that have by now.

        Rows come in the order in which they join, the latest step first. Slopes last until the next step.
        """
        rows, width = cotangents.shape
        counts = torch.bincount(joins).flip(0).cumsum(0).flip(0).tolist()
        hidden, cell = cotangents.clone(), torch.zeros_like(cotangents)
        gates = cotangents.new_empty(rows, 4, width)
        room = cotangents.new_empty(rows, 6 * width)
        slopes = cotangents.new_empty(rows, self.inputs.shape[1])
        before = 0
        for step in range(len(counts) - 1, 0, -1):
            now = counts[step]
            torch.mm(gates[:before].flatten(1), self.across, out=hidden[:before])
            torch.index_select(self.factors[step].flatten(1), 0, texts[:now], out=room[:now])
            to_cell_gates, to_leave, to_cell, keep = room[:now].view(now, 6, width).split([3, 1, 1, 1], dim=1)
            cell[:now].addcmul_(hidden[:now], to_cell[:, 0])
            torch.mul(cell[:now, None], to_cell_gates, out=gates[:now, :3])
            torch.mul(hidden[:now], to_leave[:, 0], out=gates[:now, 3])
            cell[:now].mul_(keep[:, 0])
            yield step, before, torch.mm(gates[:now].flatten(1), self.inputs, out=slopes[:now])
            before = now


def _factors(
    module: nn.RNNBase, words: Float[Tensor, "step batch emb"], backward: bool
) -> Float[Tensor, "step batch 6 half"]:
    direction = LSTMDirection(module, backward)
    gates = functional.linear(words, direction.inputs, direction.bias)
    hidden = gates.new_zeros(gates.shape[1], gates.shape[2] // 4)
    cells = gates.new_zeros(len(gates) + 1, *hidden.shape)
    for step, opening in enumerate(gates.unbind(0)):
        cells[step + 1] = cells[step]
        direction.step(opening, [hidden, cells[step + 1]])
    enter, keep, leave, content = gates.chunk(4, dim=2)
    before, squashed = cells[:-1], cells[1:].tanh()
    factors = gates.new_empty(*gates.shape[:2], 6, hidden.shape[1])
    to_enter, to_keep, to_content, to_leave, to_cell, kept = factors.unbind(2)
    torch.mul(before, keep - keep**2, out=to_keep)
    torch.mul(content, enter - enter**2, out=to_enter)
    torch.mul(enter, 1 - content**2, out=to_content)
    torch.mul(squashed, leave - leave**2, out=to_leave)
    torch.mul(leave, 1 - squashed**2, out=to_cell)
    kept.copy_(keep)
    return factors


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
def recurrent(model: AttentionModel, reading: Reading, places: Places, there: There) -> tuple[Norms, Norms]:
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
def recurrent_frobenius(model: AttentionModel, reading: Reading, places: Places, there: There) -> Norms:
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
                joined = slopes.view(-1, len(units) * slopes.shape[1])
                part[: len(joined), step - 1] = joined.square().sum(1)
            by_step[rows] = part
        squares += asked.by_token(by_step, backward)
    norms = squares.new_zeros(*there.shape, asked.tokens)
    norms[there] = squares.sqrt()
    return norms


def _chunks(joins: Rows, each: int) -> tuple[Int[Tensor, " _"], ...]:
    """States in the order in which they join, so many at a time: alike ones walk together."""
    rows = GPU_ROWS if joins.is_cuda else ROWS
    return joins.argsort(descending=True, stable=True).split(max(1, rows // each))


def _norms(slopes: Slopes) -> Float[Tensor, "2 row"]:
    return torch.stack([slopes.norm(dim=1), slopes.abs().sum(1)])
