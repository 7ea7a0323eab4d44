"""Three roads from changed rows of attention to logits; each takes many variants at once.

"whole" reads every variant from the beginning. "suffix" starts at the layer that was changed. And in the last
layer nothing but the deciding position can still reach the answer: "row" runs that layer on one position.
Which road a model can take is not believed but tried, against the whole one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attentest.foreign.editing import WATCH, Call, Edit, Enough, Maps, Sums, watching
from attentest.foreign.proof import Proof
from attentest.foreign.remainder import entering, remainder, stack_of
from attentest.foreign.text import Layout
from attentest.model.precision import at_least_single
from attentest.model.seam import Reading
from attentest.refusal import Refusal
from attentest.shapes import Embedded

Rows = Float[Tensor, "batch variant head place"]
Answers = Float[Tensor, "batch variant class"]
FLOATS = 32_000_000  # numbers held at a time, some 128 megabytes


@final
@dataclass(frozen=True, kw_only=True)
class TransformerReading:
    """A reading, and what a transformer keeps of its pass to take it up again: one row a text each."""

    base: Reading
    ids: Int[Tensor, "batch place"]
    types: Int[Tensor, "batch place"]
    present: Bool[Tensor, "batch place"]
    token: Int[Tensor, "batch place"]  # which of the batch's tokens stands at each place, or -1
    unit: Int[Tensor, "batch place"]
    deciding: Int[Tensor, " batch"]
    row: Float[Tensor, "batch head place"]
    entered: Float[Tensor, "batch place states"] | None = None  # the states before the chosen layer
    carried: Float[Tensor, "batch head place each"] | None = None  # the values its attention weighs
    target: Int[Tensor, " batch"] | None = None  # the token that is asked about, of a causal model
    keys: Tensor | None = None  # of causal models, what the layers above look at, and their masks
    values: Tensor | None = None
    masks: Tensor | None = None

    @classmethod
    def of(cls, reading: Reading) -> TransformerReading:
        """What a reading of a transformer kept."""
        assert "row" in reading.kept, "only a reading of this model can be taken up again"
        return cls(base=reading, **reading.kept)

    @property
    def above(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """The keys, the values and the masks of the layers above, where they were kept."""
        if self.keys is None or self.values is None or self.masks is None:
            return None
        return self.keys, self.values, self.masks

    @property
    def laid(self) -> Layout:
        """What the model read."""
        return Layout(self.ids, self.types, self.present, self.token, self.target)


def inputs_of(model: nn.Module, laid: Layout, *, typed: bool) -> dict[str, Any]:
    """What the model's forward takes, of what there is; `typed` says that its tokenizer types its places."""
    taken = signature(model.forward).parameters
    inputs: dict[str, Any] = {"input_ids": laid.ids, "attention_mask": laid.present.long()}
    if typed and "token_type_ids" in taken:
        inputs["token_type_ids"] = laid.types
    if laid.target is not None:
        inputs["target"] = laid.target
    if "use_cache" in taken:
        inputs["use_cache"] = False
    return inputs


@contextmanager
def looked_up(tables: Sequence[nn.Module], laid: Layout, embeddings: Embedded) -> Iterator[None]:
    """While this holds, the pass that this thread watches finds these vectors for the batch's tokens.

    A pass may end early, when whoever watches has seen `Enough`.
    """
    watch, times = WATCH.get(), list[int]()

    def found(_: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        place = None if WATCH.get() is not watch else _token_at(args[0], laid)
        if place is None:
            return None
        token, turned = place
        at = token.clamp_min(0)[..., None].expand(-1, -1, embeddings.shape[2])
        own = output.transpose(0, 1) if turned else output
        vectors = torch.where(token[..., None] >= 0, embeddings.gather(1, at).to(output.dtype), own)
        times.append(1)
        return vectors.transpose(0, 1) if turned else vectors

    hooks = [table.register_forward_hook(found) for table in tables]
    try:
        with suppress(Enough):
            yield
        if not times:
            raise Refusal(
                "the vectors of words",
                got="a model that does not look its words up by their numbers",
                needs="one table of vectors that is asked for every text",
                way_out="Write an adapter for such a model.",
            )
    finally:
        for hook in hooks:
            hook.remove()


def _token_at(asked: Tensor, laid: Layout) -> tuple[Tensor, bool] | None:
    """Which token stands at each place of a look-up, and whether texts are its columns; None: at no place.

    A decoder reads the same text one place later. Some models lay their texts out in columns.
    """
    if asked.shape == laid.ids.shape and torch.equal(asked, laid.ids):
        return laid.token, False
    if asked.shape == laid.ids.T.shape and torch.equal(asked, laid.ids.T):
        return laid.token, True
    if asked.shape == laid.ids.shape and torch.equal(asked[:, 1:], laid.ids[:, :-1]):
        return nn.functional.pad(laid.token[:, :-1], (1, 0), value=-1), False
    return None


@dataclass(frozen=True)
class AbstractRoad(ABC):
    """From rows to logits, as many variants at a time as memory allows."""

    model: Any
    proof: Proof
    layer: int  # which of the calls that may be chosen
    typed: bool
    tables: Sequence[nn.Module]

    def logits(self, reading: TransformerReading, rows: Rows) -> Answers:
        """The answer to every variant."""
        at_once = max(1, FLOATS // (len(rows) * self.floats(reading)))
        answers = [self.some(reading, part) for part in rows.split(at_once, dim=1)]
        return at_least_single(torch.cat(answers, dim=1).to(rows.device))

    def floats(self, reading: TransformerReading) -> int:
        """About as many numbers as one variant of one text holds at a time."""
        places, heads = reading.ids.shape[1], reading.row.shape[1]
        return places * (12 * self.model.config.hidden_size + 2 * heads * places) + self.scored

    @property
    def scored(self) -> int:
        """Logits that a variant holds: of a causal model, as many as tokens are scored."""
        return 4 * getattr(self.model, "scored", 0)

    @abstractmethod
    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """The answers to as many variants as fit."""


def _placed(reading: TransformerReading, rows: Rows, number: int) -> Edit:
    """The edit that puts each variant's row where the decision is made, at one call."""
    flat, deciding = rows.flatten(0, 1), reading.deciding.repeat_interleave(rows.shape[1])

    def placed(call: Call) -> Maps | None:
        if call.number != number:
            return None
        query = torch.arange(call.weights.shape[2], device=flat.device)
        here = (query == deciding[:, None])[:, None, :, None].to(call.weights.device)
        return torch.where(here, flat[:, :, None].to(call.weights), call.weights)

    return placed


@final
class Whole(AbstractRoad):
    """Every variant from the beginning: always there, and the measure of the others."""

    name = "whole"

    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """The whole model, as often as there are variants."""
        count = rows.shape[1]
        laid, embeddings = (
            reading.laid.repeated(count),
            reading.base.embeddings.repeat_interleave(count, dim=0),
        )
        edit = _placed(reading, rows, self.proof.layers[self.layer])
        with watching(self.model, edit, self.proof.road) as watch, looked_up(self.tables, laid, embeddings):
            logits = self.model(**inputs_of(self.model, laid, typed=self.typed)).logits
        self.proof.check(watch)
        return logits.unflatten(0, (-1, count))


@final
class Averaged(AbstractRoad):
    """Of a model that averages its states: its own attention, held in all rows of the layer at once.

    There is no one row to be replaced. Whoever takes gradients has this attention held, whoever asks for the
    answer has the model's own.
    """

    name = "averaged"

    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """The whole model under its own attention."""
        count, number = rows.shape[1], self.proof.layers[self.layer]
        laid = reading.laid.repeated(count)
        embeddings = reading.base.embeddings.repeat_interleave(count, dim=0)

        def held(call: Call) -> Maps | None:
            return None if rows.requires_grad or call.number != number else call.weights.detach()

        with watching(self.model, held, self.proof.road) as watch, looked_up(self.tables, laid, embeddings):
            logits = self.model(**inputs_of(self.model, laid, typed=self.typed)).logits
        self.proof.check(watch)
        return logits.unflatten(0, (-1, count))


class AbstractRemaining(AbstractRoad):
    """A road that leaves out the layers before the one that is changed."""

    @cached_property
    def left(self) -> nn.Module:
        """The layers from the changed one on, and the head."""
        stack = stack_of(self.model, self.proof.paths[self.layer])
        assert stack is not None, "a road of layers is only tried where there is a stack of them"
        return remainder(self.model, stack, self.layer, len(self.proof.paths))

    def summed(self, reading: TransformerReading, rows: Rows) -> Tensor:
        """What attention brings to the deciding position, one text a variant."""
        assert reading.carried is not None
        sums = (rows.transpose(1, 2).to(reading.carried.dtype) @ reading.carried).permute(0, 2, 1, 3)
        return sums.flatten(0, 1)[:, None].contiguous()

    def entering_alone(self, reading: TransformerReading, count: int) -> Tensor:
        """The states of the deciding position, so many times over."""
        assert reading.entered is not None
        at = reading.deciding[:, None, None].expand(-1, -1, reading.entered.shape[2])
        return reading.entered.gather(1, at).repeat_interleave(count, dim=0)

    def _run(self, laid: Layout, states: Tensor, edit: Edit, **more: Tensor) -> Tensor:
        with watching(self.model, edit, self.proof.road), entering(states):
            return self.left(**inputs_of(self.model, laid, typed=self.typed), **more).logits


@final
class Suffix(AbstractRemaining):
    """From the changed layer on, on all positions."""

    name = "suffix"

    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """The remaining layers, as often as there are variants."""
        assert reading.entered is not None
        count = rows.shape[1]
        states = reading.entered.repeat_interleave(count, dim=0)
        logits = self._run(reading.laid.repeated(count), states, _placed(reading, rows, 0))
        return logits.unflatten(0, (-1, count))


@final
class LastRow(AbstractRemaining):
    """The last layer on the deciding position alone: to it, the text is what attention brings."""

    name = "row"

    def floats(self, reading: TransformerReading) -> int:
        """One position, and its row over all of them."""
        return 12 * self.model.config.hidden_size + 4 * reading.row[0].numel() + self.scored

    def some(self, reading: TransformerReading, rows: Rows) -> Answers:
        """One position a variant."""
        count, sums = rows.shape[1], self.summed(reading, rows)

        def brought(call: Call) -> tuple[Sums, Maps]:
            return sums.to(call.weights.device), call.weights

        alone = reading.laid.alone(reading.deciding).repeated(count)
        return self._run(alone, self.entering_alone(reading, count), brought).unflatten(0, (-1, count))
