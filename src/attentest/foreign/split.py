"""Raw texts through a Hugging Face tokenizer, once: token ids, and the word that each token belongs to.

The tokenizer gets exactly the string that the user gave, and adds its own special tokens. A token belongs to
the word of its first character that is no blank: in byte-level BPE and SentencePiece a token begins with the
blank before its word. A token of blanks alone belongs to the word behind it, or else to the last word.
Nothing is tokenised again after this: whatever shortens a text removes token ids from the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Int

from attentest.corpus.example import UNLABELLED, Example
from attentest.corpus.raw_text import Span, query_text, text_and_spans
from attentest.foreign.text import Frame
from attentest.model.batch import AbstractSplit, Batch, marked_words
from attentest.model.seam import label_numbers
from attentest.refusal import Refusal

Numbers = Int[np.ndarray, " token"]


@final
@dataclass(frozen=True)
class EncodedText:
    """The token ids of an example without the marks, the unit of each token, and the unit of each word."""

    ids: list[int]
    query: list[int]
    units: list[int]
    words: list[int]  # the unit that holds each word, -1 where the tokenizer drops the word
    target: int | None = None  # the token that really follows, where one is asked about and the user has it


class AbstractInput(ABC):
    """How texts become a model's input: by themselves, or inside a prompt."""

    tokenizer: Any
    frames: Mapping[bool, Frame]  # of single texts, and of texts with a second one
    prompted: bool = False  # whether a prompt stands around each text
    asks_token: bool = False  # whether a token is asked about, one a text

    @abstractmethod
    def check(self, examples: Sequence[Example]) -> None:
        """Refuse texts that cannot be read together."""

    def check_marks(self, model: Any) -> None:
        """Refuse special tokens as units where they cannot be deleted like words."""
        if self.prompted or model.config.is_encoder_decoder:
            raise Refusal(
                f"special tokens of a {model.config.model_type} model as units",
                got="a prompt, or a model whose decoder cannot go without them",
                needs="special_tokens=False",
                way_out="What rests on them is then held as it is.",
            )

    @abstractmethod
    def encode(self, example: Example, *, words: bool) -> EncodedText:
        """A text, taken apart; units are words or single tokens."""

    @abstractmethod
    def places(self, example: Example) -> int:
        """How many places an example takes, with all that stands around it."""

    @abstractmethod
    def probe(self, batch: Batch) -> Batch:
        """Texts to try a model with, and what stands behind them."""


@final
class PlainInput(AbstractInput):
    """Texts, or pairs of texts, with the tokenizer's own special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.frames = {pair: Frame.of(tokenizer, pair=pair) for pair in (False, True)}

    def check(self, examples: Sequence[Example]) -> None:
        """All of them pairs, or none."""
        with_query = sum(example.query is not None for example in examples)
        if with_query not in (0, len(examples)):
            raise Refusal(
                "texts to be read",
                got=f"{with_query} of {len(examples)} with a second text",
                needs="all of them or none",
                way_out="Read pairs and single texts apart.",
            )

    def encode(self, example: Example, *, words: bool) -> EncodedText:
        """By the frame of single texts or of pairs."""
        return encode(self.tokenizer, example, self.frames[example.query is not None], words=words)

    def places(self, example: Example) -> int:
        """Its tokens, those of its second text, and the marks."""
        query = query_text(example)
        texts = [text_and_spans(example)[0], *([] if query is None else [query])]
        return len(self.tokenizer(*texts, truncation=False, verbose=False)["input_ids"])

    def probe(self, batch: Batch) -> Batch:
        """As they are."""
        return batch


def encode(tokenizer: Any, example: Example, frame: Frame, *, words: bool) -> EncodedText:
    """`tokenizer(text)` or `tokenizer(text, query)`, taken apart; units are words or single tokens."""
    text, spans = text_and_spans(example)
    texts = [text, query_text(example)] if frame.pair else [text]
    encoded = tokenizer(*texts, truncation=False, verbose=False, return_offsets_mapping=tokenizer.is_fast)
    ids, begin = list(encoded["input_ids"]), len(frame.before.ids)
    end = begin + _first_length(tokenizer, encoded, frame, text)
    query = ids[end + len(frame.closing.ids) : len(ids) - len(frame.after.ids)] if frame.pair else []
    _need_frame(example, frame, ids, ids[begin:end], query)
    if not words:
        return EncodedText(ids[begin:end], query, list(range(end - begin)), [])
    spans = spans or [(0, len(text))]  # blanks alone, which some tokenizers take for text, are one word
    units, of_words = units_of_offsets(text, spans, encoded["offset_mapping"][begin:end])
    return EncodedText(ids[begin:end], query, units, of_words)


def units_of_offsets(
    text: str, spans: Sequence[Span], offsets: Sequence[Span]
) -> tuple[list[int], list[int]]:
    """The unit of each token and of each word: units are the words that a token begins in, counted from 0.

    A word in which no token begins is part of the unit whose token runs over it, as a quotation mark after an
    ellipsis may be; one that no token covers has no unit.
    """
    first = first_written(text, offsets)
    word = np.searchsorted([end for _, end in spans], first, side="right").clip(max=max(0, len(spans) - 1))
    of_units, units = np.unique(word, return_inverse=True)
    of_words = np.full(len(spans), -1)
    starts = [start for start, _ in spans]
    for unit, reach in zip(units, np.searchsorted(starts, np.array(offsets).reshape(-1, 2)), strict=True):
        of_words[reach[0] : reach[1]] = unit  # the words that begin within the token
    of_words[of_units] = np.arange(len(of_units))
    return units.tolist(), of_words.tolist()


def first_written(text: str, offsets: Sequence[Span]) -> Numbers:
    """Where the first character of each token is that is no blank, or else the last such one of the text."""
    written = np.array([place for place, character in enumerate(text) if not character.isspace()] or [0])
    begins = np.array([begin for begin, _ in offsets], dtype=np.int64)
    return written[np.searchsorted(written, begins).clip(max=len(written) - 1)]


def _written(example: Example, encoded: EncodedText) -> list[str]:
    """The words of each unit, as the text has them."""
    text, spans = text_and_spans(example)
    written = [""] * (max(encoded.units) + 1)
    begins: dict[int, int] = {}
    for unit, (start, end) in zip(encoded.words, spans or [(0, len(text))], strict=True):
        if unit >= 0:
            written[unit] = text[begins.setdefault(unit, start) : end]
    return written


def _first_length(tokenizer: Any, encoded: Any, frame: Frame, text: str) -> int:
    """How many tokens the first text has."""
    if not frame.pair:
        return len(encoded["input_ids"]) - frame.marks
    if tokenizer.is_fast:
        return int(encoded.sequence_ids(0).count(0))
    return len(tokenizer(text, add_special_tokens=False, truncation=False, verbose=False)["input_ids"])


def _need_frame(example: Example, frame: Frame, ids: list[int], own: list[int], query: list[int]) -> None:
    """The marks that are put around the ids later must be the tokenizer's own around this text."""
    laid = [*frame.before.ids, *own, *frame.between.ids, *query, *frame.after.ids]
    if ids != laid:
        raise Refusal(
            f"the tokenizer's special tokens around text {example.id!r}",
            got="others than around any other text",
            needs="the same special tokens before and after every text",
            way_out="Write an adapter for such a model.",
        )


@final
class TokenisedSplit(AbstractSplit):
    """Examples as the token ids of a Hugging Face tokenizer: the same batches as from a vocabulary."""

    def __init__(
        self,
        examples: Sequence[Example],
        written: AbstractInput,
        labels: Sequence[str],
        *,
        frame: Frame,
        words: bool,
        marked: bool,
        longest: int,
    ) -> None:
        written.check(examples)
        if written.asks_token:  # no class of an example is right or wrong
            examples = [replace(example, label=UNLABELLED) for example in examples]
        self.examples = examples
        self.encoded = [written.encode(example, words=words) for example in examples]
        self.queries = [np.array(each.query, dtype=np.int64) for each in self.encoded] if frame.pair else []
        self._check(frame, longest)
        cut = [(each.ids, each.units) for each in self.encoded]
        if marked:
            cut = [_with_marks(ids, units, frame) for ids, units in cut]
        self.tokens: list[Numbers] = [np.array(ids, dtype=np.int64) for ids, _ in cut]
        self.lengths = np.array([len(ids) for ids in self.tokens])
        self.labels = label_numbers(examples, labels)
        self.sentences = [np.array(units, dtype=np.int64) for _, units in cut] if words else None
        self.by_word = words and not marked
        self.around = (frame.before.ids, frame.closing.ids) if marked else ((), ())
        self.tokenizer = written.tokenizer

    def rationale(self, row: int) -> Bool[np.ndarray, " unit"]:
        """Which units of a text hold a word that somebody marked; empty where marks count other words."""
        if not self.by_word:
            return marked_words(self.examples[row])
        of_words = np.array(self.encoded[row].words)
        if len(of_words) != len(self.examples[row].tokens):
            return np.zeros(0, dtype=bool)
        marked = of_words[list(self.examples[row].rationale or ())]
        return np.isin(np.arange(max(self.encoded[row].units) + 1), marked)

    def unit_texts(self, row: int) -> tuple[str, ...]:
        """The words of a text as they are written in it, or its sub-words; marks by their names."""
        each, named = self.encoded[row], self.tokenizer.convert_ids_to_tokens
        own = named(each.ids) if self.sentences is None else _written(self.examples[row], each)
        before, behind = (named(list(marks)) for marks in self.around)
        return (*before, *own, *behind)

    def _check(self, frame: Frame, longest: int) -> None:
        for example, each in zip(self.examples, self.encoded, strict=True):
            if not each.ids:
                raise Refusal(
                    f"text {example.id!r}",
                    got="nothing that the tokenizer takes for text",
                    needs="at least one token",
                    way_out="Leave that text out.",
                )
        sizes = [len(each.ids) + len(each.query) + frame.marks for each in self.encoded]
        long = [n for n, size in enumerate(sizes) if size > longest]
        if long:
            raise Refusal(
                f"text {self.examples[long[0]].id!r} and {len(long) - 1} more",
                got=f"{sizes[long[0]]} places with the marks",
                needs=f"at most {longest}, which is what the model has positions for",
                way_out="None is cut in silence: say too_long='truncate' or 'skip', or shorten such texts.",
            )


def _with_marks(ids: list[int], units: list[int], frame: Frame) -> tuple[list[int], list[int]]:
    """Each mark of the first text a unit of its own, in its place."""
    before, behind = frame.before.ids, frame.closing.ids
    inside = [len(before) + unit for unit in units]
    after = range(max(inside) + 1, max(inside) + 1 + len(behind))
    return [*before, *ids, *behind], [*range(len(before)), *inside, *after]
