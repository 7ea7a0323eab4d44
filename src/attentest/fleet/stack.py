"""Models of one shape as one: every parameter with a leading axis `model`, every step a batched product.

What differs between the models (numbers, projection, guide) is a slice or an index; what they share (encoder,
attention, decoder, vocabulary) is read off the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn import functional

from attentest.corpus.vocabulary import END, PAD, START
from attentest.fleet.stacked_encoders import encode, within
from attentest.fleet.stacked_hierarchy import Measures, Sentences, encode_sentences, lay_out
from attentest.model.framing import frame
from attentest.model.network import AttentionModel
from attentest.model.networks.decoder import Affine
from attentest.model.networks.hierarchy import Hierarchical

Words = Int[Tensor, "model batch token"]
Present = Bool[Tensor, "model batch token"]
Places = Int[Tensor, "model batch place"]
# Places, and where there are any; queries are not as wide as texts.
Framed = tuple[Int[Tensor, "model batch _"], Bool[Tensor, "model batch _"]]
PerToken = Float[Tensor, "model batch token"]
PerUnit = Float[Tensor, "model batch unit"]
States = Float[Tensor, "model batch unit hidden"]
LookUp = Callable[[Places], Float[Tensor, "model batch place emb"]]


@final
@dataclass(frozen=True, kw_only=True)
class StackedBatch:
    """As many texts for every model; a text of no tokens is none."""

    tokens: Words
    mask: Present
    query: Int[Tensor, "model batch word"] | None = None
    query_mask: Bool[Tensor, "model batch word"] | None = None
    answers: Bool[Tensor, "model batch class"] | None = None
    stored: PerToken | None = None  # the weights of the models that look theirs up
    noise: PerToken | None = None  # what Gumbel-softmax adds to the scores while training
    sentences: Sentences | None = None
    room: Measures | None = None  # what these need


class Read(NamedTuple):
    """What the models make of a batch before they weigh anything; units are tokens, or sentences."""

    hidden: States
    scores: PerUnit
    mask: Bool[Tensor, "model batch unit"]
    query: Float[Tensor, "model batch hidden"] | None


ATTENTIONS = ("additive", "additive-wide", "dot", "dot-unscaled", "deep", "multiplicative")


@final
class Stack:
    """The parameters of several models, and what these answer to texts of their own."""

    def __init__(self, models: Sequence[AttentionModel]) -> None:
        self.models, self.first = list(models), models[0]
        of_each = [dict(model.named_parameters()) for model in models]
        self.parameters = {
            name: torch.stack([own[name].detach() for own in of_each]).requires_grad_()
            for name in of_each[0]
            if not name.startswith("embedding.")
        }
        self.table = torch.cat([own["embedding.weight"].detach() for own in of_each])
        self.rows = len(of_each[0]["embedding.weight"])
        self.markers = torch.tensor([PAD, START, END], device=self.table.device)
        self._number()

    def _number(self) -> None:
        """Where in the table each model's rows begin."""
        self.offsets = torch.arange(len(self), device=self.table.device)[:, None, None] * self.rows

    def __len__(self) -> int:
        return len(self.models)

    def is_hierarchical(self) -> bool:
        """Whether units are sentences."""
        return isinstance(self.first.encoder, Hierarchical)

    def look_up(self, words: Places) -> Float[Tensor, "model batch place emb"]:
        """Every word's vector, outside of any graph."""
        return functional.embedding(words + self.offsets, self.table)

    def state(self, number: int) -> dict[str, Tensor]:
        """One model's parameters, as `load_state_dict` takes them."""
        own = {name: stacked[number].detach().clone() for name, stacked in self.parameters.items()}
        return {"embedding.weight": self.table[number * self.rows :][: self.rows].clone(), **own}

    def blocks(self, index: Int[Tensor, " kept"]) -> Int[Tensor, " row"]:
        """The rows of the table that belong to these models."""
        within = torch.arange(self.rows, device=index.device)
        return (index[:, None] * self.rows + within).flatten()

    def hold(self, names: Iterable[str]) -> None:
        """Parameters that no model trains: no gradient is taken of them, nor through what rests on them."""
        for name in names:
            self.parameters[name].requires_grad_(False)

    def keep(self, staying: Sequence[int]) -> None:
        """Go on with some of the models."""
        index = torch.tensor(staying, device=self.table.device)
        self.table = self.table[self.blocks(index)]
        self.parameters = {
            name: each.detach()[index].requires_grad_(each.requires_grad)
            for name, each in self.parameters.items()
        }
        self.models = [self.models[number] for number in staying]
        self._number()

    def frame(self, words: Words, mask: Present) -> Framed:
        """Texts as the encoder wants them: between markers where it sees the whole text."""
        if not self.first.encoder.contextual:
            return words.masked_fill(~mask, PAD), mask
        framed, present = frame(words.flatten(0, 1), self.markers, mask.flatten(0, 1))
        return framed.unflatten(0, words.shape[:2]), present.unflatten(0, words.shape[:2])

    def frames(self, batch: StackedBatch) -> list[Framed]:
        """The texts framed, and the queries where there are some."""
        framed = [self.frame(batch.tokens, batch.mask)]
        if batch.query is not None and batch.query_mask is not None:
            framed.append(self.frame(batch.query, batch.query_mask))
        return framed

    def read(self, batch: StackedBatch, frames: Sequence[Framed], look_up: LookUp) -> Read:
        """Encode the texts and score their units."""
        return self.score(*self.encode(batch, frames, look_up))

    def encode(
        self, batch: StackedBatch, frames: Sequence[Framed], look_up: LookUp
    ) -> tuple[States, Bool[Tensor, "model batch unit"], Float[Tensor, "model batch hidden"] | None]:
        """The states of the units, which units there are, and the queries where there are some."""
        mask = batch.mask
        if isinstance(self.first.encoder, Hierarchical):
            assert batch.sentences is not None and batch.room is not None
            grid = lay_out(batch.sentences, batch.mask, batch.room)
            own = within(self.parameters, "encoder")
            hidden, _ = encode_sentences(self.first.encoder, own, look_up(frames[0][0]), grid)
            mask = grid.present
        else:
            hidden, _ = self._encode("encoder", frames[0], look_up)
        query = None
        if self.first.query_encoder is not None:
            _, query = self._encode("query_encoder", frames[1], look_up)
        return hidden, mask, query

    def score(
        self,
        hidden: States,
        mask: Bool[Tensor, "model batch unit"],
        query: Float[Tensor, "model batch hidden"] | None,
    ) -> Read:
        """What attention makes of the states before it weighs them."""
        attention = self.first.attention
        assert attention is not None
        given = (hidden,) if query is None else (hidden, query)

        def score(own: dict[str, Tensor], states: Tensor, asked: Tensor | None = None) -> Tensor:
            return functional_call(attention, own, (states, asked))

        return Read(hidden, vmap(score)(within(self.parameters, "attention"), *given), mask, query)

    def weigh(self, read: Read, batch: StackedBatch) -> PerUnit:
        """The weights: models of one projection stand side by side, and are weighed in one call."""
        weights, begin = [], 0
        scores = read.scores if batch.noise is None else read.scores + batch.noise
        for _, group in groupby(self.models, key=lambda model: model.config.projection):
            end = begin + len(list(group))
            project = self.models[begin].projection
            if project.name == "stored":
                assert batch.stored is not None
                weights.append(batch.stored[begin:end])
            else:
                flat = project(scores[begin:end].flatten(0, 1), read.mask[begin:end].flatten(0, 1))
                weights.append(flat.unflatten(0, (end - begin, -1)))
            begin = end
        return torch.cat(weights)

    def decide(self, read: Read, weights: PerUnit, batch: StackedBatch) -> Float[Tensor, "model batch class"]:
        """The logits."""
        context = torch.einsum("mbt,mbth->mbh", weights.masked_fill(~read.mask, 0.0), read.hidden)
        decoder, own = self.first.decoder, within(self.parameters, "decoder")
        if isinstance(decoder, Affine):
            logits = torch.baddbmm(own["dense.bias"][:, None], context, own["dense.weight"].transpose(1, 2))
        else:

            def answer(own: Mapping[str, Tensor], context: Tensor, query: Tensor) -> Tensor:
                return functional_call(decoder, dict(own), (context, query))

            assert read.query is not None
            logits = vmap(answer)(own, context, read.query)
        return logits if batch.answers is None else logits.masked_fill(~batch.answers, float("-inf"))

    def _encode(
        self, part: str, framed: Framed, look_up: LookUp
    ) -> tuple[States, Float[Tensor, "model batch hidden"]]:
        """The states of the tokens, and the text as one vector."""
        places, present = framed
        encoder = getattr(self.first, part)
        hidden, last = encode(encoder, within(self.parameters, part), look_up(places), present)
        return (hidden[:, :, 1:-1] if encoder.contextual else hidden), last
