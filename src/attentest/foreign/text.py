"""From token ids to a Hugging Face model's input: the marks around the texts, and padding on either side.

A batch holds the token ids of the first text, which is the one attended, and of the second as its query; the
marks (special tokens) are put around them here. Where units are words, `batch.sentences` numbers the word of
each token, as it numbers the sentence of each word in a hierarchy: units that are several tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attentest.model.batch import Batch

PROBE = "a"  # anything that a tokenizer takes for text
Placed = Int[Tensor, "batch place"]


@final
@dataclass(frozen=True)
class Layout:
    """Where everything stands: the model's input, and which token of the batch each place holds, or -1."""

    ids: Placed
    types: Placed
    present: Bool[Tensor, "batch place"]
    token: Placed
    target: Int[Tensor, " batch"] | None = None  # the token that is asked about, where it is no place's

    def repeated(self, count: int) -> Layout:
        """Each text so many times over, its copies next to each other."""
        return self._each(lambda piece: piece.repeat_interleave(count, dim=0))

    def alone(self, place: Int[Tensor, " batch"]) -> Layout:
        """One place of each text."""
        return self._each(lambda piece: piece.gather(1, place[:, None]) if piece.ndim == 2 else piece)

    def _each(self, change: Callable[[Tensor], Tensor]) -> Layout:
        pieces = (self.ids, self.types, self.present, self.token, self.target)
        return Layout(*(None if piece is None else change(piece) for piece in pieces))  # type: ignore[arg-type]


@final
@dataclass(frozen=True)
class Part:
    """Marks in a row, and the types of their places."""

    ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()


@final
@dataclass(frozen=True)
class Frame:
    """What a tokenizer puts before, between and behind, the types it gives to texts, and where it pads."""

    before: Part
    between: Part
    after: Part
    of_texts: tuple[int, int]
    padding: int
    left: bool
    pair: bool
    inside: tuple[Part, ...] = ()  # marks that come with the tokens, to be typed as the tokenizer would
    asks_token: bool = False  # whether a second text ends with the token asked about, which is not laid out

    @classmethod
    def of(cls, tokenizer: Any, *, pair: bool) -> Frame:
        """Learnt from a probe: the tokenizer says itself which places are neither text."""
        encoded = tokenizer(PROBE, PROBE) if pair else tokenizer(PROBE)
        ids, whose = encoded["input_ids"], _text_numbers(tokenizer, encoded, pair)
        types = encoded.get("token_type_ids", [0] * len(ids))

        def part(begin: int, end: int) -> Part:
            return Part(tuple(ids[begin:end]), tuple(types[begin:end]))

        begins = [whose.index(text) for text in ((0, 1) if pair else (0,))]
        ends = [len(whose) - whose[::-1].index(text) for text in ((0, 1) if pair else (0,))]
        return cls(
            before=part(0, begins[0]),
            between=part(ends[0], begins[1]) if pair else Part(),
            after=part(ends[-1], len(ids)),
            of_texts=(types[begins[0]], types[begins[-1]]),
            padding=tokenizer.pad_token_id,
            left=tokenizer.padding_side == "left",
            pair=pair,
        )

    @property
    def marks(self) -> int:
        """The places that are neither text."""
        return len(self.before.ids) + len(self.between.ids) + len(self.after.ids)

    @property
    def closing(self) -> Part:
        """The marks behind the first text."""
        return self.between if self.pair else self.after

    def opened(self) -> Frame:
        """The frame of texts whose own marks are among their tokens: units like any other."""
        after = self.after if self.pair else Part()
        inside = self.before, self.closing
        return replace(self, before=Part(), between=Part(), after=after, inside=inside)

    def lay_out(self, batch: Batch) -> Layout:
        """Marks and texts side by side, then whatever is there moved together; no loop over texts."""
        rows, device = len(batch.tokens), batch.tokens.device
        columns: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []

        def put(ids: Tensor, types: Tensor, present: Tensor, token: Tensor) -> None:
            columns.append(tuple(piece.expand(rows, ids.shape[-1]) for piece in (ids, types, present, token)))  # type: ignore[arg-type]

        def put_marks(part: Part) -> None:
            ids, types = (
                torch.tensor([of], dtype=torch.long, device=device) for of in (part.ids, part.types)
            )
            put(ids, types, torch.ones_like(ids, dtype=torch.bool), torch.full_like(ids, -1))

        put_marks(self.before)
        own = torch.arange(batch.tokens.shape[1], device=device)[None]
        put(batch.tokens, self._types(batch.tokens), batch.mask, own)
        put_marks(self.between)
        target = None
        if batch.query is not None and batch.query_mask is not None:
            types, there = torch.full_like(batch.query, self.of_texts[1]), batch.query_mask
            if self.asks_token:
                last = there.sum(1, keepdim=True) - 1
                target, there = batch.query.gather(1, last)[:, 0], there.clone().scatter(1, last, False)
            put(batch.query, types, there, torch.full_like(batch.query, -1))
        put_marks(self.after)
        ids, types, present, token = (torch.cat(pieces, dim=1) for pieces in zip(*columns, strict=True))
        order = (present if self.left else ~present).int().argsort(dim=1, stable=True)
        longest = int(present.sum(1).max())
        order = order[:, -longest:] if self.left else order[:, :longest]
        ids, types, present, token = (piece.gather(1, order) for piece in (ids, types, present, token))
        return Layout(
            ids.masked_fill(~present, self.padding),
            types.masked_fill(~present, 0),
            present,
            token.masked_fill(~present, -1),
            target,
        )

    def _types(self, tokens: Placed) -> Placed:
        types = torch.full_like(tokens, self.of_texts[0])
        for part in self.inside:
            for mark, kind in zip(part.ids, part.types, strict=True):
                types = torch.where(tokens == mark, kind, types)
        return types


def _text_numbers(tokenizer: Any, encoded: Any, pair: bool) -> list[int | None]:
    """0 at the tokens of the first probe, 1 at those of the second, None at marks."""
    if tokenizer.is_fast:
        return list(encoded.sequence_ids(0))
    own = tokenizer(PROBE, add_special_tokens=False)["input_ids"]
    special = tokenizer(PROBE, *([PROBE] if pair else []), return_special_tokens_mask=True)
    text = [place for place, mark in enumerate(special["special_tokens_mask"]) if not mark]
    return [text.index(n) // len(own) if n in text else None for n in range(len(encoded["input_ids"]))]
