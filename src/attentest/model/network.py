"""The models of the papers: embedding, encoder, attention, projection, decoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attentest import notebook
from attentest.corpus.example import Example
from attentest.corpus.vocabulary import END, PAD, START, Vocabulary
from attentest.model.batch import AbstractSplit, Batch, IndexedSplit
from attentest.model.catalogue import make_encoder
from attentest.model.config import ModelConfig
from attentest.model.constructions import CONTEXTUAL, WITHOUT_CONTEXT, Constructed, is_constructed
from attentest.model.framing import Framed, dropped, frame, framed
from attentest.model.networks.attention import ATTENTIONS
from attentest.model.networks.decoder import DECODERS, Affine, TwoLayer
from attentest.model.networks.encoders import Encoded, Encoder, TokenWise
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.log_odds import LOG_ODDS, LogOddsAttention
from attentest.model.networks.projection import Projection
from attentest.model.seam import Capabilities, Network, Origin, Reading, check_given, in_short, label_numbers
from attentest.refusal import Refusal
from attentest.shapes import Embedded, Given, Logits, Mask, Query, Tokens, Weights


@final
class AttentionModel(nn.Module, Network):
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
        self.decoder: Affine | TwoLayer = DECODERS[config.decoder](self.encoder.width, classes)

    def __repr__(self) -> str:
        """Its attention, labels and size; its modules would fill many screens."""
        return in_short(self, type(self).__name__)

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
    def width(self) -> int:
        """The width of a hidden state."""
        return self.encoder.width

    @property
    def outputs(self) -> int:
        """How many logits an answer has."""
        return 1 if self.config.decoder == "sigmoid" else len(self.labels)

    @property
    def with_heads(self) -> AttentionModel:
        """The model itself: it has one weight a unit."""
        return self

    @property
    def network(self) -> AttentionModel:
        """The model itself."""
        return self

    @property
    def origin(self) -> Origin:
        """What it was built from."""
        return Origin(self.config, self.vocabulary)

    @property
    def capabilities(self) -> Capabilities:
        """Its one attention, as its configuration names it."""
        named = f"{self.config.attention} attention over {self.config.encoder}, {self.config.projection}"
        return Capabilities(attention=named, kind=self._kind())

    def _kind(self) -> str | None:
        """None for hierarchical models, and for models that read their last state alone."""
        if self.gathers or self.attention is None:
            return None
        if is_constructed(self.config.encoder):
            return Constructed.parse(self.config.encoder).kind
        return WITHOUT_CONTEXT if isinstance(self.encoder, TokenWise) else CONTEXTUAL

    def split(self, examples: Sequence[Example]) -> AbstractSplit:
        """The examples, numbered by the vocabulary; a word that it lacks is unknown."""
        label_numbers(examples, self.labels)
        return IndexedSplit(examples, self.vocabulary, self.labels)

    def drawn_anew(self) -> AttentionModel | None:
        """Other parameters; word vectors at the scale the model's own have, wherever those came from."""
        if isinstance(self.attention, LogOddsAttention) or is_constructed(self.config.encoder):
            return None  # nothing was learnt that could be forgotten
        has_query = self.query_encoder is not None
        fresh = AttentionModel(self.config, self.vocabulary, self.labels, has_query=has_query)
        with torch.no_grad():
            nn.init.normal_(fresh.embedding.weight, std=float(self.embedding.weight.std()))
            fresh.embedding.weight[PAD] = 0.0
        return fresh.to(device=self.device, dtype=self.embedding.weight.dtype)

    def tensors(self) -> dict[str, Tensor]:
        """The state dict."""
        return dict(self.state_dict())

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
        check_given(reading, weights)
        weights = weights.masked_fill(~reading.mask[:, None], 0.0)
        if reading.values is not None and reading.bias is not None:
            logits = weights @ reading.values + reading.bias
        else:
            logits = self.decoder(weights @ reading.hidden, reading.query)
        if reading.batch.answers is not None:
            logits = logits.masked_fill(~reading.batch.answers[:, None], float("-inf"))
        return logits if variants else logits[:, 0]

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
