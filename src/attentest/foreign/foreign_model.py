"""A model that was made elsewhere: the same protocol, without the parts of our own grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.corpus.example import Example
from attentest.model.batch import AbstractSplit, Batch
from attentest.model.seam import Capabilities, Model, Origin, Reading, check_given, in_short
from attentest.shapes import Embedded, Logits

Variants = Float[Tensor, "batch variant *head unit"]
Asked = Float[Tensor, "batch *variant_and_head unit"]


class AbstractForeignModel(nn.Module, Model):
    """What every model made elsewhere has. Whoever adapts one says how it reads, and how it answers.

    There is no vocabulary of ours, no decoder that is known to be affine, and nothing was trained here.
    """

    def __init__(self, embedding: Any, labels: tuple[str, ...]) -> None:
        super().__init__()
        self.embedding, self.labels = embedding, labels

    def __repr__(self) -> str:
        """Its attention, labels and size; its modules would fill many screens."""
        return in_short(self, type(self).__name__)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.embedding.parameters()).device

    @property
    @abstractmethod
    def width(self) -> int:
        """The width of a hidden state."""

    @property
    def outputs(self) -> int:
        """How many logits an answer has: one a label."""
        return len(self.labels)

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens."""
        return False

    @property
    def with_heads(self) -> AbstractForeignModel:
        """The model itself."""
        return self

    @property
    def network(self) -> None:
        """None: its parts are not ours."""
        return None

    @property
    def origin(self) -> Origin | None:
        """None: it was made elsewhere."""
        return None

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What else can be asked of it."""

    @abstractmethod
    def split(self, examples: Sequence[Example]) -> AbstractSplit:
        """The examples as the model reads them."""

    def drawn_anew(self) -> Model | None:
        """None: nobody but its maker can draw its parameters."""
        return None

    def tensors(self) -> dict[str, Tensor]:
        """The state dict."""
        return dict(self.state_dict())

    @abstractmethod
    def read(
        self, batch: Batch, *, embeddings: Embedded | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """Encode once; there is no noise to draw."""

    def read_distinct(self, batch: Batch, *, rng: torch.Generator | None = None) -> Reading:
        """The plain reading: what a foreign model does to a word is its own affair."""
        return self.read(batch)

    def decide(self, reading: Reading, given: Asked | None = None) -> Logits:
        """Answer under the reading's own weights, or under any given: one way for both."""
        weights = reading.weights if given is None else given
        variants = weights.ndim == reading.weights.ndim + 1
        if not variants:
            weights = weights[:, None]
        check_given(reading, weights)
        away = ~reading.mask.view(len(weights), *[1] * (weights.ndim - 2), -1)
        logits = self.answer(reading, weights.masked_fill(away, 0.0), held=given is not None)
        return logits if variants else logits[:, 0]

    @abstractmethod
    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """The logits under each variant; `held` says that attention is given, not found."""
