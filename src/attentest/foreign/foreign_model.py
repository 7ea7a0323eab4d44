"""A model that was made elsewhere, on the bench: the same seam, without the parts of our own grid."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attentest.corpus.example import Example
from attentest.model.batch import Batch
from attentest.model.config import ModelConfig
from attentest.model.networks.projection import Projection
from attentest.model.seam import AttentionModel, Reading
from attentest.refusal import Refusal
from attentest.shapes import Embedded, Logits

Variants = Float[Tensor, "batch variant *head unit"]
Asked = Float[Tensor, "batch *variant_and_head unit"]


def label_numbers(examples: Sequence[Example], labels: Sequence[str]) -> Int[np.ndarray, " text"]:
    """The class of every example; a label that the model does not know is refused."""
    number = {label: n for n, label in enumerate(labels)}
    for example in examples:
        if example.label not in number:
            raise Refusal(
                f"label {example.label!r} of text {example.id!r}",
                got="a label that the model does not know",
                needs=f"one of {', '.join(labels)}",
                way_out="Rename it, or name the model's classes in their order: labels=(...).",
            )
    return np.array([number[example.label] for example in examples], dtype=np.int64)


class Outside(nn.Module):
    """An encoder of which nothing is known but how wide its states are: no fast road leads through it."""

    contextual = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width


class ForeignModel(AttentionModel, ABC):
    """What evidence asks of any model. Whoever adapts one says how it reads, and how it answers.

    There is no vocabulary of ours, no decoder that is known to be affine, and nothing was trained here.
    """

    def __init__(self, embedding: nn.Module, labels: tuple[str, ...]) -> None:
        nn.Module.__init__(self)  # our own parts are not built
        self.config = ModelConfig(epochs=0, decoder="softmax")
        self.labels = labels
        self.embedding = embedding  # type: ignore[assignment]
        self.encoder = Outside(0)  # type: ignore[assignment]
        self.attention, self.query_encoder, self.guide, self.record = None, None, None, None
        self.projection = Projection.parse("softmax")

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.embedding.parameters()).device

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
        self._check_given(reading, weights)
        away = ~reading.mask.view(len(weights), *[1] * (weights.ndim - 2), -1)
        logits = self.answer(reading, weights.masked_fill(away, 0.0), held=given is not None)
        return logits if variants else logits[:, 0]

    @abstractmethod
    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """The logits under each variant; `held` says that attention is given, not found."""
