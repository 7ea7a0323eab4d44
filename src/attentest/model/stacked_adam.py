"""AMSGrad for a stack of models: one step for all, with a learning rate for each.

Steps are counted on the device, so that a step asks the host for nothing and can be recorded and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.model.optimiser import EPS, FIRST, SECOND

Rates = Mapping[str, Float[Tensor, " model"]]


class StackedAdam:
    """What `torch.optim.Adam(amsgrad=True)` would do to each model by itself; a rate of 0 is frozen."""

    def __init__(
        self, parameters: Mapping[str, Tensor], rates: Rates, weight_decay: Mapping[str, float]
    ) -> None:
        self.parameters, self.weight_decay = parameters, weight_decay
        # One for every number, because lists of unlike shapes would be gone through one by one.
        self.rates = {name: _spread(rate, parameters[name]) for name, rate in rates.items()}
        self.state = {
            name: [torch.zeros_like(each, requires_grad=False) for _ in range(3)]
            for name, each in parameters.items()
        }
        device = next(iter(parameters.values())).device
        self.steps = torch.zeros((), dtype=torch.float64, device=device)

    @torch.no_grad()
    def step(self, names: Sequence[str], gradients: list[Tensor]) -> None:
        """Descend along the gradients of these parameters, which are used up.

        Lists go through each operation in one call: of a small model's step the calls are what it costs.
        """
        self.steps += 1
        parameters = [self.parameters[name] for name in names]
        decays = [self.weight_decay[name] for name in names]
        torch._foreach_add_(gradients, torch._foreach_mul(parameters, decays))
        first, second, largest = ([self.state[name][n] for name in names] for n in range(3))
        torch._foreach_lerp_(first, gradients, 1 - FIRST)
        torch._foreach_mul_(second, SECOND)
        torch._foreach_addcmul_(second, gradients, gradients, value=1 - SECOND)
        torch._foreach_maximum_(largest, second)
        bottom = torch._foreach_sqrt(largest)
        torch._foreach_div_(bottom, (1 - SECOND**self.steps).sqrt().to(bottom[0].dtype))
        torch._foreach_add_(bottom, EPS)
        toward = torch._foreach_div(first, bottom)
        torch._foreach_mul_(toward, [self.rates[name] for name in names])
        torch._foreach_div_(toward, (1 - FIRST**self.steps).to(bottom[0].dtype))
        torch._foreach_sub_(parameters, toward)

    def keep(self, parameters: Mapping[str, Tensor], index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the models, whose parameters are these."""
        self.parameters = parameters
        self.rates = {name: rate[index] for name, rate in self.rates.items()}
        self.state = {name: [each[index] for each in kept] for name, kept in self.state.items()}


def _spread(rate: Float[Tensor, " model"], parameter: Tensor) -> Tensor:
    beside = rate.view(-1, *[1] * (parameter.ndim - 1)).to(parameter.dtype)
    return beside.expand_as(parameter).contiguous()
