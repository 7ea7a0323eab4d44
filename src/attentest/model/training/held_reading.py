"""Reading for a training: every batch anew, unless nothing that is read can change.

Where words and encoder are frozen (adversaries of Meister et al. 2021, Fix Rep of Wen et al. 2022) every
epoch would read the same states again, which is nearly all of its time. They are read at the first step.
"""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.model.batch import AbstractSplit, Batch
from attentest.model.network import AttentionModel
from attentest.model.networks.encoders import Encoded
from attentest.model.reader import readings
from attentest.model.seam import Reading

ROOM = 2**30  # bytes that may be spent on states
FROZEN = {"embedding", "encoder"}  # what states rest on


@final
class TrainingReader:
    """The readings of a training, whose frozen states are kept from the first step on."""

    def __init__(self, model: AttentionModel, split: AbstractSplit) -> None:
        self.model, self.split = model, split
        size = int(split.lengths.sum()) * model.encoder.width * model.embedding.weight.element_size()
        units = not model.gathers and model.attention is not None
        self.holds = set(model.config.freeze) >= FROZEN and units and size <= ROOM
        self.states: HeldReading | None = None

    def __call__(self, rows: Int[np.ndarray, " text"], batch: Batch, rng: torch.Generator | None) -> Reading:
        """The batch of these rows of the split; `rng` draws training's noise."""
        if not self.holds:
            return self.model.read_distinct(batch, rng=rng)
        if self.states is None:
            self.states = HeldReading(self.model, self.split)
        return self.states(rows, batch, rng)


@final
class HeldReading:
    """The states of a whole split end to end, after one of zeros, which is what padding gets."""

    def __init__(self, model: AttentionModel, split: AbstractSplit) -> None:
        self.model, self.lengths = model, split.lengths
        self.begins = 1 + np.cumsum(split.lengths) - split.lengths
        self.hidden = torch.zeros(1 + int(split.lengths.sum()), model.encoder.width)
        self.hidden = self.hidden.to(model.embedding.weight)
        self.query: Float[Tensor, "text hidden"] | None = None
        for rows, reading in readings(model, split):
            at = self._places(rows)
            self.hidden[at[at > 0]] = reading.hidden[at > 0]
            if reading.query is not None:
                if self.query is None:
                    self.query = reading.query.new_zeros(len(split), reading.query.shape[1])
                self.query[torch.from_numpy(rows).to(self.query.device)] = reading.query

    def _places(self, rows: Int[np.ndarray, " text"]) -> Int[Tensor, "text token"]:
        """Where the states of these texts lie."""
        token = np.arange(self.lengths[rows].max())
        at = np.where(token < self.lengths[rows][:, None], self.begins[rows][:, None] + token, 0)
        return torch.from_numpy(at).to(self.hidden.device)

    def __call__(self, rows: Int[np.ndarray, " text"], batch: Batch, rng: torch.Generator | None) -> Reading:
        """As `read_distinct` would have it."""
        hidden = functional.embedding(self._places(rows), self.hidden)
        query = None if self.query is None else self.query[torch.from_numpy(rows).to(self.query.device)]
        encoded = Encoded(hidden, last=hidden.new_zeros(len(rows), hidden.shape[2]))
        return self.model.attend(batch, self.model.embedding(batch.tokens), encoded, query, rng)
