"""The one seam: `read` encodes a batch once, `decide` answers under the model's own attention or any other.

`Model` is all that evidence and experiments know of a model, whoever made it. Attention is changed only
through `given=`: there are no hooks, no flags, no train or eval mode. Whatever an experiment does to
attention is therefore visible in its own code. What one model can do and another cannot is data:
`Model.network`, `Model.capabilities`, and the fields of a `Reading` that may be None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attentest.corpus.example import UNLABELLED, Example, enumerated
from attentest.corpus.vocabulary import Vocabulary
from attentest.model.batch import AbstractSplit, Batch
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import Attention
from attentest.model.networks.decoder import Affine, TwoLayer
from attentest.model.networks.encoders import Encoder
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.log_odds import LogOddsAttention
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal
from attentest.shapes import Embedded, Given, Hidden, Logits, Mask, Query, Values, Weights


@final
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
    explained: Int[Tensor, " batch"] | None = None  # the class to explain, where it need not be the likeliest
    inner: Tensor | None = None  # attention inside the encoder, for display
    # What a model made elsewhere says of its attention, and what it keeps to decide: one row a text each.
    hidden_summed: bool = True  # whether `hidden` is what attention sums up, not a stand-in for it
    hidden_scored: bool = True  # whether `hidden` is what attention scores; else it is `scored`, if shown
    scored: Float[Tensor, "batch place width"] | None = None
    scored_unit: Int[Tensor, "batch place"] | None = None  # the unit at each place of it, -1 for none
    kept: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def scored_states(self) -> Float[Tensor, "batch place width"] | None:
        """The states that attention scores, or None where the model does not show them."""
        return self.hidden if self.hidden_scored else self.scored

    def detached(self) -> Reading:
        """The same reading without its graph."""
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        at_rest: dict[str, Any] = {name: tensor.detach() for name, tensor in tensors.items()}
        return replace(self, **at_rest, kept={name: tensor.detach() for name, tensor in self.kept.items()})


@runtime_checkable
class Model(Protocol):
    """What evidence, experiments and audits ask of any model."""

    labels: tuple[str, ...]
    embedding: nn.Embedding

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        ...

    @property
    def width(self) -> int:
        """The width of a hidden state."""
        ...

    @property
    def outputs(self) -> int:
        """How many logits an answer has."""
        ...

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens, as `batch.sentences` numbers them."""
        ...

    @property
    def with_heads(self) -> Model:
        """The model to ask under other weights, head by head, where this one shows the mean over heads."""
        ...

    @property
    def network(self) -> Network | None:
        """The same model with its parts, for roads that know them; None where they are not ours."""
        ...

    @property
    def origin(self) -> Origin | None:
        """What it was made from, where attentest made it."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What else can be asked of it."""
        ...

    def split(self, examples: Sequence[Example]) -> AbstractSplit:
        """The examples as the model numbers their words; what it cannot read is refused."""
        ...

    def read(
        self, batch: Batch, *, embeddings: Embedded | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """Encode once. `embeddings` replaces the look-up; `rng` draws training's noise, None means none."""
        ...

    def read_distinct(self, batch: Batch, *, rng: torch.Generator | None = None) -> Reading:
        """The same reading, by a faster way that has no gradient with respect to `embeddings`."""
        ...

    def decide(self, reading: Reading, given: Given | None = None) -> Logits:
        """Answer under the reading's own weights, or under any given; `given` is never renormalised.

        One more axis after the batch means variants: all of them are answered in one product.
        """
        ...

    def drawn_anew(self) -> Model | None:
        """The same model with other random parameters, or None where nobody knows how to draw them."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """All that the answers depend on, by name."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All parameters and buffers by name."""
        ...

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> Any:
        """Take these for its own."""
        ...

    def to(self, device: torch.device | str) -> Model:
        """The same model on another device."""
        ...


@runtime_checkable
class Network(Model, Protocol):
    """A model of the papers' grid, with its parts."""

    config: ModelConfig
    vocabulary: Vocabulary
    encoder: Encoder | Hierarchical
    query_encoder: Encoder | Hierarchical | None
    attention: Attention | LogOddsAttention | None
    projection: Projection
    decoder: Affine | TwoLayer
    guide: Mapping[str, np.ndarray] | None


@runtime_checkable
class LayeredModel(Model, Protocol):
    """A transformer, of which one layer's attention is asked about: all its heads, or one."""

    layer: int
    head: int | None

    @property
    def layers(self) -> int:
        """How many layers there are to choose among."""
        ...

    def placed(self, layer: int, head: int | None) -> LayeredModel:
        """The same transformer asked about another layer or head."""
        ...


@final
@dataclass(frozen=True)
class Origin:
    """The configuration and the vocabulary of a model that attentest made."""

    config: ModelConfig
    vocabulary: Vocabulary


@final
@dataclass(frozen=True, eq=False)
class AnsweredBy:
    """Of a model whose weights are computed from another's and cannot be given back: who answers."""

    model: Model
    own: Callable[[Reading], Reading]  # a reading as `model` has it, with its own weights
    refuses: Callable[[str], Refusal]  # why something is not asked of these weights


@final
@dataclass(frozen=True, eq=False)
class Room:
    """How long a text a model can read."""

    most: int  # places
    places: Callable[[Example], int]  # that an example takes, with its second text and all marks


@final
@dataclass(frozen=True, eq=False)
class EveryRow:
    """The rows of all layers and heads, and which of them is looked at; head None is the mean over heads."""

    rows: Callable[[Batch], Float[Tensor, "layer batch head unit"]]
    layer: int
    head: int | None


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Capabilities:
    """What can be asked of one model and not of another, as data."""

    attention: str  # which attention is asked about, in words
    kind: str | None = None  # the kind of model that error rates are known for
    answered_by: AnsweredBy | None = None
    layered: LayeredModel | None = None  # whose layer and head can be chosen
    of_heads: Callable[[Reading], Reading] | None = None  # its reading, from that of the model with heads
    every_row: EveryRow | None = None  # of a transformer, whatever is made of them
    room: Room | None = None  # for texts, where a model has positions for so many tokens only
    notes: tuple[str, ...] = ()  # what a reader of results must know of the model, in sentences
    again: Callable[[], None] = lambda: None  # shows once more what was shown when it was adopted, or refuses


def network_of(model: Model, what: str) -> Network:
    """The model with its parts, for `what`; refused where it was made elsewhere."""
    if model.network is None:
        raise Refusal(
            what,
            got="a model of another library",
            needs="a model trained here",
            way_out="Train one: attentest train, or attentest.train in Python.",
        )
    return model.network


def in_short(model: Model, name: str) -> str:
    """A model in a line: its attention, its labels, how many parameters it has and where they are."""
    size = sum(parameter.numel() for parameter in model.parameters())
    named = f"{model.capabilities.attention}; {enumerated(model.labels)}"
    return f"{name}({named}; {size:,} parameters on {model.device})"


def check_given(reading: Reading, weights: Tensor) -> None:
    """Refuse weights that are not of the reading's shape, with one axis of variants."""
    needed = reading.weights.shape
    if (weights.shape[0], *weights.shape[2:]) != tuple(needed):
        raise Refusal(
            "attention given to decide",
            got=f"the shape {tuple(weights.shape)}",
            needs=f"{tuple(needed)}, or one more axis of variants after the batch",
            way_out="Weights from one batch cannot be given to another.",
        )


def label_numbers(examples: Sequence[Example], labels: Sequence[str]) -> Int[np.ndarray, " text"]:
    """The class of every example, -1 of one without a label; one that the model does not know is refused."""
    number = {UNLABELLED: -1, **{label: n for n, label in enumerate(labels)}}
    for example in examples:
        if example.label not in number:
            raise Refusal(
                f"label {example.label!r} of text {example.id!r}",
                got="a label that the model does not know",
                needs=f"one of {', '.join(labels)}",
                way_out="Rename it, or name the model's classes in their order: labels=(...).",
            )
    return np.array([number[example.label] for example in examples], dtype=np.int64)
