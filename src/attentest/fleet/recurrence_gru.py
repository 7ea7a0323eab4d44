"""The bidirectional GRU for a stack of models, as `recurrence_stacked` has the LSTM, its adjoint by hand.

A model alone takes torch's. The loops here are plain: on a GPU a fleet records them once, and a recording
of many small steps is repeated about as fast as one large one.
"""

from __future__ import annotations

from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from attentest.fleet.recurrence_stacked import closed, joined, opened, parted

States = Float[Tensor, "side step batch hidden"]
Gates = Float[Tensor, "side step batch gate"]


@final
class StackedGRU(torch.autograd.Function):
    """`hidden (model, batch, place, 2 x hidden)`; weights are (model, 2, 3 hidden, ..), gates as torch's.

    Those are reset, update, content; what the state says of the content is reset before it is added, so
    each of the two has a bias of its own.
    """

    @staticmethod
    def forward(
        ctx: Any,
        embedded: Tensor,
        lengths: Tensor,
        input_weights: Tensor,
        state_weights: Tensor,
        input_bias: Tensor,
        state_bias: Tensor,
    ) -> Tensor:
        """Run both directions of every model."""
        _, batch, steps, _ = embedded.shape
        turn, read = opened(embedded, lengths)
        of_input, of_state = input_weights.flatten(0, 1), state_weights.flatten(0, 1)
        gates = torch.baddbmm(input_bias.flatten(0, 1)[:, None], read, of_input.transpose(1, 2))
        gates = gates.unflatten(1, (steps, batch))
        said = torch.empty_like(gates)  # what the state says to each gate
        hidden = gates.new_empty(*gates.shape[:3], state_weights.shape[3])
        run(gates, of_state, state_bias.flatten(0, 1)[:, None], said, hidden)
        ctx.save_for_backward(read, turn, of_input, of_state, gates, said, hidden)
        return joined(hidden, turn)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Back through time in all sides at once; weight gradients are one batched product each."""
        read, turn, of_input, of_state, gates, said, hidden = ctx.saved_tensors
        slopes_of = back(parted(grad, turn), of_state, gates, said, hidden)
        to_input, to_state = (each.flatten(1, 2) for each in slopes_of)
        before = _before(hidden).flatten(1, 2)
        slopes = (
            torch.bmm(to_input.transpose(1, 2), read),
            torch.bmm(to_state.transpose(1, 2), before),
            to_input.sum(1),
            to_state.sum(1),
        )
        of_embedded = closed(torch.bmm(to_input, of_input), turn)
        return of_embedded, None, *(each.unflatten(0, (len(turn), 2)) for each in slopes)


def run(gates: Gates, weights: Tensor, bias: Tensor, said: Gates, hidden: States) -> None:
    """The recurrence, in place: `gates` arrive as input projections and leave as activated gates."""
    width = hidden.shape[3]
    across = weights.transpose(1, 2)
    opening, content = gates[..., : 2 * width].unbind(1), gates[..., 2 * width :].unbind(1)
    reset, update = gates[..., :width].unbind(1), gates[..., width : 2 * width].unbind(1)
    of_opening, of_content = said[..., : 2 * width].unbind(1), said[..., 2 * width :].unbind(1)
    saying, states = said.unbind(1), hidden.unbind(1)
    before = torch.zeros_like(states[0])
    for step, state in enumerate(states):
        torch.baddbmm(bias, before, across, out=saying[step])
        opening[step].add_(of_opening[step]).sigmoid_()
        content[step].addcmul_(reset[step], of_content[step]).tanh_()
        torch.lerp(content[step], before, update[step], out=state)
        before = state


def back(arriving: States, weights: Tensor, gates: Gates, said: Gates, hidden: States) -> tuple[Gates, Gates]:
    """The gradients at what input and state say to the gates, which differ in the content alone.

    Every factor that is known beforehand is multiplied out for all steps at once.
    """
    width = hidden.shape[3]
    reset, update, content = gates.split(width, dim=3)
    to_content = ((1 - update) * (1 - content**2)).unbind(1)
    to_update = ((_before(hidden) - content) * update * (1 - update)).unbind(1)
    to_reset = (said[..., 2 * width :] * reset * (1 - reset)).unbind(1)
    to_state = torch.empty_like(gates)
    of_reset, of_update, of_said = (part.unbind(1) for part in to_state.split(width, dim=3))
    content_slopes = torch.empty_like(hidden)
    of_content = content_slopes.unbind(1)
    resets, updates, comes, sent = (each.unbind(1) for each in (reset, update, arriving, to_state))
    through = torch.zeros_like(hidden[:, 0])
    for step in range(hidden.shape[1] - 1, -1, -1):
        of_hidden = comes[step] + through
        torch.mul(of_hidden, to_content[step], out=of_content[step])
        torch.mul(of_content[step], to_reset[step], out=of_reset[step])
        torch.mul(of_hidden, to_update[step], out=of_update[step])
        torch.mul(of_content[step], resets[step], out=of_said[step])
        through = torch.baddbmm(of_hidden * updates[step], sent[step], weights)
    return torch.cat([to_state[..., : 2 * width], content_slopes], dim=3), to_state


def _before(hidden: States) -> States:
    """The state that each step begins with."""
    return torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, :-1]], dim=1)
