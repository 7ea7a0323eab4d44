"""The bidirectional LSTM of `recurrence` for a stack of models, each with weights and texts of its own.

A GPU waits most of the time while one small model is trained: a step of the recurrence is a product of 32
texts with a matrix. A stack of models is one batched product a step, in about the time of one. The two
directions of a model are two members of the stack, so one axis, `side`, runs over both.
"""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from attentest.model.networks import recurrence, recurrence_gpu

Turn = Int[Tensor, "model place batch"]


def turning(lengths: Int[Tensor, "model batch"], steps: int) -> Turn:
    """The place that each step reads of a text that runs backwards; padding stays where it is."""
    step = torch.arange(steps, device=lengths.device)[:, None]
    within = step < lengths[:, None]
    return torch.where(within, lengths[:, None] - 1 - step, step)


def turned(states: Float[Tensor, "model place batch width"], turn: Turn) -> Tensor:
    """Each text reversed within its own length; twice is once."""
    return states.gather(1, turn[..., None].expand_as(states))


def both_ways(ahead: Tensor, behind: Tensor, turn: Turn) -> Float[Tensor, "side place batch width"]:
    """What the two directions read, or get, as sides of one stack."""
    return torch.stack([ahead, turned(behind, turn)], dim=1).flatten(0, 1)


def opened(embedded: Tensor, lengths: Tensor) -> tuple[Turn, Float[Tensor, "side row emb"]]:
    """How texts are turned, and what every side reads, step by step."""
    turn = turning(lengths, embedded.shape[2])
    across = embedded.transpose(1, 2)
    return turn, both_ways(across, across, turn).flatten(1, 2)


def joined(hidden: Float[Tensor, "side place batch width"], turn: Turn) -> Tensor:
    """The states of both sides next to each other, (model, batch, place, 2 x width)."""
    ahead, behind = hidden.unflatten(0, (len(turn), 2)).unbind(1)
    return torch.cat([ahead, turned(behind, turn)], dim=3).transpose(1, 2)


def parted(grad: Tensor, turn: Turn) -> Float[Tensor, "side place batch width"]:
    """The gradient of what was joined, as it arrives at each side."""
    ahead, behind = grad.transpose(1, 2).chunk(2, dim=3)
    return both_ways(ahead, behind, turn)


def closed(of_read: Float[Tensor, "side row emb"], turn: Turn) -> Tensor:
    """The gradient of the vectors by that of what the sides read of them."""
    ahead, behind = of_read.view(len(turn), 2, *turn.shape[1:], -1).unbind(1)
    return (ahead + turned(behind, turn)).transpose(1, 2)


@final
class StackedLSTM(torch.autograd.Function):
    """`hidden (model, batch, place, 2 x hidden)`; weights as `recurrence.BidirectionalLSTM` has them.

    Texts are turned before they are multiplied, when they are narrowest; then all is in the order of steps.
    """

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
        turn, read = opened(embedded, lengths)
        sides, own = state_weights.flatten(0, 1), input_weights.unflatten(1, (2, -1)).flatten(0, 1)
        gates = torch.baddbmm(bias.view(2 * models, 1, -1), read, own.transpose(1, 2))
        gates = gates.view(2 * models, steps, batch, 4 * width)
        cell = gates.new_empty(2 * models, steps, batch, width)
        squashed, hidden = torch.empty_like(cell), torch.empty_like(cell)
        own_kernel = recurrence_gpu.fits_stack(width, embedded.device, embedded.dtype)
        run = recurrence_gpu.run if own_kernel else recurrence.run
        run(gates, sides, cell, squashed, hidden)
        ctx.save_for_backward(read, turn, own, sides, gates, cell, squashed, hidden)
        return joined(hidden, turn)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Back through time in all sides at once; weight gradients are one batched product each."""
        read, turn, own, sides, gates, cell, squashed, hidden = ctx.saved_tensors
        models = len(turn)
        own_kernel = recurrence_gpu.fits_stack(hidden.shape[3], grad.device, grad.dtype)
        back = recurrence_gpu.back if own_kernel else recurrence.back
        slopes = back(parted(grad, turn), sides, gates, cell, squashed)
        later, earlier = slopes[:, 1:].flatten(1, 2), hidden[:, :-1].flatten(1, 2)
        of_state = torch.bmm(later.transpose(1, 2), earlier)
        flat = slopes.flatten(1, 2)
        of_input = torch.bmm(flat.transpose(1, 2), read).unflatten(0, (models, 2)).flatten(1, 2)
        of_bias = flat.sum(1).view(models, -1)
        of_embedded = closed(torch.bmm(flat, own), turn)
        return of_embedded, None, of_input, of_state.unflatten(0, (models, 2)), of_bias
