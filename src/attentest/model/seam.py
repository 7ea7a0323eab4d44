"""The one seam: `read` encodes a batch once, `decide` answers under the model's own attention or any other.

Attention is changed only through `given=`: there are no hooks, no flags, no train or eval mode. Whatever an
experiment does to attention is therefore visible in its own code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from attentest import notebook
from attentest.corpus.vocabulary import END, PAD, START, Vocabulary
from attentest.model.batch import Batch
from attentest.model.catalogue import make_encoder
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import ATTENTIONS
from attentest.model.networks.decoder import DECODERS, Affine
from attentest.model.networks.encoders import Encoded, Encoder
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.log_odds import LOG_ODDS, LogOddsAttention
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal
from attentest.shapes import Embedded, Given, Hidden, Logits, Mask, Query, Tokens, Values, Weights


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One batch, encoded: everything `decide` needs, and everything an experiment may look at."""

    batch: Batch
    embeddings: Embedded  # in the graph: hidden depends on them
    hidden: Hidden
    scores: Weights
    weights: Weights
    mask: Mask
    query: Query | None = None
    values: Values | None = None  # where the decision is affine: logits = weights @ values + bias
    bias: Float[Tensor, " class"] | None = None
    inner: Tensor | None = None  # attention inside the encoder, for display


class Framed(NamedTuple):
    """Texts between their markers: vectors, which of them stands at each place, and where anything stands."""

    rows: Float[Tensor, "row emb"]
    places: Int[Tensor, "batch place"]
    present: Bool[Tensor, "batch place"]


def frame(
    places: Int[Tensor, "batch token"], at: Int[Tensor, " 3"], mask: Bool[Tensor, "batch token"]
) -> tuple[Int[Tensor, "batch place"], Bool[Tensor, "batch place"]]:
    """Put a start before each text, an end right behind its last token, and padding after.

    `at` says in which rows padding, start and end are. Texts are left-aligned, so only integers move.
    """
    padding, start, end = at
    inside = functional.pad(torch.where(mask, places, padding), (1, 1))
    where = torch.arange(inside.shape[1], device=mask.device)[None]
    last = mask.sum(1, keepdim=True) + 1
    inside = torch.where(where == 0, start, torch.where(where == last, end, inside))
    return torch.where(where > last, padding, inside), where <= last


def framed(embeddings: Embedded, markers: Float[Tensor, "3 emb"], mask: Mask) -> Framed:
    """The frame of vectors that come one per token, each its own row."""
    batch, tokens, _ = embeddings.shape
    rows = torch.cat([markers, embeddings.flatten(0, 1)])
    own = torch.arange(3, len(rows), device=mask.device).view(batch, tokens)
    return Framed(rows, *frame(own, torch.arange(3, device=mask.device), mask))


def dropped(hidden: Hidden, share: float, rng: torch.Generator) -> Hidden:
    """Dropout of the context vector, taken before the sum: one mask a text for all its units.

    `sum_t a_t (m * h_t)` is `m * sum_t a_t h_t`, so deciding needs no noise of its own.
    """
    keep = torch.rand(len(hidden), 1, hidden.shape[2], generator=rng).to(hidden) >= share
    return hidden * keep / (1 - share)


class AttentionModel(nn.Module):
    """Embedding, encoder, attention, projection, decoder: the grid of the papers."""

    def __init__(
        self,
        config: ModelConfig,
        vocabulary: Vocabulary,
        labels: tuple[str, ...],
        *,
        has_query: bool,
        guide: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        super().__init__()
        assert config.embedding and config.hidden and config.decoder, "the configuration is not resolved"
        self.config, self.vocabulary, self.labels = config, vocabulary, labels
        self.guide = guide
        self.record: Any = None  # how the training went, where there was one
        self.embedding = nn.Embedding(len(vocabulary), config.embedding, padding_idx=PAD, sparse=True)
        made = config.encoder, config.embedding, config.hidden, config.sizes
        self.encoder = make_encoder(*made)
        self.query_encoder = make_encoder(*made) if has_query else None
        scorer = ATTENTIONS[config.attention]
        self.attention = None if scorer is None else scorer(self.encoder.width, has_query)
        if config.attention == LOG_ODDS:
            self.attention = LogOddsAttention(len(vocabulary))
        self.projection = Projection.parse(config.projection)
        classes = 1 if config.decoder == "sigmoid" else len(labels)
        self.decoder = DECODERS[config.decoder](self.encoder.width, classes)

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return self.embedding.weight.device

    def _repr_html_(self) -> str:
        """What it is made of, and how its training went where there was one."""
        size = sum(parameter.numel() for parameter in self.parameters())
        rows = [*self.config.spelled().items(), ("labels", ", ".join(self.labels)), ("parameters", size)]
        scores = getattr(self.record, "scores", {})
        rows += [
            (f"{split} {name}", value) for split, found in scores.items() for name, value in found.items()
        ]
        return notebook.table(("setting", "value"), rows)

    @property
    def with_heads(self) -> AttentionModel:
        """The model to ask under other weights, head by head, where this one shows the mean over heads."""
        return self

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens, as `batch.sentences` numbers them."""
        return isinstance(self.encoder, Hierarchical)

    def read(
        self, batch: Batch, *, embeddings: Embedded | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """Encode once. `embeddings` replaces the look-up; `rng` draws training's noise, None means none."""
        if embeddings is None:
            embeddings = self.embedding(batch.tokens)
        text = framed(embeddings, self._markers(), batch.mask)
        query = None
        if self.query_encoder is not None and batch.query is not None and batch.query_mask is not None:
            query = framed(self.embedding(batch.query), self._markers(), batch.query_mask)
        return self._read(batch, embeddings, text, query, rng)

    def read_distinct(self, batch: Batch, *, rng: torch.Generator | None = None) -> Reading:
        """The same reading with every distinct word looked up and projected once: what training uses.

        Its `embeddings` are not an ancestor of `hidden`, so it cannot serve gradients with respect to them.
        """
        reserved = torch.tensor([PAD, START, END], device=self.device)
        texts = [reserved, batch.tokens.flatten()]
        texts += [] if batch.query is None else [batch.query.flatten()]
        distinct, places = torch.unique(torch.cat(texts), return_inverse=True)
        rows = self.embedding(distinct)
        at, of_tokens, *of_query = places.split([len(text) for text in texts])
        tokens = of_tokens.view_as(batch.tokens)
        text = Framed(rows, *frame(tokens, at, batch.mask))
        query = None
        if self.query_encoder is not None and batch.query is not None and batch.query_mask is not None:
            query = Framed(rows, *frame(of_query[0].view_as(batch.query), at, batch.query_mask))
        return self._read(batch, functional.embedding(tokens, rows), text, query, rng)

    def _read(
        self,
        batch: Batch,
        embeddings: Embedded,
        text: Framed,
        asked: Framed | None,
        rng: torch.Generator | None,
    ) -> Reading:
        encoded = self._encode(self.encoder, text, batch.mask, batch.sentences)
        query = None
        if self.query_encoder is not None:
            query = self._read_query(batch, asked)
        return self.attend(batch, embeddings, encoded, query, rng)

    def attend(
        self,
        batch: Batch,
        embeddings: Embedded,
        encoded: Encoded,
        query: Query | None,
        rng: torch.Generator | None = None,
    ) -> Reading:
        """The half of `read` that comes after encoding: score the states, and weigh them."""
        hidden, mask = encoded.hidden, batch.mask if encoded.mask is None else encoded.mask
        if self.attention is None:  # the last state is the only unit there is
            hidden, mask = encoded.last[:, None], mask[:, :1]
            scores = hidden.new_zeros(mask.shape)
        elif isinstance(self.attention, LogOddsAttention):  # which word it is decides, not how it was read
            scores = self.attention(batch.tokens)
        else:
            scores = self.attention(hidden, query)
        if rng is not None and self.config.dropout:
            hidden = dropped(hidden, self.config.dropout, rng)
        values, bias = None, None
        if isinstance(self.decoder, Affine):
            values, bias = self.decoder.values(hidden), self.decoder.bias
        return Reading(
            batch=batch,
            embeddings=embeddings,
            hidden=hidden,
            scores=scores,
            weights=self._weigh(scores, mask, batch.ids, rng),
            mask=mask,
            query=query,
            values=values,
            bias=bias,
            inner=encoded.inner,
        )

    def decide(self, reading: Reading, given: Given | None = None) -> Logits:
        """Answer under the reading's own weights, or under any given; `given` is never renormalised.

        One more axis after the batch means variants: all of them are answered in one product.
        """
        weights = reading.weights if given is None else given
        variants = weights.ndim == reading.weights.ndim + 1
        if not variants:
            weights = weights[:, None]
        self._check_given(reading, weights)
        weights = weights.masked_fill(~reading.mask[:, None], 0.0)
        if reading.values is not None and reading.bias is not None:
            logits = weights @ reading.values + reading.bias
        else:
            logits = self.decoder(weights @ reading.hidden, reading.query)
        if reading.batch.answers is not None:
            logits = logits.masked_fill(~reading.batch.answers[:, None], float("-inf"))
        return logits if variants else logits[:, 0]

    def _check_given(self, reading: Reading, weights: Tensor) -> None:
        needed = reading.weights.shape
        if (weights.shape[0], *weights.shape[2:]) != tuple(needed):
            raise Refusal(
                "attention given to decide",
                got=f"the shape {tuple(weights.shape)}",
                needs=f"{tuple(needed)}, or one more axis of variants after the batch",
                way_out="Weights from one batch cannot be given to another.",
            )

    def _markers(self) -> Float[Tensor, "3 emb"]:
        """The rows of padding, start and end."""
        return self.embedding(torch.tensor([PAD, START, END], device=self.device))

    def _encode(
        self, encoder: Encoder | Hierarchical, text: Framed, mask: Mask, sentences: Tokens | None = None
    ) -> Encoded:
        if isinstance(encoder, Hierarchical):
            numbers = torch.zeros_like(text.places[:, 1:-1]) if sentences is None else sentences
            return encoder(text.rows, text.places[:, 1:-1], mask, numbers)
        if not encoder.contextual:
            return encoder(text.rows, text.places[:, 1:-1], mask)
        encoded = encoder(text.rows, text.places, text.present)
        inside = slice(1, mask.shape[1] + 1)
        inner = None if encoded.inner is None else encoded.inner[:, :, inside, inside]
        return Encoded(encoded.hidden[:, inside], encoded.last, inner)

    def _read_query(self, batch: Batch, asked: Framed | None) -> Query:
        if asked is None or batch.query_mask is None:
            raise Refusal(
                "this model",
                got="texts without a query",
                needs="a query with every text, as it was trained with",
                way_out="Give the query column too.",
            )
        assert self.query_encoder is not None
        return self._encode(self.query_encoder, asked, batch.query_mask).last

    def _weigh(
        self, scores: Tensor, mask: Mask, ids: tuple[str, ...], rng: torch.Generator | None
    ) -> Weights:
        if self.projection.name != "stored":
            return self.projection(scores, mask, rng)
        stored = torch.zeros_like(scores)
        for row, (name, length) in enumerate(zip(ids, mask.sum(1).tolist(), strict=True)):
            weights = None if self.guide is None else self.guide.get(name)
            if weights is None or len(weights) != length:
                raise Refusal(
                    f"stored attention for text {name!r}",
                    got="none" if weights is None else f"{len(weights)} weights for {length} tokens",
                    needs="one weight per token, stored under the text's id",
                    way_out="Store the guide's readings of every split of the same corpus first.",
                )
            stored[row, :length] = torch.as_tensor(np.asarray(weights), dtype=scores.dtype)
        return stored
