"""An epoch of a fleet: which texts every member reads at which step, and how much room these take.

A step is recorded for every shape of what it is given, so lengths are rounded up to a few, and numbers that
are shapes travel as tensors of that length.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from attentest.fleet.shelf import Shelf
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.projection import gumbel_draws
from attentest.model.training.loop import Training

MARKERS = 2  # before and after a text


def bucket_width(longest: int) -> int:
    """The next of a few widths: every width is recorded by itself, and an eighth of padding costs less.

    With its two markers a text is a multiple of 8 wide, as products of places with places like it.
    """
    framed = longest + MARKERS
    step = max(8, 2 ** (framed.bit_length() - 3))
    return -(-framed // step) * step - MARKERS


@final
class Plan:
    """The batches of all members in an epoch, which are functions of their seeds."""

    def __init__(self, members: Sequence[Training], train: Shelf) -> None:
        self.members, self.train, self.size = members, train, members[0].batch_size
        self.texts = self._texts()
        self.lengths = np.where(self.texts >= 0, train.lengths[self.texts], 0).max(axis=2)
        self.rows = torch.from_numpy(self.texts).to(train.tokens.device)
        self.blank = torch.empty(2 * self.size * int(train.lengths.max()), device=self.rows.device)

    def __len__(self) -> int:
        return len(self.texts)

    def _texts(self) -> Int[np.ndarray, "step model text"]:
        """-1 where a batch is not full."""
        epoch = next(member.epoch for member in self.members if not member.is_over())
        of_seed = {}
        for seed, member in {member.config.seed: member for member in self.members}.items():
            groups = member.batches(epoch)
            of_seed[seed] = np.stack([np.pad(g, (0, self.size - len(g)), constant_values=-1) for g in groups])
        return np.stack([of_seed[member.config.seed] for member in self.members], axis=1)

    def given(self, step: int) -> list[Tensor]:
        """The texts of a step, their width, and the room of their sentences or the noise, if there is any."""
        width = min(bucket_width(int(self.lengths[step].max())), int(self.train.lengths.max()))
        found = [self.rows[step], self.blank[:width]]
        if isinstance(self.members[0].model.encoder, Hierarchical):
            room = self.train.measures(self.texts[step]).generous()
            return [*found, *(self.blank[:n] for n in (room.lines, room.words, room.sentences))]
        noise = self._noise(step, width)
        return found if noise is None else [*found, noise]

    def _noise(self, step: int, width: int) -> Tensor | None:
        """What Gumbel-softmax adds, drawn for each member as it would draw alone."""
        drawing = [member.model.projection.name == "gumbel-softmax" for member in self.members]
        if not any(drawing):
            return None
        dtype = self.members[0].model.embedding.weight.dtype
        noise = torch.zeros(len(self.members), self.size, width, dtype=dtype)
        texts = (self.texts[step] >= 0).sum(1)
        for number in np.flatnonzero(drawing).tolist():
            shape = int(texts[number]), int(self.lengths[step, number])
            rng = self.members[number].generator(step)
            noise[number, : shape[0], : shape[1]] = gumbel_draws(torch.empty(shape, dtype=dtype), rng)
        return noise.to(self.rows.device)
