"""AMSGrad for a stack of models: one step for all, with a learning rate for each.

Steps are counted on the device, so that a step asks the host for nothing and can be recorded and replayed.
What is kept of the parameters lies end to end and is gone through in a dozen calls, because calls are what a
small model's step costs: given lists (`_foreach`), torch takes them one by one wherever a gradient is laid
out otherwise than its parameter, as gradients of products are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.model.training.optimiser import EPS, FIRST, SECOND

Rates = Mapping[str, Float[Tensor, " model"]]
MOMENTS = 3  # the first, the second, and the largest that the second has been


@final
class StackedAdam:
    """What `torch.optim.Adam(amsgrad=True)` would do to each model by itself; a rate of 0 is frozen."""

    def __init__(
        self, parameters: Mapping[str, Tensor], rates: Rates, weight_decay: Mapping[str, float]
    ) -> None:
        self.parameters, self.weight_decay, self.rates = parameters, weight_decay, rates
        self.state = {
            name: [torch.zeros_like(each, requires_grad=False) for _ in range(MOMENTS)]
            for name, each in parameters.items()
        }
        device = next(iter(parameters.values())).device
        self.steps = torch.zeros((), dtype=torch.float64, device=device)
        self._laid: tuple[str, ...] = ()

    @torch.no_grad()
    def _lay(self, names: Sequence[str]) -> None:
        """Lay what is kept of these parameters end to end; `state` goes on as views of it."""
        if self._laid == tuple(names):
            return
        self._laid = tuple(names)
        parameters = [self.parameters[name] for name in names]
        self.moments = [_end_to_end([self.state[name][n] for name in names]) for n in range(MOMENTS)]
        for name, *views in zip(names, *(_apart(each, parameters) for each in self.moments), strict=True):
            self.state[name] = views
        rates = [_beside(self.rates[name], self.parameters[name]) for name in names]
        decays = [self.parameters[name].new_full((), self.weight_decay[name]) for name in names]
        self.rate, self.decay = (
            _end_to_end([own.expand_as(each) for own, each in zip(of_each, parameters, strict=True)])
            for of_each in (rates, decays)
        )

    @torch.no_grad()
    def step(self, names: Sequence[str], gradients: Sequence[Tensor]) -> None:
        """Descend along the gradients of these parameters."""
        self._lay(names)
        self.steps += 1
        parameters = [self.parameters[name] for name in names]
        gradient = _end_to_end(gradients).addcmul_(_end_to_end(parameters), self.decay)
        first, second, largest = self.moments
        first.lerp_(gradient, 1 - FIRST)
        second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        torch.maximum(largest, second, out=largest)
        bottom = largest.sqrt().div_((1 - SECOND**self.steps).sqrt().to(largest.dtype)).add_(EPS)
        toward = torch.div(first, bottom, out=bottom).mul_(self.rate)
        toward.div_((1 - FIRST**self.steps).to(largest.dtype))
        torch._foreach_sub_(parameters, _apart(toward, parameters))

    def keep(self, parameters: Mapping[str, Tensor], index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the models, whose parameters are these."""
        self.parameters = parameters
        self.rates = {name: rate[index] for name, rate in self.rates.items()}
        self.state = {name: [each[index] for each in kept] for name, kept in self.state.items()}
        self._laid = ()


def _end_to_end(tensors: Sequence[Tensor]) -> Float[Tensor, " number"]:
    return torch.cat([each.reshape(-1) for each in tensors])


def _apart(flat: Float[Tensor, " number"], like: Sequence[Tensor]) -> list[Tensor]:
    cut = flat.split([each.numel() for each in like])
    return [part.view(each.shape) for part, each in zip(cut, like, strict=True)]


def _beside(rate: Float[Tensor, " model"], parameter: Tensor) -> Tensor:
    return rate.view(-1, *[1] * (parameter.ndim - 1)).to(parameter.dtype)
