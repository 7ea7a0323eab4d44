"""How many items must go before the decision flips?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.permutation import orders
from attentest.evidence.permuted_weights import permuted_weights
from attentest.evidence.removal.decisions import attended, in_double
from attentest.evidence.removal.exhausted_flip import exhausted_flip
from attentest.evidence.removal.first_flip import FirstFlips, Orders, first_flips
from attentest.evidence.removal.orders import largest_first, rankings
from attentest.evidence.removal.single import exchanged
from attentest.evidence.removal.smallest import smallest_flip
from attentest.experiments.contract import Row, Subject
from attentest.experiments.removal import ABOUT
from attentest.experiments.removal import conclude as removal
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

Columns = dict[str, np.ndarray]


@final
@dataclass(frozen=True, kw_only=True)
class Removal(AbstractBesideControls):
    """Items removed from the top of four rankings until the decision flips (SS-3), and the fewest possible.

    A row says of its text: `items`, the units of positive weight; `smallest`, the size of the exact smallest
    flip, 0 where nothing flips and NaN where the decision is not affine (of models made elsewhere, for texts
    too long to try every set); for each ranking `count_` and
    `mass_`, items and attention removed at the first flip, -1 where it never flips; `counts_random`, that
    count for each random order, whose mean `count_random` is -1 if any of them never flips. `null_` before
    a name is the same where hidden states have changed places beneath the weights. Undefined is NaN.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    orders: int = 5

    def __post_init__(self) -> None:
        if self.orders < 1:
            raise Refusal(
                "experiment removal",
                got=f"{self.orders} random orders",
                needs="at least 1",
                way_out="The published code draws 5.",
            )

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        model = subject.model
        for rows, reading in readings(model, subject.texts):
            exact = in_double(reading)
            drawn = orders(attended(exact), self.orders, rng=rng)
            if self.mode == "as-published":  # its figure shows the first of the five
                drawn = drawn[:, :1]
            own = measured(model, exact, drawn)
            null = _exchanged(model, exact, drawn, rng)
            columns = own | {f"null_{name}": null[name] for name in removal.MEASURED}
            for place, row in enumerate(common_columns(subject, rows, reading)):
                yield {**row, **{name: column[place].tolist() for name, column in columns.items()}}


def _exchanged(model: Model, reading: Reading, drawn: Orders, rng: torch.Generator) -> Columns:
    """The same beneath other weights; whoever cannot move a model's states deals its weights to others."""
    if model.network is not None:
        return measured(model, exchanged(reading, rng=rng), drawn)
    order = orders(reading.mask, 1, rng=rng)[:, 0]
    return measured(model, permuted_weights(reading, order), order[:, None].expand_as(drawn).gather(2, drawn))


@torch.no_grad()
def measured(model: Model, reading: Reading, drawn: Orders) -> Columns:
    """The first flip of every ranking, of each of the drawn orders, and the smallest flip."""
    items = attended(reading)
    ranked = {
        name: largest_first(scores, items)[:, None] for name, scores in rankings(model, reading).items()
    }
    found = first_flips(model, reading, torch.cat([drawn, *ranked.values()], dim=1))
    return {
        "items": found.items.cpu().numpy(),
        "smallest": _smallest(model, reading),
        **_by_ranking(found, drawn.shape[1], tuple(ranked)),
    }


def _by_ranking(found: FirstFlips, drawn: int, names: tuple[str, ...]) -> Columns:
    """Counts and masses by name; the first `drawn` orders are the random ones, and share a column."""
    count, mass = (_or_nan(column, found.defined) for column in (found.count.double(), found.mass))
    columns = {"counts_random": count[:, :drawn]}
    never = (count[:, :drawn] < 0).any(1)
    for what, column in (("count", count), ("mass", mass)):
        columns[f"{what}_random"] = np.where(never, -1.0, column[:, :drawn].mean(1))
        columns |= {f"{what}_{name}": column[:, drawn + place] for place, name in enumerate(names)}
    return columns


def _smallest(model: Model, reading: Reading) -> np.ndarray:
    if model.network is None:
        return exhausted_flip(model, reading).cpu().numpy()
    if reading.values is None or reading.bias is None:
        return np.full(len(reading.mask), np.nan)
    found = smallest_flip(
        reading.weights, reading.values, reading.bias, reading.mask, answers=reading.batch.answers
    )
    return _or_nan(found.count.double(), found.defined)


def _or_nan(column: Tensor, defined: Tensor) -> np.ndarray:
    undefined = ~defined.view(-1, *(1,) * (column.ndim - 1))
    return column.masked_fill(undefined, float("nan")).cpu().numpy()
