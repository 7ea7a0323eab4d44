"""A split laid out on a device once, from which a fleet takes its batches by number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.fleet.stack import StackedBatch
from attentest.fleet.stacked_hierarchy import Measures
from attentest.model.batch import AbstractSplit, padded

Rows = Int[Tensor, "model text"]  # which texts each model gets; below 0 is none


@final
class Shelf:
    """All texts of a split, padded to the longest."""

    def __init__(self, split: AbstractSplit, device: torch.device) -> None:
        self.lengths, self.labels = split.lengths, split.labels
        self.ids = [example.id for example in split.examples]
        self.tokens, self.mask = (each.to(device) for each in padded(split.tokens))
        self.query = self.query_mask = self.answers = None
        if split.queries:
            self.query, self.query_mask = (each.to(device) for each in padded(split.queries))
        numbers = split.sentences or [np.zeros(length, dtype=np.int64) for length in split.lengths]
        self.sentences = padded(numbers)[0].to(device)
        sizes = [np.bincount(each) for each in numbers]
        self.counts = np.array([len(each) for each in sizes])  # sentences of each text
        self.longest = np.array([each.max() for each in sizes])  # words of its longest sentence
        if split.possible is not None:
            self.answers = torch.from_numpy(split.possible).to(device)

    def measures(self, rows: Int[np.ndarray, "model text"]) -> Measures:
        """The room that the sentences of these texts need."""
        counts, longest = (np.where(rows >= 0, each[rows], 0) for each in (self.counts, self.longest))
        return Measures(int(counts.sum(1).max()), int(longest.max()), int(counts.max()))

    def batch(
        self,
        rows: Rows,
        longest: int,
        *,
        room: Measures | None = None,
        stored: Tensor | None = None,
        noise: Tensor | None = None,
    ) -> StackedBatch:
        """These texts, cut to `longest` tokens; queries are short and stay whole."""
        at, real = rows.clamp_min(0), (rows >= 0)[..., None]
        return StackedBatch(
            tokens=self.tokens[at, :longest],
            mask=self.mask[at, :longest] & real,
            query=None if self.query is None else self.query[at],
            query_mask=None if self.query_mask is None else self.query_mask[at],
            answers=None if self.answers is None else self.answers[at],
            stored=stored,
            noise=noise,
            sentences=None if room is None else self.sentences[at, :longest],
            room=room,
        )

    def laid(self, by_id: Mapping[str, Any]) -> Float[Tensor, "text token"]:
        """Numbers that go with the tokens of each text, in the order of the shelf.

        What does not fit ends the fleet; its members then go alone, and say what they miss.
        """
        rows = [np.asarray(by_id[name], dtype=np.float32) for name in self.ids]
        if [len(row) for row in rows] != self.lengths.tolist():
            raise ValueError("not as many numbers as tokens")
        return padded(rows)[0]
