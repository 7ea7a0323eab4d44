"""Does the item with the largest weight matter more than any other?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.removal.decisions import attended, in_double
from attentest.evidence.removal.orders import rankings
from attentest.evidence.removal.single import (
    RANDOM,
    TOP,
    SingleRemovals,
    any_other,
    any_place,
    exchanged,
    single_removals,
    topmost,
)
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.single_weight import ABOUT
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading

Columns = dict[str, np.ndarray]


@final
@dataclass(frozen=True, kw_only=True)
class SingleWeight(AbstractBesideControls):
    """The item on top of a ranking removed, and one at random: change of output and of decision (SS-1, SS-2).

    A row says of its text `items`, the units of positive weight, and for each ranking (attention, gradient,
    product) `gap_`, the weight on top minus the drawn one's; `js_top_` and `js_random_`, the divergences of
    the output, and `djs_`, their difference; `top_flips_` and `random_flips_`, 0 or 1. `null_` before a name
    is the same where hidden states have changed places beneath the weights. NaN for one item.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 1

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """One row a text."""
        model = subject.model
        for rows, reading in readings(model, subject.texts):
            exact = in_double(reading)
            # The same draws twice: the null's items have the same weights, wherever attention ranks them.
            seed = int(torch.randint(2**62, (), generator=rng))
            own, null = (
                self._measured(model, each, torch.Generator().manual_seed(seed))
                for each in (exact, exchanged(exact, rng=rng))
            )
            columns = own | {f"null_{name}": column for name, column in null.items()}
            items = attended(exact).sum(1).tolist()
            for place, row in enumerate(common_columns(subject, rows, reading)):
                measured = {name: float(column[place]) for name, column in columns.items()}
                yield {**row, "items": items[place], **measured}

    @torch.no_grad()
    def _measured(self, model: Model, reading: Reading, rng: torch.Generator) -> Columns:
        items = attended(reading)
        columns: Columns = {}
        for name, scores in rankings(model, reading).items():
            on_top = topmost(scores, items)
            if self.mode == "corrected":
                drawn = any_other(items, on_top, rng=rng)
            else:
                drawn = any_place(reading.mask, rng=rng)
            columns |= _columns(name, single_removals(model, reading, on_top, drawn))
        return columns


def _columns(name: str, found: SingleRemovals) -> Columns:
    weights, divergence, flips = found.weights.double(), found.divergence, found.flips.double()
    columns = {
        f"gap_{name}": weights[:, TOP] - weights[:, RANDOM],
        f"js_top_{name}": divergence[:, TOP],
        f"js_random_{name}": divergence[:, RANDOM],
        f"djs_{name}": divergence[:, TOP] - divergence[:, RANDOM],
        f"top_flips_{name}": flips[:, TOP],
        f"random_flips_{name}": flips[:, RANDOM],
    }
    nan = float("nan")
    return {n: column.masked_fill(~found.defined, nan).cpu().numpy() for n, column in columns.items()}
