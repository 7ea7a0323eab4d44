"""What becomes of the output under an attention that knows nothing of the text; nothing is trained again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat

import torch

from attentest.auditing.means import ABLATED
from attentest.evidence.ablation import moved, moved_by_uniform
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading


def ablated(subject: Subject, twin: Model | None) -> Iterator[Row]:
    """One row a text: how far the output moves under uniform weights, and under an untrained twin's.

    NaN for one unit, which leaves attention no choice, and where there is no twin.
    """
    model = subject.model
    others: Iterable[Reading | None] = repeat(None)
    if twin is not None:
        others = (reading for _, reading in readings(twin, subject.texts))
    for (rows, reading), theirs in zip(readings(model, subject.texts), others, strict=False):
        even = moved_by_uniform(model, reading).change
        frozen = torch.full_like(even, float("nan"))
        if theirs is not None:
            frozen = moved(model, reading, theirs.weights.to(reading.weights)).change
        for place, row in enumerate(common_columns(subject, rows, reading)):
            changes = dict(zip(ABLATED, (float(even[place]), float(frozen[place])), strict=True))
            yield {**row, **changes}
