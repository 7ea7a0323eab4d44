"""AMSGrad for a stack of models: one step for all, with a learning rate for each."""

from __future__ import annotations

from collections.abc import Mapping

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
        self.rates = {name: _beside(rate, parameters[name]) for name, rate in rates.items()}
        self.state = {
            name: [torch.zeros_like(each, requires_grad=False) for _ in range(3)]
            for name, each in parameters.items()
        }
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Descend; the gradients are used up. A parameter that had no part in the loss stays.

        Lists go through each operation in one call: of a small model's step the calls are what it costs.
        """
        self.steps += 1
        moving = [name for name, parameter in self.parameters.items() if parameter.grad is not None]
        parameters = [self.parameters[name] for name in moving]
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        decays = [self.weight_decay[name] for name in moving]
        torch._foreach_add_(gradients, torch._foreach_mul(parameters, decays))
        first, second, largest = ([self.state[name][n] for name in moving] for n in range(3))
        torch._foreach_lerp_(first, gradients, 1 - FIRST)
        torch._foreach_mul_(second, SECOND)
        torch._foreach_addcmul_(second, gradients, gradients, value=1 - SECOND)
        torch._foreach_maximum_(largest, second)
        bottom = torch._foreach_sqrt(largest)
        torch._foreach_div_(bottom, (1 - SECOND**self.steps) ** 0.5)
        torch._foreach_add_(bottom, EPS)
        toward = torch._foreach_div(first, bottom)
        for parameter, move, name in zip(parameters, toward, moving, strict=True):
            parameter.addcmul_(move, self.rates[name], value=-1 / (1 - FIRST**self.steps))
            parameter.grad = None

    def keep(self, parameters: Mapping[str, Tensor], index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the models, whose parameters are these."""
        self.parameters = parameters
        self.rates = {name: rate[index] for name, rate in self.rates.items()}
        self.state = {name: [each[index] for each in kept] for name, kept in self.state.items()}


def _beside(rate: Float[Tensor, " model"], parameter: Tensor) -> Tensor:
    return rate.view(-1, *[1] * (parameter.ndim - 1)).to(parameter.dtype)
