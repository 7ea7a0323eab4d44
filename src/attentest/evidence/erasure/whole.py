"""Leave-one-out by brute force: delete the unit's tokens and read what is left from the beginning."""

from __future__ import annotations

from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.erasure.drawn_units import Units
from attentest.evidence.erasure.parts import alike, lengths_of_parts, overhead, read_parts
from attentest.evidence.erasure.remainder import AbstractRemainder, Answers, Drawn, over_units
from attentest.model.seam import Model, Reading


def floats_per_variant(model: Model, tokens: int) -> int:
    """Embeddings, a recurrence's gates both ways, a Transformer's maps, or less."""
    return (tokens + 2) * (2 * model.embedding.embedding_dim + 8 * model.width + 8 * tokens)


@final
class WholeRemainder(AbstractRemainder):
    """Every variant as a text of its own, variants of alike length read together."""

    def __init__(self, model: Model, reading: Reading, lefts: range, units: Units | None = None) -> None:
        super().__init__(model, reading, lefts)
        asked = (reading.mask if units is None else units)[:, lefts.start : lefts.stop]
        texts, variants = asked.nonzero(as_tuple=True)
        kept = reading.mask[texts].scatter(1, variants[:, None] + lefts.start, False)
        lengths = lengths_of_parts(model, reading, texts, kept)
        passes = alike(np.argsort(lengths, kind="stable"), lengths, overhead(texts.device))
        self.passes = [torch.from_numpy(some).to(texts.device) for some in passes]
        order = torch.cat(self.passes)
        self.texts, self.variants, self.kept = texts[order], variants[order], kept[order]
        self.read = [read_parts(model, reading, texts[some], kept[some]) for some in self.passes]

    def own(self) -> Answers:
        """The model's own attention over the shorter texts."""
        logits = torch.cat([reader.decide(again) for reader, again in self.read])
        return self._by_text(logits[:, None])[:, 0]

    def under(self, weights: Drawn, scores: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """The given attention over the units that remain, which stand side by side in the shorter texts."""
        sizes = [len(some) for some in self.passes]
        found = []
        for (reader, again), texts, kept in zip(
            self.read, self.texts.split(sizes), self.kept.split(sizes), strict=True
        ):
            remain = kept[:, None].expand(-1, weights.shape[1], -1)
            given = over_units(self.model, again, weights[texts], scores[texts], remain)
            place = (~kept).int().argsort(dim=1, stable=True)[:, : again.mask.shape[1]]
            place = place.view(len(place), *[1] * (given.ndim - 2), -1).expand(*given.shape[:-1], -1)
            found.append(reader.decide(again, given.gather(-1, place)))
        return self._by_text(torch.cat(found))

    def _by_text(self, logits: Float[Tensor, "part draw class"]) -> Float[Tensor, "batch draw variant class"]:
        """Zero where no unit stands that could be left out."""
        found = logits.new_zeros(len(self.reading.mask), logits.shape[1], len(self.lefts), logits.shape[2])
        found[self.texts, :, self.variants] = logits
        return found
