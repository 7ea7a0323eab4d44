"""A transformer with another attention under test than the one it has by itself."""

from __future__ import annotations

from collections.abc import Sequence

from attentest.corpus.example import Example
from attentest.foreign.foreign_model import ForeignModel
from attentest.foreign.transformer import TransformerModel
from attentest.model.batch import IndexedSplit


class AroundTransformer(ForeignModel):
    """It has the transformer's words, labels and texts; what is attention, its children say."""

    def __init__(self, inner: TransformerModel) -> None:
        super().__init__(inner.embedding, inner.labels)
        self.inner, self.encoder = inner, inner.encoder

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens."""
        return self.inner.gathers

    def split(self, examples: Sequence[Example]) -> IndexedSplit:
        """The examples as sub-words."""
        return self.inner.split(examples)
