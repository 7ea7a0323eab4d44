"""The bidirectional LSTM of `recurrence` for a stack of models, each with weights and texts of its own.

A GPU waits most of the time while one small model is trained: a step of the recurrence is a product of 32
texts with a matrix. A stack of models is one batched product a step, in about the time of one. The two
directions of a model are two members of the stack, so one axis, `side`, runs over both.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from attentest.model import recurrence, recurrence_gpu

Read = Int[Tensor, "model batch place"]


def turning(lengths: Int[Tensor, "model batch"], steps: int) -> Read:
    """The place that each step reads of a text that runs backwards; padding stays where it is."""
    step = torch.arange(steps, device=lengths.device)
    within = step < lengths[..., None]
    return torch.where(within, lengths[..., None] - 1 - step, step)


def turned(states: Float[Tensor, "model batch place width"], turn: Read) -> Tensor:
    """Each text reversed within its own length; twice is once."""
    return states.gather(2, turn[..., None].expand_as(states))


class StackedLSTM(torch.autograd.Function):
    """`hidden (model, batch, place, 2 x hidden)`; weights as `recurrence.BidirectionalLSTM` has them."""

    @staticmethod
    def forward(
        ctx: Any,
        embedded: Tensor,
        lengths: Tensor,
        input_weights: Tensor,
        state_weights: Tensor,
        bias: Tensor,
    ) -> Tensor:
        """Run both directions of every model; `input_weights` is (model, 2 x 4 hidden, emb)."""
        models, batch, steps, _ = embedded.shape
        width = state_weights.shape[3]
        turn = turning(lengths, steps)
        projected = torch.baddbmm(bias[:, None], embedded.flatten(1, 2), input_weights.transpose(1, 2))
        straight, back = projected.view(models, batch, steps, -1).chunk(2, dim=3)
        gates = torch.stack([straight, turned(back, turn)], dim=1).flatten(0, 1).transpose(1, 2).contiguous()
        cell = gates.new_empty(2 * models, steps, batch, width)
        squashed, hidden = torch.empty_like(cell), torch.empty_like(cell)
        sides = state_weights.flatten(0, 1)
        own_kernel = recurrence_gpu.fits_stack(width, embedded.device)
        run = recurrence_gpu.run if own_kernel else recurrence.run
        run(gates, sides, cell, squashed, hidden)
        ctx.save_for_backward(embedded, turn, input_weights, sides, gates, cell, squashed, hidden)
        ahead, behind = hidden.transpose(1, 2).unflatten(0, (models, 2)).unbind(1)
        return torch.cat([ahead, turned(behind, turn)], dim=3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Back through time in all sides at once; weight gradients are one batched product each."""
        embedded, turn, input_weights, sides, gates, cell, squashed, hidden = ctx.saved_tensors
        models, width = len(embedded), hidden.shape[3]
        both = torch.stack([grad[..., :width], turned(grad[..., width:], turn)], dim=1)
        arriving = both.flatten(0, 1).transpose(1, 2).contiguous()
        own_kernel = recurrence_gpu.fits_stack(width, grad.device)
        back = recurrence_gpu.back if own_kernel else recurrence.back
        slopes = back(arriving, sides, gates, cell, squashed)
        before = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, :-1]], dim=1)
        of_state = torch.bmm(slopes.flatten(1, 2).transpose(1, 2), before.flatten(1, 2))
        ahead, behind = slopes.transpose(1, 2).unflatten(0, (models, 2)).unbind(1)
        of_gates = torch.cat([ahead, turned(behind, turn)], dim=3).flatten(1, 2)
        of_embedded = torch.bmm(of_gates, input_weights).view_as(embedded)
        of_input = torch.bmm(of_gates.transpose(1, 2), embedded.flatten(1, 2))
        return of_embedded, None, of_input, of_state.unflatten(0, (models, 2)), of_gates.sum(1)
