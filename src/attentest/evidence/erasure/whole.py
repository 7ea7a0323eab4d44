"""Leave-one-out by brute force: delete the unit's tokens and read what is left from the beginning."""

from __future__ import annotations

from typing import final

from jaxtyping import Float
from torch import Tensor

from attentest.evidence.erasure.parts import read_parts
from attentest.evidence.erasure.remainder import AbstractRemainder, Answers, Drawn, over_units
from attentest.model.seam import Model, Reading


def floats_per_variant(model: Model, tokens: int) -> int:
    """Embeddings, a recurrence's gates both ways, a Transformer's maps, or less."""
    return (tokens + 2) * (2 * model.embedding.embedding_dim + 8 * model.width + 8 * tokens)


@final
class WholeRemainder(AbstractRemainder):
    """Every variant as a text of its own."""

    def __init__(self, model: Model, reading: Reading, lefts: range) -> None:
        super().__init__(model, reading, lefts)
        asked = reading.mask[:, lefts.start : lefts.stop]
        self.texts, self.variants = asked.nonzero(as_tuple=True)
        self.kept = reading.mask[self.texts].scatter(1, self.variants[:, None] + lefts.start, False)
        self.reader, self.again = read_parts(model, reading, self.texts, self.kept)

    def own(self) -> Answers:
        """The model's own attention over the shorter texts."""
        return self._by_text(self.reader.decide(self.again)[:, None])[:, 0]

    def under(self, weights: Drawn, scores: Drawn) -> Float[Tensor, "batch draw variant class"]:
        """The given attention over the units that remain, which stand side by side in the shorter texts."""
        draws = weights.shape[1]
        remain = self.kept[:, None].expand(-1, draws, -1)
        given = over_units(self.model, self.again, weights[self.texts], scores[self.texts], remain)
        place = (~self.kept).int().argsort(dim=1, stable=True)[:, : self.again.mask.shape[1]]
        place = place.view(len(place), *[1] * (given.ndim - 2), -1).expand(*given.shape[:-1], -1)
        return self._by_text(self.reader.decide(self.again, given.gather(-1, place)))

    def _by_text(self, logits: Float[Tensor, "part draw class"]) -> Float[Tensor, "batch draw variant class"]:
        """Zero where no unit stands that could be left out."""
        found = logits.new_zeros(len(self.reading.mask), logits.shape[1], len(self.lefts), logits.shape[2])
        found[self.texts, :, self.variants] = logits
        return found
