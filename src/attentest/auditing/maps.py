"""What else than a row of weights is called attention, under audit: a transformer ranked by one of its maps.

A map is computed from the model, and only a row can be put back into it. So whatever asks for a ranking is
asked of the map, and whatever gives the model other weights is not asked at all. That holds for the two maps
that have the row as a factor, too. A given share could be traced back to a weight by dividing by the other
factor, but the weights found so would sum to anything: the answer would move because there is more or less
attention, and a word whose other factor is nearly 0 would be given thousands.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.auditing.around import AroundTransformer
from attentest.foreign.foreign_model import Variants
from attentest.foreign.maps import THROUGH_LAYERS, check_kind, map_of
from attentest.foreign.roads import TransformerReading
from attentest.foreign.rows import Portions
from attentest.foreign.transformer import TransformerModel
from attentest.model.batch import Batch
from attentest.model.seam import AttentionModel, Reading
from attentest.refusal import Refusal

Vectors: TypeAlias = Float[Tensor, "batch token emb"]

# How a report names each, and why the model cannot be given another one.
OF_LAYERS = "is computed from several layers, so that the model cannot be given another one"
OF_FACTORS = "is a product that has the weight as one factor, so that the model cannot be given another one"
NAMES = {
    "rollout": ("attention rollout", OF_LAYERS),
    "flow": ("attention flow", OF_LAYERS),
    "value-norm": ("attention x length of the value", OF_FACTORS),
    "gradient": ("attention x gradient", OF_FACTORS),
}


class Mapped(AroundTransformer):
    """A transformer whose attention is one of its maps. It answers as ever, and under no other attention."""

    def __init__(self, inner: TransformerModel, kind: str) -> None:
        check_kind(inner, kind)
        _check_head(kind, inner.head)
        super().__init__(inner)
        self.kind = kind
        self.made: dict[bytes, Tensor] = {}  # every question reads the same batches, and a flow takes long

    def read(
        self, batch: Batch, *, embeddings: Vectors | None = None, rng: torch.Generator | None = None
    ) -> TransformerReading:
        """The transformer's reading, with the map as its weights."""
        reading = self.inner.read(batch, embeddings=embeddings)
        if embeddings is not None:
            return _weighed(reading, map_of(self.inner, reading, self.kind))
        name = _content(batch)
        if name not in self.made:
            self.made[name] = map_of(self.inner, reading, self.kind).detach()
        return _weighed(reading, self.made[name])

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """The model's own answer."""
        if held:
            raise cannot_be_given("another map", self.kind)
        return self.inner.decide(self.own(reading))[:, None]

    def own(self, reading: Reading) -> TransformerReading:
        """The same reading as the transformer has it, with the row that it uses as its weights."""
        assert isinstance(reading, TransformerReading), "only a reading of this model can be taken up again"
        heads = Portions.of(reading.row, reading.unit, reading.mask.shape[1]).weights
        return _weighed(reading, heads if self.inner.head is None else heads[:, self.inner.head])


def answering(model: AttentionModel, reading: Reading) -> tuple[AttentionModel, Reading]:
    """Who answers for parts of the texts of a reading: of those nobody wants the map, which may take long."""
    return (model.inner, model.own(reading)) if isinstance(model, Mapped) else (model, reading)


def cannot_be_given(what: str, kind: str) -> Refusal:
    """Why something is not asked of a map."""
    name, why = NAMES[kind]
    return Refusal(
        f"{what} of {name}",
        got=f"a map that {why}",
        needs="weights that the model itself uses: the row of a layer",
        way_out="An audit of the row has it (--attention row).",
    )


def _check_head(kind: str, head: int | None) -> None:
    if kind in THROUGH_LAYERS and head is not None:
        raise Refusal(
            NAMES[kind][0],
            got=f"the choice of head {head}",
            needs="all heads: on its way through the layers it takes the mean of each one's",
            way_out="Leave the head out, or choose row, value-norm or gradient.",
        )


def _weighed(reading: TransformerReading, weights: Tensor) -> TransformerReading:
    scores = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
    return replace(reading, weights=weights, scores=scores)


def _content(batch: Batch) -> bytes:
    """What the texts of a batch are, whatever they are called."""
    parts = (batch.tokens, batch.mask, batch.sentences, batch.query, batch.query_mask)
    return b"|".join(b"" if part is None else part.cpu().numpy().tobytes() for part in parts)
