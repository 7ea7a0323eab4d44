"""Hierarchical encoding: words make sentences, sentences make the text; a unit of attention is a sentence.

Serrano & Smith's HAN (after Yang et al. 2016). The sentences of all texts of a batch are laid out as rows of
one grid, so words are encoded and weighed in one call however the texts are divided; nothing loops over
documents or sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attentest.model.networks.attention import Additive
from attentest.model.networks.encoders import Encoded, Encoder, Places, Rows
from attentest.model.networks.projection import softmax

Sentences = Int[Tensor, "batch token"]


@final
@dataclass(frozen=True)
class Layout:
    """Where each token and each sentence of a batch stands in the grid of all its sentences."""

    line: Int[Tensor, " real"]  # the sentence of each real token, numbered through the batch
    within: Int[Tensor, " real"]  # and its position in that sentence
    order: Int[Tensor, "batch sentence"]  # each text's sentences, counted from 1; 0 is none
    present: Bool[Tensor, "batch sentence"]
    lines: int
    longest: int


def lay_out(sentences: Sentences, mask: Bool[Tensor, "batch token"]) -> Layout:
    """Number the sentences through the batch; integers only, no loop."""
    place = torch.arange(mask.shape[1], device=mask.device).expand_as(mask)
    begins = torch.ones_like(mask)
    begins[:, 1:] = sentences[:, 1:] != sentences[:, :-1]
    within = place - torch.where(begins, place, 0).cummax(1).values
    counts = torch.where(mask, sentences + 1, 0).amax(1)
    before = counts.cumsum(0) - counts
    line = (before[:, None] + sentences)[mask]
    number = torch.arange(int(counts.max()), device=mask.device)[None]
    present = number < counts[:, None]
    order = torch.where(present, before[:, None] + number + 1, 0)
    return Layout(line, within[mask], order, present, int(counts.sum()), int(within[mask].max()) + 1)


@final
class Hierarchical(nn.Module):
    """A word encoder and attention inside every sentence, and a sentence encoder over the results."""

    contextual = False
    hierarchical = True

    def __init__(self, words: Encoder, sentences: Encoder) -> None:
        super().__init__()
        self.words, self.sentences = words, sentences
        self.attention = Additive(words.width, False, wide=True)
        self.width = sentences.width

    def forward(
        self, rows: Rows, places: Places, mask: Bool[Tensor, "batch token"], sentences: Sentences
    ) -> Encoded:
        """Hidden states of sentences; `inner` is each token's weight within its own."""
        layout = lay_out(sentences, mask)
        grid = places.new_zeros(layout.lines, layout.longest)  # row 0 is padding
        grid[layout.line, layout.within] = places[mask]
        present = torch.zeros(grid.shape, dtype=torch.bool, device=grid.device)
        present[layout.line, layout.within] = True
        made, weights = self._read_words(rows, grid, present)
        padded = torch.cat([made.new_zeros(1, made.shape[1]), made])
        encoded = self.sentences(padded, layout.order, layout.present)
        inner = torch.zeros(mask.shape, dtype=weights.dtype, device=weights.device)
        inner[mask] = weights[layout.line, layout.within]
        return Encoded(encoded.hidden, encoded.last, inner, layout.present)

    def _read_words(
        self, rows: Rows, grid: Int[Tensor, "line word"], present: Bool[Tensor, "line word"]
    ) -> tuple[Float[Tensor, "line hidden"], Float[Tensor, "line word"]]:
        """Each sentence as one vector, and the weight of each of its words.

        One rambling sentence would make all others mostly padding, so sentences of alike length (up to the
        same power of two) are read together: a handful of calls, and less than half of any is padding.
        """
        lengths = present.sum(1)
        size = torch.log2(lengths.float()).ceil().int()
        order, parts = [], []
        weights = torch.zeros(grid.shape, dtype=rows.dtype, device=rows.device)
        for power in size.unique().tolist():
            lines = torch.nonzero(size == power).squeeze(1)
            longest = int(lengths[lines].max())
            there = present[lines, :longest]
            hidden = self.words(rows, grid[lines, :longest], there).hidden
            within = softmax(self.attention(hidden, None), there)
            weights[lines, :longest] = within.detach()
            order.append(lines)
            parts.append((within[:, None] @ hidden)[:, 0])
        return torch.cat(parts)[torch.cat(order).argsort()], weights
