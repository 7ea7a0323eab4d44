"""What becomes of the output under an attention that knows nothing of the text; nothing is trained again."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from attentest.auditing.means import ABLATED
from attentest.evidence.ablation import moved, moved_by_uniform
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.reader import readings
from attentest.model.seam import Model


def ablated(subject: Subject, twin: Model | None) -> Iterator[Row]:
    """One row a text: how far the output moves under uniform weights, and under an untrained twin's.

    NaN for one unit, which leaves attention no choice, and where there is no twin.
    """
    model = subject.model
    for rows, reading in readings(model, subject.texts):
        even = moved_by_uniform(model, reading).change
        frozen = torch.full_like(even, float("nan"))
        if twin is not None:
            with torch.no_grad():
                theirs = twin.read(reading.batch).weights.to(reading.weights)
            frozen = moved(model, reading, theirs).change
        for place, row in enumerate(common_columns(subject, rows, reading)):
            changes = dict(zip(ABLATED, (float(even[place]), float(frozen[place])), strict=True))
            yield {**row, **changes}
