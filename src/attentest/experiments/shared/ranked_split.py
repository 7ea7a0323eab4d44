"""A whole test split as one model reads it, every text's units in the order of their attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.information.ranked import ranked
from attentest.experiments.contract import Row, Subject
from attentest.experiments.shared.common_columns import common_columns
from attentest.model.batch import buckets
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import Reading
from attentest.statistics.comparison import normalised_entropy


@final
@dataclass(frozen=True, eq=False)
class RankedSplit:
    """What a ranking needs of every text, in the order of the examples."""

    rows: list[Row]  # what every row begins with, and how flat attention is
    attention: Float[np.ndarray, "text unit"]  # NaN beyond a text's units
    vectors: Float[Tensor, "rank text hidden"]  # a rank lies together, since each is quantised alone
    logits: Float[Tensor, "text class"]

    @classmethod
    def read(cls, subject: Subject, most: int, noise: torch.Generator | None) -> RankedSplit:
        """Hidden states are kept for `most` ranks; `noise` draws what training draws, None means none."""
        model, split = subject.model, subject.texts
        whole = cls(
            rows=[{} for _ in split.examples],
            attention=np.full((len(split), int(split.lengths.max())), np.nan),
            vectors=torch.zeros(most, len(split), model.width, device=model.device),
            logits=torch.zeros(len(split), model.outputs, device=model.device),
        )
        for places in buckets(split.lengths, split.at_once or TEXTS, tokens=TOKENS):
            with torch.no_grad():
                reading = model.read_distinct(split.batch(places).to(model.device), rng=noise)
                whole.logits[places] = model.decide(reading)
                found = ranked(reading, most)
            whole.vectors[: found.vectors.shape[1], places] = found.vectors.transpose(0, 1)
            whole.attention[places, : found.weights.shape[1]] = found.weights.cpu().numpy()
            for place, row in zip(places, _begun(subject, places, reading), strict=True):
                whole.rows[place] = row
        return whole

    @property
    def lengths(self) -> Int[np.ndarray, " text"]:
        """The units of each text."""
        return np.array([row["length"] for row in self.rows], dtype=np.int64)

    @property
    def sound(self) -> Bool[np.ndarray, " text"]:
        """Whether a text's attention and output are numbers."""
        weights = (~np.isnan(self.attention)).sum(axis=1) == self.lengths
        return weights & ~self.logits.isnan().any(1).cpu().numpy()


def _begun(subject: Subject, places: np.ndarray, reading: Reading) -> list[Row]:
    flat = np.atleast_1d(normalised_entropy(reading.weights.cpu().numpy(), reading.mask.cpu().numpy()))
    rows = common_columns(subject, places, reading)
    return [{**row, "entropy": float(own)} for row, own in zip(rows, flat, strict=True)]
