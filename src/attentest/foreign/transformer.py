"""A Hugging Face sequence classifier behind the seam: `read` once, `decide` under any attention.

The attention is the row of the position that decides, in one layer: heads together, or one head. Weights of
heads together are (batch, head, unit): one order permutes all heads, a search moves all of them, and their
mean is for rankings and distances only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.corpus.example import Example
from attentest.foreign.causal import ask_likeliest, drawn_anew
from attentest.foreign.editing import Call, Enough, watching
from attentest.foreign.foreign_model import AbstractForeignModel, Variants
from attentest.foreign.layer_rows import every_row
from attentest.foreign.placement import is_spread, rounding
from attentest.foreign.position import Above, OnePosition, roads_to_try
from attentest.foreign.probe import counted, longest_text, probe_of, single_look_up, tables_of
from attentest.foreign.proof import MEAN, check_finite, family, proven
from attentest.foreign.remainder import overheard, stack_of
from attentest.foreign.roads import (
    AbstractRoad,
    Averaged,
    TransformerReading,
    Whole,
    inputs_of,
    looked_up,
)
from attentest.foreign.rows import Portions, brought, mean_row, row_at, units_of
from attentest.foreign.split import AbstractInput, PlainInput, TokenisedSplit
from attentest.foreign.text import Layout
from attentest.foreign.words import ROW, averaged, in_words
from attentest.model.batch import Batch
from attentest.model.constructions import CAUSAL, TRANSFORMER
from attentest.model.precision import at_least_single
from attentest.model.seam import Capabilities, LayeredModel, Origin, Reading, Room
from attentest.refusal import Refusal
from attentest.shapes import Embedded

# What a model may do when a part of it is run alone: then it has no such road.
CANNOT = (RuntimeError, ValueError, TypeError, AttributeError, IndexError, KeyError)


@final
class TransformerModel(AbstractForeignModel, LayeredModel):
    """A sequence classifier and its tokenizer, with one of its attentions under test.

    `layer` counts from 0 or backwards from -1; of a model with a decoder, the layers are those in which the
    decoder looks at the text. `head=None` takes all heads together. With `words`, a unit is a word; else
    a sub-word. With `special_tokens`, the tokenizer's marks are units too; else what rests on them stays.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        labels: Sequence[str],
        *,
        layer: int = -1,
        head: int | None = None,
        words: bool = True,
        special_tokens: bool = False,
        origin: Origin | None = None,
        written: AbstractInput | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        tables = tables_of(model)
        super().__init__(single_look_up(tables[0]), tuple(labels))
        self.transformer, self.tokenizer = model.eval(), tokenizer
        self._origin, self._width = origin, 0
        self.words, self.special_tokens = words, special_tokens
        self.tables, self.typed = tables, "token_type_ids" in tokenizer.model_input_names
        self.written = written or PlainInput(tokenizer)
        self.frames = self.written.frames
        if special_tokens:
            self.written.check_marks(model)
        probe = self.written.probe(probe_of(tokenizer, tables[0].num_embeddings, self.device))
        self.proof = proven(model, inputs_of(model, self.laid(probe), typed=self.typed))
        self.averages = self.proof.rule == MEAN  # no one row decides
        self.layer = counted("layer", layer, len(self.proof.layers), family(model))
        self.head = None
        road = Averaged if self.averages else Whole
        self.road: AbstractRoad = road(model, self.proof, self.layer, self.typed, self.tables)
        if head is not None:
            with torch.no_grad():
                heads = self.read(probe).kept["row"].shape[1]
                self.head = counted("head", head, heads, family(model))
        self.road = self._settled(probe)
        self._capabilities = Capabilities(
            attention=self.in_words(ROW),
            kind=CAUSAL if self.written.prompted else TRANSFORMER,
            layered=self,
            room=Room(longest_text(model, tokenizer), self.written.places),
            notes=tuple(notes),
            every_row=every_row(self),
        )

    @property
    def width(self) -> int:
        """The width of what a unit brings, all heads side by side."""
        return self._width

    @property
    def origin(self) -> Origin | None:
        """The configuration of a construction; None of any other transformer."""
        return self._origin

    @property
    def layers(self) -> int:
        """How many layers there are to choose among."""
        return len(self.proof.layers)

    @property
    def capabilities(self) -> Capabilities:
        """Its row, of which layer and head can be chosen."""
        return self._capabilities

    def in_words(self, kind: str) -> str:
        """Which attention of this kind it is, as a report says it."""
        return in_words(
            kind,
            family=self.transformer.config.model_type,
            layer=self.layer,
            layers=self.layers,
            head=self.head,
            words=self.words,
        )

    def placed(self, layer: int, head: int | None) -> TransformerModel:
        """The same transformer asked about another layer or head."""
        return self._around(self.transformer, layer, head)

    def drawn_anew(self) -> TransformerModel | None:
        """Other parameters, as the library draws them; None of a construction, or over several devices."""
        if self._origin is not None or is_spread(self.transformer):
            return None
        fresh = drawn_anew(self.transformer).to(device=self.device, dtype=self.transformer.dtype)
        return self._around(fresh, self.layer, self.head)

    def _around(self, model: Any, layer: int, head: int | None) -> TransformerModel:
        return TransformerModel(
            model,
            self.tokenizer,
            self.labels,
            layer=layer,
            head=head,
            words=self.words,
            special_tokens=self.special_tokens,
            written=self.written,
            notes=self._capabilities.notes,
        )

    @property
    def gathers(self) -> bool:
        """Whether a unit is several tokens: a word of sub-words."""
        return self.words

    def split(self, examples: Sequence[Example]) -> TokenisedSplit:
        """The examples as sub-words, to be read in batches; what the model cannot read is refused."""
        pair = bool(examples) and examples[0].query is not None
        split = TokenisedSplit(
            examples,
            self.written,
            self.labels,
            frame=self.frames[pair],
            words=self.words,
            marked=self.special_tokens,
            longest=longest_text(self.transformer, self.tokenizer),
        )
        if self.written.asks_token:
            ask_likeliest(split, self.frames[pair], self.transformer, self.device)
        return split

    def read(
        self, batch: Batch, *, embeddings: Embedded | None = None, rng: torch.Generator | None = None
    ) -> Reading:
        """One pass of the model; the chosen layer's row is kept, and what it takes to go on from there."""
        embeddings = self.embedding(batch.tokens) if embeddings is None else embeddings
        laid = self.laid(batch)
        unit, mask = units_of(batch, laid)
        deciding = self.proof.deciding(laid.present)
        row, entered, carried, above = self._pass(laid, embeddings, deciding)
        portions = Portions.of(row, unit, mask.shape[1])
        weights = portions.weights if self.head is None else portions.weights[:, self.head]
        kept = {
            "ids": laid.ids,
            "types": laid.types,
            "present": laid.present,
            "token": laid.token,
            "target": laid.target,
            "unit": unit,
            "deciding": deciding,
            "row": row,
            "entered": entered,
            "carried": carried,
            **({} if above is None else vars(above)),
        }
        return Reading(
            batch=batch,
            embeddings=embeddings,
            hidden=brought(portions, carried, laid, embeddings),
            scores=weights.clamp_min(torch.finfo(weights.dtype).tiny).log(),
            weights=weights,
            mask=mask,
            explained=torch.zeros_like(deciding) if self.written.asks_token else None,
            hidden_summed=carried is not None,
            hidden_scored=False,
            scored=entered,
            scored_unit=unit,
            kept={name: tensor for name, tensor in kept.items() if tensor is not None},
        )

    def answer(
        self, reading: Reading, weights: Variants, *, held: bool
    ) -> Float[Tensor, "batch variant class"]:
        """By the road that was settled on. Attention that is held is held whole: its marks' share, too."""
        kept = TransformerReading.of(reading)
        row = kept.row.detach() if held else kept.row
        portions = Portions.of(row, kept.unit, reading.mask.shape[1])
        heads = torch.arange(row.shape[1], device=row.device)
        chosen = heads >= 0 if self.head is None else heads == self.head
        given = weights if self.head is None else weights[:, :, None].expand(-1, -1, len(heads), -1)
        if self.averages and held and (given - portions.weights[:, None]).abs().max() > 1e-5:
            raise averaged("other weights")
        logits = self.road.logits(kept, portions.rows(given, chosen))
        if not held:
            check_finite(logits, self.transformer)
        return logits

    def laid(self, batch: Batch) -> Layout:
        """The batch as the model reads it, marks and padding included."""
        frame = self.frames[batch.query is not None]
        return (frame.opened() if self.special_tokens else frame).lay_out(batch)

    def _pass(self, laid: Layout, embeddings: Embedded, deciding: Tensor) -> tuple[Tensor, Any, Any, Any]:
        """The deciding row, the states before its layer, the values it weighs, and what layers above see."""
        number, seen = self.proof.layers[self.layer], list[Call]()
        last = len(self.proof.paths) - 1 if isinstance(self.road, OnePosition) else number

        def keep(call: Call) -> None:
            if call.number >= number:
                seen.append(call)
            if call.number == last:
                raise Enough

        stack = None if isinstance(self.road, Whole) else stack_of(self.transformer, self.proof.paths[number])
        with (
            watching(self.transformer, keep, self.proof.road) as watch,
            looked_up(self.tables, laid, embeddings),
            overheard(self.transformer, stack, self.layer) as states,
        ):
            self.transformer(**inputs_of(self.transformer, laid, typed=self.typed))
        self.proof.check(watch, last + 1)
        maps, carried = seen[0].weights, seen[0].values
        if carried is not None:
            carried = carried.repeat_interleave(maps.shape[1] // carried.shape[1], dim=1).to(self.device)
        row = mean_row(maps, laid.present) if self.averages else row_at(maps, deciding)
        row = at_least_single(row).to(self.device)
        return row, states[0].to(self.device) if states else None, carried, Above.of(seen[1:], deciding)

    @torch.no_grad()
    def _settled(self, probe: Batch) -> AbstractRoad:
        """The fastest road that ends where the whole one does, under attention that is not its own."""
        settings = self.transformer, self.proof, self.layer, self.typed, self.tables
        whole, reading = self.road, self.read(probe)
        self._width = reading.hidden.shape[2]
        self._need_own_answer(reading, probe)
        if self.averages:
            return whole
        given = reading.weights.flip(-1).masked_fill(reading.weights == 0, 0.0)
        wanted = self.decide(reading, given)
        for kind in roads_to_try(self.transformer, self.proof, self.layer):
            self.road = kind(*settings)
            with suppress(*CANNOT):
                if self._near(self.decide(self.read(probe), given), wanted):
                    return self.road
        return whole

    def _near(self, found: Tensor, wanted: Tensor) -> bool:
        """Whether two answers are one, within the rounding of the model's type."""
        most = rounding(self.transformer.dtype)
        return torch.allclose(found, wanted, rtol=most, atol=most)

    def _need_own_answer(self, reading: Reading, probe: Batch) -> None:
        """Vectors looked up by us and a row put back by us must lead where the model goes by itself."""
        own = self.transformer(**inputs_of(self.transformer, self.laid(probe), typed=self.typed)).logits
        if not self._near(self.decide(reading), at_least_single(own)):
            raise Refusal(
                f"reading with a {family(self.transformer)} model",
                got="another answer than the model's own",
                needs="the same answer when its own vectors and attention are given back",
                way_out="Write an adapter for such a model.",
            )
