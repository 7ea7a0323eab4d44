"""AMSGrad for a stack of models: one step for all, with a learning rate for each.

Steps are counted on the device, so that a step asks the host for nothing and can be recorded and replayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.model.optimiser import EPS, FIRST, SECOND, idle_sums

Rates = Mapping[str, Float[Tensor, " model"]]
Rows = Int[Tensor, " row"]


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
        scale = (-1 / (1 - FIRST**self.steps)).to(bottom[0].dtype)
        for parameter, move, name in zip(parameters, toward, names, strict=True):
            parameter.addcmul_(move, self.rates[name] * scale)

    def keep(self, parameters: Mapping[str, Tensor], index: Int[Tensor, " kept"]) -> None:
        """Go on with some of the models, whose parameters are these."""
        self.parameters = parameters
        self.rates = {name: rate[index] for name, rate in self.rates.items()}
        self.state = {name: [each[index] for each in kept] for name, kept in self.state.items()}


class StackedRows:
    """`optimiser.RowAdam` for rows that may be named any number of times, as a batch reads them.

    A row that is named often is moved as often, each time from where it was to the same place: to ask which
    rows are different would be to wait for the answer. Gradients meet in a table of their own first.
    """

    def __init__(self, table: Tensor, *, lr: float, weight_decay: float, total_steps: int) -> None:
        self.table, self.lr, self.weight_decay = table, lr, weight_decay
        self.first = torch.zeros_like(table)
        self.second = torch.zeros_like(table)
        self.largest = torch.zeros_like(table)
        self.gradient = torch.zeros_like(table)
        self.seen = torch.zeros(len(table), dtype=torch.int64, device=table.device)
        self.sums = torch.from_numpy(idle_sums(total_steps)).to(table.device)
        self.steps = torch.zeros((), dtype=torch.int64, device=table.device)

    @torch.no_grad()
    def catch_up(self, rows: Rows) -> None:
        """Let these rows glide to the present; see `optimiser` for how far that is."""
        since = self.seen[rows]
        idle = (self.steps - since).to(torch.float64)
        now = self.sums[self.steps.view(1)]  # a number without axes would be fetched by the host
        glide = self.sums[since] - FIRST**idle * now
        momentum = self.first[rows]
        toward = momentum / self.largest[rows].sqrt_().add_(EPS)
        self.table[rows] = self.table[rows] - toward * (self.lr * glide).to(toward)[:, None]
        self.first[rows] = momentum * (FIRST**idle).to(momentum)[:, None]
        self.second[rows] = self.second[rows] * (SECOND**idle).to(momentum)[:, None]
        self.seen[rows] = self.steps

    @torch.no_grad()
    def move(self, rows: Rows, gradient: Float[Tensor, "row emb"]) -> None:
        """One AMSGrad step on these rows, which are up to date; gradients of the same row add up."""
        self.steps += 1
        count = self.steps.to(torch.float64)
        self.gradient.index_add_(0, rows, gradient)
        gradient, values = self.gradient[rows], self.table[rows]
        gradient.add_(values, alpha=self.weight_decay)
        first = self.first[rows].lerp_(gradient, 1 - FIRST)
        second = self.second[rows].mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        largest = torch.maximum(self.largest[rows], second)
        bottom = (largest.sqrt() / (1 - SECOND**count).sqrt().to(values.dtype)).add_(EPS)
        self.table[rows] = values - first / bottom * (self.lr / (1 - FIRST**count)).to(values.dtype)
        self.first[rows], self.second[rows], self.largest[rows] = first, second, largest
        self.seen[rows] = self.steps
        self.gradient.index_fill_(0, rows, 0.0)

    def keep(self, table: Tensor, rows: Rows) -> None:
        """Go on with a table that holds these rows of the present one."""
        self.table = table
        for name in ("first", "second", "largest", "gradient", "seen"):
            setattr(self, name, getattr(self, name)[rows])


def _beside(rate: Float[Tensor, " model"], parameter: Tensor) -> Tensor:
    return rate.view(-1, *[1] * (parameter.ndim - 1)).to(parameter.dtype)
