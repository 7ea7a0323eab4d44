"""`optimiser.RowAdam` for the tables of many models, which are one long table, on a device never asked.

A batch names a row as often as its word occurs. To learn which rows are different would be to wait for the
answer; so a row that is named often is moved as often, each time from where it was to the same place, or,
by the kernels, once, by whoever comes first. Steps are counted on the device, and what depends on their
number alone is in tables.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.fleet.kernels import rows_kernels as kernels
from attentest.model.networks.recurrence_kernels import triton
from attentest.model.training.optimiser import EPS, FIRST, SECOND, idle_sums

Rows = Int[Tensor, " row"]  # below 0 is none


@final
class StackedRows:
    """AMSGrad over rows of one table; call `catch_up` before reading rows and `move` with their gradients."""

    def __init__(self, table: Tensor, *, lr: float, weight_decay: float, total_steps: int) -> None:
        self.table, self.lr, self.weight_decay = table, lr, weight_decay
        self.first = torch.zeros_like(table)
        self.second = torch.zeros_like(table)
        self.largest = torch.zeros_like(table)
        self.gradient = torch.zeros_like(table)  # those of one row meet here
        self.seen = torch.zeros(len(table), dtype=torch.int32, device=table.device)
        self.steps = torch.zeros((), dtype=torch.int32, device=table.device)
        count = np.arange(total_steps + 1)
        of_count = (lr * idle_sums(total_steps), FIRST**count, SECOND**count)
        self.glides, self.fading, self.aging = (torch.from_numpy(each).to(table.device) for each in of_count)

    @torch.no_grad()
    def catch_up(self, rows: Rows) -> None:
        """Let these rows glide to the present; see `optimiser` for how far that is."""
        if self.is_fast():
            self._launch(kernels.catch_up, rows, self.glides)
            return
        rows = rows.clamp_min(0)
        since, now = self.seen[rows], self.steps.view(1)  # a number without axes would be fetched by the host
        idle = now - since
        glide = self.glides[since] - self.fading[idle] * self.glides[now]
        momentum = self.first[rows]
        toward = momentum / self.largest[rows].sqrt_().add_(EPS)
        self.table[rows] = self.table[rows] - toward * glide.to(toward)[:, None]
        self.first[rows] = momentum * self.fading[idle].to(momentum)[:, None]
        self.second[rows] = self.second[rows] * self.aging[idle].to(momentum)[:, None]
        self.seen[rows] = self.steps

    @torch.no_grad()
    def move(self, rows: Rows, gradient: Float[Tensor, "row emb"]) -> None:
        """One AMSGrad step on these rows, which are up to date; gradients of the same row add up."""
        self.steps += 1
        if self.is_fast():
            wide = gradient.shape[1], triton.next_power_of_2(gradient.shape[1])
            kernels.add[(len(rows),)](rows, gradient.contiguous(), self.gradient, *wide)
            self._launch(kernels.move, rows, self.gradient, self.lr, self.weight_decay)
            return
        gradient, rows = gradient.masked_fill((rows < 0)[:, None], 0.0), rows.clamp_min(0)
        now = self.steps.view(1)
        self.gradient.index_add_(0, rows, gradient)
        gradient, values = self.gradient[rows], self.table[rows]
        gradient.add_(values, alpha=self.weight_decay)
        first = self.first[rows].lerp_(gradient, 1 - FIRST)
        second = self.second[rows].mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        largest = torch.maximum(self.largest[rows], second)
        bottom = (largest.sqrt() / (1 - self.aging[now]).sqrt().to(values.dtype)).add_(EPS)
        self.table[rows] = values - first / bottom * (self.lr / (1 - self.fading[now])).to(values.dtype)
        self.first[rows], self.second[rows], self.largest[rows] = first, second, largest
        self.seen[rows] = self.steps
        self.gradient.index_fill_(0, rows, 0.0)

    def is_fast(self) -> bool:
        """Whether the kernels can do it, which touch a row once however often it is named."""
        return triton is not None and self.table.is_cuda and self.table.dtype == torch.float32

    def _launch(self, kernel: Any, rows: Rows, *more: Any) -> None:
        """One program for each name of a row."""
        wide = self.table.shape[1]
        held = (self.table, self.first, self.second, self.largest, self.seen)
        counted = (self.steps, self.fading, self.aging)
        kernel[(len(rows),)](rows, *held, *counted, *more, wide, triton.next_power_of_2(wide))

    def keep(self, table: Tensor, rows: Rows) -> None:
        """Go on with a table that holds these rows of the present one."""
        self.table = table
        for name in ("first", "second", "largest", "gradient", "seen"):
            setattr(self, name, getattr(self, name)[rows])
