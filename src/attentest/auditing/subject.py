"""Whoever is audited, as the experiments know a subject: a model, its texts, and its untrained twin."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.auditing.around import AroundTransformer
from attentest.auditing.maps import Mapped, Vectors
from attentest.corpus.example import Example
from attentest.corpus.vocabulary import Vocabulary
from attentest.experiments.contract import Subject
from attentest.foreign.adapter import AdaptedModel
from attentest.foreign.foreign_model import ForeignModel, Variants, label_numbers
from attentest.foreign.loading import adopt
from attentest.foreign.rows import Portions
from attentest.foreign.transformer import TransformerModel
from attentest.model.batch import Batch, IndexedSplit
from attentest.model.constructions import (
    CONTEXTUAL,
    TRANSFORMER,
    WITHOUT_CONTEXT,
    Constructed,
    is_constructed,
)
from attentest.model.networks.encoders import TokenWise
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.log_odds import LogOddsAttention
from attentest.model.seam import AttentionModel, Reading
from attentest.refusal import Refusal

SEED = 0  # of the twin's parameters


class HeadsTogether(AroundTransformer):
    """A transformer whose attention is the mean over its heads: the heat map that people look at.

    The mean alone would not give the answer back. So a unit keeps its heads: a weight it is given is divided
    among them as its own weight was. Then the mean of what is given is exactly what was asked for, and the
    model's own map gives its own answer; but a single head's row need not sum to one under another map.
    """

    @property
    def with_heads(self) -> AttentionModel:
        """The transformer itself."""
        return self.inner

    def read(
        self, batch: Batch, *, embeddings: Vectors | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """The transformer's reading, with the mean over heads as its weights."""
        reading = self.inner.read(batch, embeddings=embeddings)
        weights = reading.weights.mean(1)
        return replace(
            reading, weights=weights, scores=weights.clamp_min(torch.finfo(weights.dtype).tiny).log()
        )

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """Each unit's weight goes to its heads in the proportions they had."""
        row, unit = reading.row, reading.unit  # type: ignore[attr-defined]
        heads = Portions.of(row.detach() if held else row, unit, reading.mask.shape[1]).weights
        if not held:
            return self.inner.answer(reading, heads[:, None], held=False)
        mean = heads.mean(1, keepdim=True)
        shares = torch.where(mean > 0, heads / mean.where(mean > 0, 1.0), 1.0)
        return self.inner.answer(reading, weights[:, :, None] * shares[:, None], held=True)


@dataclass(frozen=True)
class Labelled:
    """What a row asks of a corpus."""

    labels: tuple[str, ...]


class Audited(Subject):
    """A model that came as an object, with the texts it is asked about; nothing of it is in a store."""

    def __init__(self, model: AttentionModel, examples: Sequence[Example], name: str = "trained") -> None:
        self.name, self.config, self.examples = name, model.config, tuple(examples)
        self.corpus = Labelled(model.labels)  # type: ignore[assignment]
        self.__dict__["model"] = model

    @cached_property
    def texts(self) -> IndexedSplit:
        """The texts, numbered as the model has them."""
        model = self.model
        if isinstance(model, HeadsTogether | Mapped | TransformerModel | AdaptedModel):
            return model.split(self.examples)
        label_numbers(self.examples, model.labels)
        return IndexedSplit(_cased(self.examples, model.vocabulary), model.vocabulary, model.labels)

    def untrained(self, twin: AttentionModel) -> Audited:
        """The twin before the same texts: they are tokenised once."""
        found = Audited(twin, self.examples, "untrained")
        found.__dict__["texts"] = self.texts
        return found


def _cased(examples: Sequence[Example], vocabulary: Vocabulary) -> Sequence[Example]:
    """The examples lower-cased where the vocabulary has no capital letter: such a model was trained on texts
    that were lower-cased, and knows no other word.
    """
    if not vocabulary.lower_cased:
        return examples
    return [
        replace(
            example,
            tokens=tuple(map(str.lower, example.tokens)),
            query=None if example.query is None else tuple(map(str.lower, example.query)),
        )
        for example in examples
    ]


def on_the_bench(model: AttentionModel) -> AttentionModel:
    """The model with one weight a unit; heads together are looked at as their mean."""
    if isinstance(model, TransformerModel) and model.head is None:
        return HeadsTogether(model)
    if not isinstance(model, ForeignModel) and (model.config.omit or model.projection.name == "stored"):
        raise Refusal(
            "a model to be audited",
            got="one that omits words, or whose attention is stored for the texts of its corpus",
            needs="a model that reads any text",
            way_out="Ask about such a model in a study.",
        )
    return model


def kind_of(model: AttentionModel) -> str | None:
    """Which kind of model error rates are known for; None where no construction is of its kind.

    So it is for adapters, maps, hierarchical models, and models that read their last state alone.
    """
    if isinstance(model, HeadsTogether | TransformerModel):
        return TRANSFORMER
    if isinstance(model, ForeignModel) or isinstance(model.encoder, Hierarchical) or model.attention is None:
        return None
    if is_constructed(model.config.encoder):
        return Constructed.parse(model.config.encoder).kind
    return WITHOUT_CONTEXT if isinstance(model.encoder, TokenWise) else CONTEXTUAL


def untrained(model: AttentionModel) -> AttentionModel | None:
    """The same model before it learnt anything, or None where nobody knows how to make one."""
    if isinstance(model, HeadsTogether):
        twin = untrained(model.inner)
        return HeadsTogether(twin) if isinstance(twin, TransformerModel) else None
    if isinstance(model, Mapped):
        twin = untrained(model.inner)
        return Mapped(twin, model.kind) if isinstance(twin, TransformerModel) else None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        if isinstance(model, TransformerModel):
            return None if is_constructed(model.config.encoder) else _fresh_transformer(model)
        if isinstance(model, ForeignModel) or isinstance(model.attention, LogOddsAttention):
            return None
        if is_constructed(model.config.encoder):  # nothing was learnt that could be forgotten
            return None
        return _fresh(model)


def _fresh_transformer(model: TransformerModel) -> TransformerModel:
    fresh = type(model.transformer)(copy.deepcopy(model.transformer.config))
    return adopt(
        fresh.to(device=model.device, dtype=model.transformer.dtype),
        model.tokenizer,
        labels=model.labels,
        layer=model.layer,
        head=model.head,
        words=model.words,
        special_tokens=model.special_tokens,
    )


def _fresh(model: AttentionModel) -> AttentionModel:
    """Drawn anew; word vectors at the scale the model's own have, wherever those came from."""
    has_query = model.query_encoder is not None
    fresh = AttentionModel(model.config, model.vocabulary, model.labels, has_query=has_query)
    with torch.no_grad():
        nn.init.normal_(fresh.embedding.weight, std=float(model.embedding.weight.std()))
        fresh.embedding.weight[0] = 0.0
    return fresh.to(device=model.device, dtype=model.embedding.weight.dtype)
