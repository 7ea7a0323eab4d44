"""A bidirectional LSTM written out: on a CPU that is faster, and it can be taken apart.

Both directions run left to right over left-aligned texts (the backward one over each text reversed within
its own length), so padding always lies *after* what counts and needs no masking inside the loop. All work
that does not depend on the previous state is done outside the loop: one product for the input projection,
one for each weight gradient. Input comes as distinct rows and the places where they stand, so a word that
occurs ten times in a batch is projected once. On a GPU the loops are the kernels of `recurrence_gpu` where
they fit, and cuDNN does better where they do not; `encoders.Recurrent` chooses.
"""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from attentest.model.networks import recurrence_gpu

States = Float[Tensor, "direction step batch hidden"]
Gates = Float[Tensor, "direction step batch gate"]


def reversal(lengths: Int[Tensor, " batch"], steps: int) -> Int[Tensor, "step batch"]:
    """For each step the position it reads when texts run backwards; padding stays where it is.

    The map is its own inverse, which is why one index serves forward, backward and both gradients.
    """
    step = torch.arange(steps, device=lengths.device)[:, None]
    return torch.where(step < lengths, lengths - 1 - step, step)


def turned(sequence: Float[Tensor, "step batch width"], turn: Int[Tensor, "step batch"]) -> Tensor:
    """Each text of a time-major sequence reversed within its own length."""
    return sequence.gather(0, turn[:, :, None].expand_as(sequence))


@final
class BidirectionalLSTM(torch.autograd.Function):
    """`hidden (batch, place, 2 x hidden)` of a one-layer bidirectional LSTM, with its adjoint by hand."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        places: Tensor,
        lengths: Tensor,
        input_weights: Tensor,
        state_weights: Tensor,
        bias: Tensor,
    ) -> Tensor:
        """Run both directions; `input_weights` is (2 x 4 hidden, emb), gates in the order i, f, o, g."""
        batch, steps = places.shape
        width = state_weights.shape[2]
        turn = reversal(lengths, steps)
        straight = places.T.contiguous()
        read = torch.stack([straight, straight.gather(0, turn)]).flatten(1)
        projected = torch.addmm(bias, rows, input_weights.T)
        gates = rows.new_empty(2, steps, batch, 4 * width)
        for side, half in enumerate(projected.chunk(2, dim=1)):
            torch.index_select(half, 0, read[side], out=gates[side].view(-1, 4 * width))
        cell = rows.new_empty(2, steps, batch, width)
        squashed, hidden = torch.empty_like(cell), torch.empty_like(cell)
        forward = recurrence_gpu.run if rows.is_cuda else run
        forward(gates, state_weights, cell, squashed, hidden)
        ctx.save_for_backward(rows, read, input_weights, state_weights, gates, cell, squashed, hidden, turn)
        return torch.cat([hidden[0], turned(hidden[1], turn)], dim=2).transpose(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Back through time for both directions at once; weight gradients are one product each."""
        rows, read, input_weights, state_weights, gates, cell, squashed, hidden, turn = ctx.saved_tensors
        width = hidden.shape[3]
        straight = grad.transpose(0, 1)
        arriving = torch.stack([straight[..., :width], turned(straight[..., width:], turn)])
        backward = recurrence_gpu.back if rows.is_cuda else back
        slopes = backward(arriving, state_weights, gates, cell, squashed).flatten(1, 2)
        if not ctx.needs_input_grad[4]:
            # An importance asks for the gradient of the input alone, and there nearly every row stands once:
            # bringing vectors to their rows is less traffic than bringing gates there.
            of_rows = torch.zeros_like(rows)
            for side, half in enumerate(input_weights.chunk(2)):
                of_rows.index_add_(0, read[side], slopes[side] @ half)
            return of_rows, None, None, None, None, None
        by_row = slopes.new_zeros(2, len(rows), 4 * width)
        for side, of_side in enumerate(by_row):
            of_side.index_add_(0, read[side], slopes[side])
        ahead, behind = input_weights.chunk(2)
        grad_rows = torch.addmm(by_row[0] @ ahead, by_row[1], behind) if ctx.needs_input_grad[0] else None
        before = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, :-1]], dim=1).flatten(1, 2)
        grad_state_weights = torch.stack([slopes[side].T @ before[side] for side in (0, 1)])
        grad_input_weights = torch.cat([of_side.T @ rows for of_side in by_row])
        return grad_rows, None, None, grad_input_weights, grad_state_weights, by_row.sum(1).flatten()


def run(gates: Gates, state_weights: Tensor, cell: States, squashed: States, hidden: States) -> None:
    """The recurrence, in place: `gates` arrive as input projections and leave as activated gates.

    Views of every step are taken beforehand: for small models the loop's cost is calls, not arithmetic.
    """
    width = hidden.shape[3]
    across = _sides(state_weights.transpose(1, 2))
    arrived, ahead = _steps(gates), _steps(hidden)
    opening = gates[..., : 3 * width].unbind(1)
    enter, keep, leave, content = (gate.unbind(1) for gate in gates.split(width, dim=3))
    cells, squashes, states = cell.unbind(1), squashed.unbind(1), hidden.unbind(1)
    for step in range(gates.shape[1]):
        if step:
            _add_products(arrived[step], ahead[step - 1], across, arrived[step])
        opening[step].sigmoid_()
        content[step].tanh_()
        torch.mul(enter[step], content[step], out=cells[step])
        if step:
            cells[step].addcmul_(keep[step], cells[step - 1])
        torch.tanh(cells[step], out=squashes[step])
        torch.mul(leave[step], squashes[step], out=states[step])


def back(arriving: States, state_weights: Tensor, gates: Gates, cell: States, squashed: States) -> Gates:
    """The gradient at the gates before their activation.

    Every factor that is known beforehand is multiplied out for all steps at once, so that the loop holds
    five pointwise operations and the products.
    """
    width = cell.shape[3]
    enter, keep, leave, content = gates.split(width, dim=3)
    before = torch.cat([torch.zeros_like(cell[:, :1]), cell[:, :-1]], dim=1)
    to_gates = torch.stack([content * enter * (1 - enter), before * keep * (1 - keep)], dim=3).unbind(1)
    to_content = (enter * (1 - content**2)).unbind(1)
    to_leave = (squashed * leave * (1 - leave)).unbind(1)
    to_cell = (leave * (1 - squashed**2)).unbind(1)
    keeps = keep.unbind(1)
    slopes = torch.empty_like(gates)
    sent, comes, weights = _steps(slopes), _steps(arriving), _sides(state_weights)
    of_gates = slopes[..., : 2 * width].unflatten(3, (2, width)).unbind(1)
    of_leave, of_content = (part.unbind(1) for part in slopes[..., 2 * width :].split(width, dim=3))
    of_hidden = arriving[:, -1].clone()
    into = _sides(of_hidden)
    of_cell = torch.zeros_like(of_hidden)
    wide_cell = of_cell[:, :, None]
    last = gates.shape[1] - 1
    for step in range(last, -1, -1):
        if step < last:
            _add_products(comes[step], sent[step + 1], weights, into)
        of_cell.addcmul_(of_hidden, to_cell[step])
        torch.mul(wide_cell, to_gates[step], out=of_gates[step])
        torch.mul(of_cell, to_content[step], out=of_content[step])
        torch.mul(of_hidden, to_leave[step], out=of_leave[step])
        of_cell.mul_(keeps[step])
    return slopes


Sides = tuple[Tensor, ...]


def _sides(step: Tensor) -> Sides:
    """What is multiplied at once: on a GPU all sides, for a call costs more than its product; on a CPU, where
    a batched product does not reach the fast kernel, each by itself.
    """
    return (step,) if step.is_cuda else step.unbind(0)


def _steps(sequence: Tensor) -> list[Sides]:
    """Each step's sides; every side is cut by itself, which makes a third less of views."""
    return list(zip(*(side.unbind(-3) for side in _sides(sequence)), strict=True))


def _add_products(start: Sides, states: Sides, weights: Sides, out: Sides) -> None:
    """`out = start + states @ weights`."""
    add = torch.addmm if out[0].ndim == 2 else torch.baddbmm
    for each, state, matrix, place in zip(start, states, weights, out, strict=True):
        add(each, state, matrix, out=place)
