"""Adam that touches only the rows of the embedding table a batch read, and ends where dense Adam would.

A dense optimiser rewrites the whole table (and four tables of state) at every step, though a batch of text
reads a few hundred rows of it: most of the published code's training time. Skipping the others naively is
another algorithm, because under Adam a row keeps gliding on its momentum after its last gradient: a rare
word's single update is drawn out over some twenty steps and sums to about ten times the first.

But while a row is idle its path is known. Its momentum shrinks by `b1` a step, its largest second moment
stays, and only the bias correction `c_j = sqrt(1 - b2^j) / (1 - b1^j)` varies, so idling from step s to t
moves it by `-lr * m / sqrt(v_max) * sum_{j=s+1..t} b1^(j-s) c_j`. With `F(s) = b1 (c_{s+1} + F(s+1))`, one
table for all rows, the sum is `F(s) - b1^(t-s) F(t)`. A row is brought up to date just before it is read.

Two departures from dense Adam, both expected to be small, neither measured apart: weight decay acts on a row
only at steps that read it, and `eps` (1e-8) is left out of the idle sum's denominators' bias correction.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

FIRST, SECOND, EPS = 0.9, 0.999, 1e-8
Rows = Int[Tensor, " row"]


def idle_sums(steps: int, decay: float = FIRST) -> Float[np.ndarray, " step"]:
    """`F(0) .. F(steps)`, from a start far enough beyond that its error has died out (b1^400 < 1e-18).

    `decay` is what an idle step leaves of the last: of AMSGrad that of the momentum alone.
    """
    late = steps + 400
    j = np.arange(1, late + 1)
    correction = np.sqrt(1 - SECOND**j) / (1 - FIRST**j)
    sums = np.empty(late + 1)
    sums[late] = decay / (1 - decay)
    for s in range(late - 1, -1, -1):
        sums[s] = decay * (correction[s] + sums[s + 1])
    return sums[: steps + 1]


def shrink(model: nn.Module, most: float) -> None:
    """Scale all gradients down to a norm of `most`, row-sparse ones included (torch's own refuses those)."""
    slopes = [p.grad for p in model.parameters() if p.grad is not None]
    whole = [slope.coalesce()._values() if slope.is_sparse else slope for slope in slopes]
    norm = torch.stack([slope.norm() for slope in whole]).norm()
    if norm > most:
        for slope in slopes:
            slope.mul_(most / norm)


@final
class RowAdam:
    """AMSGrad over the rows of one table; call `catch_up` before reading rows and `step` after backward."""

    def __init__(self, table: Tensor, *, lr: float, weight_decay: float, total_steps: int) -> None:
        self.table, self.lr, self.weight_decay = table, lr, weight_decay
        self.first = torch.zeros_like(table)
        self.second = torch.zeros_like(table)
        self.largest = torch.zeros_like(table)
        self.seen = torch.zeros(len(table), dtype=torch.int64, device=table.device)
        self.sums = torch.from_numpy(idle_sums(total_steps)).to(table.device)
        self.steps = 0

    @torch.no_grad()
    def catch_up(self, rows: Rows | None = None) -> None:
        """Let these rows (default: all) glide to the present."""
        if rows is None:
            rows = torch.nonzero(self.seen < self.steps).squeeze(1)
        since = self.seen[rows]
        # Rows that are up to date glide nowhere; asking a GPU which costs more than that.
        if not rows.is_cuda:
            late = since < self.steps
            rows, since = rows[late], since[late]
        if not len(rows):
            return
        idle = (self.steps - since).to(torch.float64)
        glide = self.sums[since] - FIRST**idle * self.sums[self.steps]
        # `index_select` and not brackets, which take five times as long on a CPU.
        momentum, largest = self.first.index_select(0, rows), self.largest.index_select(0, rows)
        toward = momentum / largest.sqrt_().add_(EPS)
        glided = self.table.index_select(0, rows) - toward * (self.lr * glide).to(toward)[:, None]
        self.table.index_copy_(0, rows, glided)
        self.first.index_copy_(0, rows, momentum * (FIRST**idle).to(momentum)[:, None])
        aged = self.second.index_select(0, rows) * (SECOND**idle).to(momentum)[:, None]
        self.second.index_copy_(0, rows, aged)
        self.seen[rows] = self.steps

    @torch.no_grad()
    def step(self) -> None:
        """One AMSGrad step on the rows that have a gradient; the table's gradient is used up."""
        sparse = self.table.grad
        assert sparse is not None and sparse.is_sparse, "the table's gradient must be row-sparse"
        rows, gradient = sparse._indices()[0], sparse._values()
        if not bool((rows[1:] > rows[:-1]).all()):  # as they are where distinct words were looked up
            rows, place = torch.unique(rows, return_inverse=True)
            gradient = self.table.new_zeros(len(rows), self.table.shape[1]).index_add_(0, place, gradient)
        self.table.grad = None
        self.catch_up(rows)
        self.move(rows, gradient)

    @torch.no_grad()
    def move(self, rows: Rows, gradient: Float[Tensor, "row emb"]) -> None:
        """One AMSGrad step on these rows, which are up to date and each named once; uses the gradient up."""
        self.steps += 1
        self._move(rows, gradient)
        self.seen[rows] = self.steps

    def _move(self, rows: Rows, gradient: Float[Tensor, "row emb"]) -> None:
        held = (self.table, self.first, self.second, self.largest)
        values, first, second, largest = (each.index_select(0, rows) for each in held)
        gradient.add_(values, alpha=self.weight_decay)
        first.lerp_(gradient, 1 - FIRST)
        second.mul_(SECOND).addcmul_(gradient, gradient, value=1 - SECOND)
        torch.maximum(largest, second, out=largest)
        scale = (1 - SECOND**self.steps) ** 0.5
        bottom = (largest.sqrt() / scale).add_(EPS)
        values.addcdiv_(first, bottom, value=-self.lr / (1 - FIRST**self.steps))
        for each, moved in zip(held, (values, first, second, largest), strict=True):
            each.index_copy_(0, rows, moved)

    def state(self) -> dict[str, Tensor]:
        """What it takes to go on later."""
        steps = torch.tensor(self.steps)
        state = {"first": self.first, "second": self.second, "largest": self.largest}
        return {**state, "seen": self.seen, "steps": steps}

    @torch.no_grad()
    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from `state`."""
        for name in ("first", "second", "largest", "seen"):
            getattr(self, name).copy_(state[name])
        self.steps = int(state["steps"])
