"""ERASER's faithfulness (DeYoung et al. 2020): what is lost without the words on top, and with them alone.

Comprehensiveness is how far the predicted class's probability falls when the top k % are deleted: a good
ranking names all that counts, so higher is better. Sufficiency is how far it falls when nothing else is left:
lower is better. Words are deleted and the rest is read again, as in leave-one-out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.importances.presence import answers_to_parts, explained
from attentest.evidence.permutation import orders
from attentest.model.seam import Model, Reading

BINS = (1, 5, 10, 20, 50)  # per cent of a text's units
Rankings = Float[Tensor, "batch ranking unit"]
PerBin = Float[Tensor, "batch ranking bin"]
PerRanking = Float[Tensor, "batch ranking"]


@final
@dataclass(frozen=True)
class Faithfulness:
    """Both measures of every ranking in every bin; NaN where a text has one unit or a ranking a NaN."""

    comprehensiveness: PerBin
    sufficiency: PerBin
    nothing_left: Float[Tensor, " batch"]  # sufficiency of no words at all

    def aopc(self, *, with_none: bool = False) -> tuple[PerRanking, PerRanking]:
        """Comprehensiveness and sufficiency over the bins (A15).

        The plain mean over the bins, or as the paper's formula has it: with a bin of no words before them.
        """
        both = self.comprehensiveness, self.sufficiency
        if not with_none:
            return both[0].mean(2), both[1].mean(2)
        bins = len(BINS) + 1
        nothing = self.nothing_left[:, None]
        return both[0].sum(2) / bins, (both[1].sum(2) + nothing) / bins


def faithfulness(
    model: Model,
    reading: Reading,
    scores: Rankings,
    *,
    road: str | None = None,
    known: KnownParts | None = None,
) -> Faithfulness:
    """Of any number of rankings at once; the largest score is on top, of equals the first in the text."""
    top = on_top(scores, reading.mask)
    both = torch.cat([~top & reading.mask[:, None, None], top], dim=2)
    found = answers_to_parts(model, reading, both.flatten(1, 2), road=road, known=known)
    found = found.unflatten(1, both.shape[1:3])
    about = explained(model, reading)
    fallen = about.probability[:, None, None] - found
    unknown = (scores.isnan() & reading.mask[:, None]).any(2) | (reading.mask.sum(1) < 2)[:, None]
    without, alone = fallen.masked_fill(unknown[..., None], float("nan")).split(len(BINS), dim=2)
    return Faithfulness(without, alone, about.probability - about.unread)


def on_top(scores: Rankings, mask: Bool[Tensor, "batch unit"]) -> Bool[Tensor, "batch ranking bin unit"]:
    """Which units are among the top of each bin: its share of the units rounded down, yet at least one."""
    last_of_all = scores.nan_to_num(0.0).masked_fill(~mask[:, None], float("-inf"))
    place = last_of_all.argsort(dim=2, descending=True, stable=True).argsort(2)
    counts = top_counts(mask.sum(1))
    return (place[:, :, None] < counts[:, None, :, None]) & mask[:, None, None]


def top_counts(lengths: Int[Tensor, " batch"]) -> Int[Tensor, "batch bin"]:
    """How many units each bin has, in whole numbers: a share of 700 units must not be 7.000000000000001."""
    per_cent = torch.tensor(BINS, device=lengths.device)
    return (lengths[:, None] * per_cent // 100).clamp_min(1)


def random_scores(mask: Bool[Tensor, "batch unit"], rankings: int, *, rng: torch.Generator) -> Rankings:
    """The null: rankings that know nothing of the text."""
    return orders(mask, rankings, rng=rng).argsort(2).float()
