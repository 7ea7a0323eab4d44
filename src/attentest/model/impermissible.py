"""Attention that must not rest on some words, though the model may use them (Pruthi et al. 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from attentest.corpus.example import Example
from attentest.corpus.marks import marks
from attentest.model.batch import Batch

LEAST = 1e-6  # of the permissible mass: a text whose every word is impermissible stays finite

Attended = Float[Tensor, "batch token"]


@final
class Impermissible:
    """`-factor * ln(1 - a.m)` of every text, m its impermissible tokens; a text without any adds 0."""

    def __init__(self, factor: float, examples: Sequence[Example], words: str) -> None:
        self.factor = factor
        found = zip(examples, marks(examples, words), strict=True)
        self.marked = {example.id: torch.from_numpy(each) for example, each in found}

    def __call__(self, weights: Attended, batch: Batch) -> Float[Tensor, " batch"]:
        """What each text adds to the loss."""
        marked = pad_sequence([self.marked[name] for name in batch.ids], batch_first=True).to(weights)
        return -self.factor * (1 - (weights * marked).sum(-1)).clamp_min(LEAST).log()
