"""From words to a Hugging Face model's places: sub-words, the marks around them, and padding on either side.

A batch holds the sub-words of the first text, which is the one attended, and of the second as its query; the
marks are put around them here. Where units are words, `batch.sentences` numbers the word of each sub-word,
as it numbers the sentence of each word in a hierarchy: units that are several tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attentest.corpus.batch import Batch, IndexedSplit
from attentest.corpus.example import Example
from attentest.model.foreign import label_numbers
from attentest.refusal import Refusal

PROBE = "a"  # anything that a tokenizer takes for text
Placed = Int[Tensor, "batch place"]


@dataclass(frozen=True)
class Layout:
    """Where everything stands: the model's input, and which token of the batch each place holds, or -1."""

    ids: Placed
    types: Placed
    present: Bool[Tensor, "batch place"]
    token: Placed


@dataclass(frozen=True)
class Part:
    """Marks in a row, and the types of their places."""

    ids: tuple[int, ...] = ()
    types: tuple[int, ...] = ()


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

    @classmethod
    def of(cls, tokenizer: Any, *, pair: bool) -> Frame:
        """Learnt from a probe: the tokenizer says itself which places are neither text."""
        encoded = tokenizer(PROBE, PROBE) if pair else tokenizer(PROBE)
        ids, whose = encoded["input_ids"], encoded.sequence_ids(0)
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
        if batch.query is not None and batch.query_mask is not None:
            types = torch.full_like(batch.query, self.of_texts[1])
            put(batch.query, types, batch.query_mask, torch.full_like(batch.query, -1))
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
        )

    def _types(self, tokens: Placed) -> Placed:
        types = torch.full_like(tokens, self.of_texts[0])
        for part in self.inside:
            for mark, kind in zip(part.ids, part.types, strict=True):
                types = torch.where(tokens == mark, kind, types)
        return types


def pieces(tokenizer: Any, words: Sequence[str]) -> tuple[list[int], list[int]]:
    """The sub-words of a text and the word each of them begins in, counted over words that have any.

    The text is handed over whole, with blanks between its words, so that a tokenizer to which a blank is
    part of a word meets what it was trained on. A blank belongs to the word behind it.
    """
    text = " ".join(words)
    encoded = tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, truncation=False, verbose=False
    )
    ends = np.cumsum([len(word) + 1 for word in words])
    written = np.array([place for place, letter in enumerate(text) if letter != " "] or [0])
    begins = np.array([begin for begin, _ in encoded["offset_mapping"]], dtype=np.int64)
    first = written[np.searchsorted(written, begins).clip(max=len(written) - 1)]
    word = np.searchsorted(ends, first, side="right")
    return list(encoded["input_ids"]), np.unique(word, return_inverse=True)[1].tolist()


class TokenisedSplit(IndexedSplit):
    """Examples as a tokenizer's sub-words: the same batches as from a vocabulary."""

    def __init__(
        self,
        examples: Sequence[Example],
        tokenizer: Any,
        labels: Sequence[str],
        *,
        frame: Frame,
        words: bool,
        marked: bool,
        longest: int,
    ) -> None:
        _check_pairs(examples)
        self.examples = examples
        cut = [pieces(tokenizer, example.tokens) for example in examples]
        self.queries = [np.array(pieces(tokenizer, e.query)[0], dtype=np.int64) for e in examples if e.query]
        self._check(cut, frame, longest)
        if marked:
            cut = [_with_marks(ids, units, frame) for ids, units in cut]
        self.tokens = [np.array(ids, dtype=np.int64) for ids, _ in cut]
        self.lengths = np.array([len(ids) for ids in self.tokens])
        self.labels = label_numbers(examples, labels)
        self.sentences = [np.array(units, dtype=np.int64) for _, units in cut] if words else None
        self.possible = None

    def _check(self, cut: list[tuple[list[int], list[int]]], frame: Frame, longest: int) -> None:
        for example, (ids, _) in zip(self.examples, cut, strict=True):
            if not ids:
                raise Refusal(
                    f"text {example.id!r}",
                    got="nothing that the tokenizer takes for text",
                    needs="at least one token",
                    way_out="Leave that text out.",
                )
        more = [len(query) for query in self.queries] or [0] * len(cut)
        sizes = [len(ids) + n + frame.marks for (ids, _), n in zip(cut, more, strict=True)]
        long = [n for n, size in enumerate(sizes) if size > longest]
        if long:
            raise Refusal(
                f"text {self.examples[long[0]].id!r} and {len(long) - 1} more",
                got=f"{sizes[long[0]]} places with the marks",
                needs=f"at most {longest}, which is what the model has positions for",
                way_out="Shorten such texts or leave them out; none is cut in silence.",
            )


def _check_pairs(examples: Sequence[Example]) -> None:
    with_query = sum(example.query is not None for example in examples)
    if with_query not in (0, len(examples)):
        raise Refusal(
            "texts to be read",
            got=f"{with_query} of {len(examples)} with a second text",
            needs="all of them or none",
            way_out="Read pairs and single texts apart.",
        )


def _with_marks(ids: list[int], units: list[int], frame: Frame) -> tuple[list[int], list[int]]:
    """Each mark of the first text a unit of its own, in its place."""
    before, behind = frame.before.ids, frame.closing.ids
    inside = [len(before) + unit for unit in units]
    after = range(inside[-1] + 1, inside[-1] + 1 + len(behind))
    return [*before, *ids, *behind], [*range(len(before)), *inside, *after]
