"""What becomes of the output under an attention that knows nothing of the text; nothing is trained again."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.experiments.contract import Row, Subject
from attentest.experiments.rows import begun
from attentest.findings.audit_means import ABLATED
from attentest.model.decoder import distribution
from attentest.model.divergence import total_variation
from attentest.model.projection import uniform
from attentest.model.reader import readings
from attentest.model.seam import AttentionModel, Reading


def ablated(subject: Subject, twin: AttentionModel | None) -> Iterator[Row]:
    """One row a text: how far the output moves under uniform weights, and under an untrained twin's.

    NaN for one unit, which leaves attention no choice, and where there is no twin.
    """
    model = subject.model
    for rows, reading in readings(model, subject.texts):
        with torch.no_grad():
            even = _change(model, reading, uniform(reading.scores, reading.mask))
            frozen = torch.full_like(even, float("nan"))
            if twin is not None:
                frozen = _change(model, reading, twin.read(reading.batch).weights.to(reading.weights))
        alone = reading.mask.sum(1) < 2
        even, frozen = (column.masked_fill(alone, float("nan")) for column in (even, frozen))
        for place, row in enumerate(begun(subject, rows, reading)):
            changes = dict(zip(ABLATED, (float(even[place]), float(frozen[place])), strict=True))
            yield {**row, **changes}


def _change(model: AttentionModel, reading: Reading, given: Tensor) -> Float[Tensor, " batch"]:
    own = distribution(model.decide(reading))
    return total_variation(distribution(model.decide(reading, given)), own)
