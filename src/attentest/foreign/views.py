"""A transformer with another attention under test than its row: the mean over its heads, or one of its maps.

A map is computed from the model, and only a row can be put back into it. So whatever asks for a ranking is
asked of the map, and whatever gives the model other weights is not asked at all. That holds for the two maps
that have the row as a factor, too. A given share could be traced back to a weight by dividing by the other
factor, but the weights found so would sum to anything: the answer would move because there is more or less
attention, and a word whose other factor is nearly 0 would be given thousands.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.corpus.example import Example
from attentest.foreign.foreign_model import AbstractForeignModel, Variants
from attentest.foreign.maps import check_kind, map_of
from attentest.foreign.roads import TransformerReading
from attentest.foreign.rows import Portions
from attentest.foreign.transformer import TransformerModel
from attentest.foreign.words import ALL_NAMES, NAMES, RECEIVED, ROW, THROUGH_LAYERS
from attentest.model.batch import AbstractSplit, Batch
from attentest.model.seam import AnsweredBy, Capabilities, Model, Reading
from attentest.refusal import Refusal

ONE_DECIDES = "Ask it of a model in which one position decides, such as one that classifies by [CLS]."
Vectors: TypeAlias = Float[Tensor, "batch token emb"]


class AbstractTransformerView(AbstractForeignModel):
    """It has the transformer's words, labels and texts; what is attention, its children say."""

    def __init__(self, inner: TransformerModel) -> None:
        super().__init__(inner.embedding, inner.labels)
        self.inner = inner

    @property
    def width(self) -> int:
        """The width of the transformer's hidden states."""
        return self.inner.width

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens."""
        return self.inner.gathers

    def split(self, examples: Sequence[Example]) -> AbstractSplit:
        """The examples as sub-words."""
        return self.inner.split(examples)

    def drawn_anew(self) -> Model | None:
        """The same view of the transformer drawn anew."""
        twin = self.inner.drawn_anew()
        return None if twin is None else self.of(twin)

    @abstractmethod
    def of(self, inner: TransformerModel) -> AbstractTransformerView:
        """The same view of another transformer."""


@final
class HeadsTogether(AbstractTransformerView):
    """A transformer whose attention is the mean over its heads: the heat map that people look at.

    The mean alone would not give the answer back. So a unit keeps its heads: a weight it is given is divided
    among them as its own weight was. Then the mean of what is given is exactly what was asked for, and the
    model's own map gives its own answer; but a single head's row need not sum to one under another map.
    """

    @property
    def with_heads(self) -> TransformerModel:
        """The transformer itself."""
        return self.inner

    @property
    def capabilities(self) -> Capabilities:
        """The transformer's row; its layer and head are chosen already."""
        return replace(self.inner.capabilities, layered=None, of_heads=_mean)

    def of(self, inner: TransformerModel) -> HeadsTogether:
        """The mean over the heads of another transformer."""
        return HeadsTogether(inner)

    def read(
        self, batch: Batch, *, embeddings: Vectors | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """The transformer's reading, with the mean over heads as its weights."""
        return _mean(self.inner.read(batch, embeddings=embeddings))

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """Each unit's weight goes to its heads in the proportions they had."""
        kept = TransformerReading.of(reading)
        row = kept.row.detach() if held else kept.row
        heads = Portions.of(row, kept.unit, reading.mask.shape[1]).weights
        if not held:
            return self.inner.answer(reading, heads[:, None], held=False)
        mean = heads.mean(1, keepdim=True)
        shares = torch.where(mean > 0, heads / mean.where(mean > 0, 1.0), 1.0)
        return self.inner.answer(reading, weights[:, :, None] * shares[:, None], held=True)


@final
class Mapped(AbstractTransformerView):
    """A transformer whose attention is one of its maps. It answers as ever, and under no other attention."""

    def __init__(self, inner: TransformerModel, kind: str) -> None:
        if kind != RECEIVED:
            check_kind(inner, kind)
        _check_head(kind, inner.head)
        super().__init__(inner)
        self.kind = kind
        self.made: dict[bytes, Tensor] = {}  # every question reads the same batches, and a flow takes long

    @property
    def capabilities(self) -> Capabilities:
        """The map can be ranked, and not be given."""
        answered_by = AnsweredBy(self.inner, self.own, self.refusal)
        return replace(
            self.inner.capabilities,
            attention=self.inner.in_words(self.kind),
            kind=None,
            answered_by=answered_by,
            layered=None,
        )

    def of(self, inner: TransformerModel) -> Mapped:
        """The same map of another transformer."""
        return Mapped(inner, self.kind)

    def read(
        self, batch: Batch, *, embeddings: Vectors | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """The transformer's reading, with the map as its weights."""
        reading = self.inner.read(batch, embeddings=embeddings)
        if embeddings is not None:
            return _weighed(reading, self._map(reading))
        name = _content(batch)
        if name not in self.made:
            self.made[name] = self._map(reading).detach()
        return _weighed(reading, self.made[name])

    def _map(self, reading: Reading) -> Tensor:
        return map_of(self.inner, reading, self.kind)

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """The model's own answer."""
        if held:
            raise self.refusal("another map")
        return self.inner.decide(self.own(reading))[:, None]

    def own(self, reading: Reading) -> Reading:
        """The same reading as the transformer has it, with the row that it uses as its weights."""
        kept = TransformerReading.of(reading)
        heads = Portions.of(kept.row, kept.unit, reading.mask.shape[1]).weights
        return _weighed(reading, heads if self.inner.head is None else heads[:, self.inner.head])

    def refusal(self, what: str) -> Refusal:
        """Why something is not asked of this map."""
        name, why = ALL_NAMES[self.kind]
        return Refusal(
            f"{what} of {name}",
            got=f"a map that {why}",
            needs="weights that the model itself uses: the row of a layer",
            way_out=ONE_DECIDES if self.kind == RECEIVED else "An audit of the row has it (--attention row).",
        )


def mean_over_heads(model: Model) -> Model:
    """The model with one weight a unit: of a transformer's heads together, their mean."""
    return HeadsTogether(model) if isinstance(model, TransformerModel) and model.head is None else model


def ranked_by(model: Model, kind: str) -> Model:
    """A transformer ranked by this kind of attention; its row is its own, as is any other model's.

    Of a model that averages its states there is no deciding row: it is ranked by the attention received.
    """
    if not isinstance(model, TransformerModel):
        return model
    if model.averages and kind == ROW:
        kind = RECEIVED
    return Mapped(model, kind) if kind != ROW else model


def _check_head(kind: str, head: int | None) -> None:
    if kind in THROUGH_LAYERS and head is not None:
        raise Refusal(
            NAMES[kind][0],
            got=f"the choice of head {head}",
            needs="all heads: on its way through the layers it takes the mean of each one's",
            way_out="Leave the head out, or choose row, value-norm or gradient.",
        )


def _mean(reading: Reading) -> Reading:
    return _weighed(reading, reading.weights.mean(1))


def _weighed(reading: Reading, weights: Tensor) -> Reading:
    scores = weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
    return replace(reading, weights=weights, scores=scores)


def _content(batch: Batch) -> bytes:
    """What the texts of a batch are, whatever they are called."""
    parts = (batch.tokens, batch.mask, batch.sentences, batch.query, batch.query_mask)
    return b"|".join(b"" if part is None else part.cpu().numpy().tobytes() for part in parts)
