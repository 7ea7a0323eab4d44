"""Plain Adam over a table of which each step reads a few rows, ending where dense Adam would.

A row that no step reads still moves, on the momentum it has. `model.optimiser` follows such a row for
AMSGrad, whose largest second moment stays while the row is idle. Adam's own shrinks by `b2` a step, and the
momentum by `b1`, so that their quotient is geometric with `r = b1 / sqrt(b2)`: idling from step s to t moves
the row by `-rate * m / sqrt(v) * sum_{j=s+1..t} r^(j-s) c_j`, `c_j = sqrt(1 - b2^j) / (1 - b1^j)` being the
correction of the bias. With `F(s) = r (c_{s+1} + F(s+1))`, one number a step, the sum is
`F(s) - r^(t-s) F(t)`. What is left out is `eps` (1e-8) beside the square root while a row is idle.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.model.training.optimiser import EPS, FIRST, SECOND, idle_sums

RATIO = FIRST / SECOND**0.5
Rows = Int[Tensor, " row"]
Table = Float[Tensor, "row *column"]


@final
class GlidingAdam:
    """Call `catch_up` before rows are read and `step` with their gradient; `steps` are all there will be."""

    def __init__(self, table: Table, *, rate: float, steps: int) -> None:
        self.table, self.rate, self.steps = table, rate, 0
        self.first, self.second = torch.zeros_like(table), torch.zeros_like(table)
        self._seen = torch.zeros(len(table), dtype=torch.int64)
        self._glides = torch.from_numpy(idle_sums(steps, RATIO))

    def catch_up(self, rows: Rows | None = None) -> None:
        """Let these rows, each named once, glide to the present; by default all."""
        rows = torch.arange(len(self.table)) if rows is None else rows
        rows = rows[self._seen[rows] < self.steps]
        if not len(rows):
            return
        since = self._seen[rows]
        idle = (self.steps - since).double()
        far = self.rate * (self._glides[since] - RATIO**idle * self._glides[self.steps])
        first, second = self.first[rows], self.second[rows]
        self.table[rows] -= self._a_row(far) * first / second.sqrt().add_(EPS)
        self.first[rows] = first * self._a_row(FIRST**idle)
        self.second[rows] = second * self._a_row(SECOND**idle)
        self._seen[rows] = self.steps

    def step(self, rows: Rows, gradient: Table) -> None:
        """One step of all rows: these have a gradient, and the others will glide when they are asked."""
        self.steps += 1
        first = self.first[rows].lerp_(gradient, 1 - FIRST)
        second = self.second[rows].mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        bottom = (second.sqrt() / (1 - SECOND**self.steps) ** 0.5).add_(EPS)
        self.table[rows] -= self.rate / (1 - FIRST**self.steps) * first / bottom
        self.first[rows], self.second[rows] = first, second
        self._seen[rows] = self.steps

    def _a_row(self, numbers: Float[Tensor, " row"]) -> Tensor:
        """One number a row, in the shape of its columns."""
        return numbers.to(self.table).view(-1, *(1,) * (self.table.ndim - 1))
