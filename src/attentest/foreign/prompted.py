"""Texts inside a prompt, as token ids: what stands before them, their words, what follows, and labels.

The whole prompt is tokenised at once, exactly as the model would get it. A token belongs to the text if its
first character that is no blank does. What stands behind a text is its batch's second text: it is read, and
stays as it is. The tokenizer's own special tokens are kept before a prompt and left out behind it, where the
next token is to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, final

import numpy as np
import torch

from attentest.corpus.example import Example
from attentest.corpus.raw_text import Span, text_and_spans
from attentest.foreign.prompt import EXAMPLE, QUERY, Prompt
from attentest.foreign.split import AbstractInput, EncodedText, first_written, units_of_offsets
from attentest.foreign.text import PROBE, Frame, Part
from attentest.model.batch import Batch
from attentest.refusal import Refusal


@final
class PromptedInput(AbstractInput):
    """A prompt and a tokenizer: how a text stands in the prompt, and with which tokens labels begin."""

    prompted = True

    def __init__(self, tokenizer: Any, prompt: Prompt) -> None:
        if not tokenizer.is_fast:
            raise Refusal(
                f"the tokenizer {type(tokenizer).__name__}",
                got="one without offsets, which cannot say where the text stands in a prompt",
                needs="a fast tokenizer",
                way_out="Give the fast tokenizer of this family.",
            )
        self.tokenizer, self.prompt = tokenizer, prompt
        second = (PROBE,) if QUERY in prompt.template else None
        self.probed = Example(id="probe", tokens=(PROBE,), label="", query=second)
        # A blank before the text is joined with some words and with others not: it is the word's.
        alone, whole = self._ids(prompt.before.rstrip(" "))[0], self._ids(self._written(self.probed))[0]
        shared = next((n for n, pair in enumerate(zip(alone, whole)) if pair[0] != pair[1]), len(alone))  # noqa: B905
        before = tuple(alone[:shared])
        padding = tokenizer.pad_token_id
        self.asks_token = prompt.asks_token
        frame = Frame(
            before=Part(before, (0,) * len(before)),
            between=Part(),
            after=Part(),
            of_texts=(0, 0),
            padding=0 if padding is None else padding,
            left=False,  # positions are counted from the first place, and nobody looks behind himself
            pair=True,
            asks_token=prompt.asks_token,
        )
        self.frames = {False: frame, True: frame}

    def check(self, examples: Sequence[Example]) -> None:
        """Second texts where the prompt has a place for them."""
        self.prompt.check(examples)

    def probe(self, batch: Batch) -> Batch:
        """Behind every text the end of the prompt, and its own first token as the one asked about."""
        ids = torch.tensor(self.encode(self.probed, words=False).query, dtype=torch.long)
        query = ids.to(batch.tokens.device).expand(len(batch), -1)
        if self.asks_token:
            query = torch.cat([query, batch.tokens[:, :1]], dim=1)
        return replace(batch, query=query, query_mask=torch.ones_like(query, dtype=torch.bool))

    def encode(self, example: Example, *, words: bool) -> EncodedText:
        """A text in its prompt, taken apart."""
        text, spans = text_and_spans(example)
        begin = len(self.prompt.before)
        end, close = begin + len(text), begin + len(text) + len(self.prompt.after(example))
        follows = self.prompt.follows(example)
        whole = self._written(example) + (follows or "")
        ids, offsets = self._ids(whole)
        first = len(self.frames[True].before.ids)
        if tuple(ids[:first]) != self.frames[True].before.ids:
            raise Refusal(
                f"text {example.id!r} in its prompt",
                got="a tokenizer that joins the beginning of the text with the prompt before it",
                needs="the same tokens before every text",
                way_out="Put a blank or a line break before {text}.",
            )
        places = np.maximum(first_written(whole, offsets), [start for start, _ in offsets])
        last, done = (first + int((places[first:] < border).sum()) for border in (end, close))
        target = None if follows is None else self._target(example, ids, offsets, done, close)
        own = ids[first:last]
        if not words or not own:
            return EncodedText(own, ids[last:done], list(range(len(own))), [], target)
        inside = [(max(0, a - begin), min(len(text), max(0, b - begin))) for a, b in offsets[first:last]]
        units, of_words = units_of_offsets(text, spans or [(0, len(text))], inside)
        return EncodedText(own, ids[last:done], units, of_words, target)

    def places(self, example: Example) -> int:
        """How many places a text takes, with its prompt."""
        return len(self._ids(self._written(example))[0])

    def label_tokens(self, labels: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The first token of each label behind the prompt, and which labels have more than that one."""
        written = self._written(self.probed)
        before = self._ids(written)[0]
        found = [self._ids(written + label)[0] for label in labels]
        first, longer = [], []
        for label, ids in zip(labels, found, strict=True):
            own = ids[len(before) :]
            if ids[: len(before)] != before:
                raise _label_refusal(label, "letters that the tokenizer joins with the end of the prompt")
            if not own or own[0] == self.tokenizer.unk_token_id:
                raise _label_refusal(label, "no token: the tokenizer does not know the word")
            first.append(own[0])
            longer += [label.strip()] if len(own) > 1 else []
        self._need_different(labels, first, longer)
        return tuple(first), tuple(longer)

    def _need_different(self, labels: Sequence[str], first: list[int], longer: Sequence[str]) -> None:
        for number, token in enumerate(first):
            other = first.index(token)
            if other < number:
                piece = self.tokenizer.decode([token])
                raise Refusal(
                    f"labels {labels[other]!r} and {labels[number]!r}",
                    got=f"the same first token ({piece!r})",
                    needs="a first token of its own for each. The tokens behind it would be decided at other"
                    " positions, by other rows of attention than the one that is asked about",
                    way_out=f"Choose labels that begin differently, as in {EXAMPLE}.",
                )

    def _written(self, example: Example) -> str:
        return self.prompt.before + text_and_spans(example)[0] + self.prompt.after(example)

    def _ids(self, text: str) -> tuple[list[int], list[Span]]:
        """The ids and offsets of a text, without special tokens behind it."""
        encoded = self.tokenizer(text, truncation=False, verbose=False, return_offsets_mapping=True)
        ids, whose = list(encoded["input_ids"]), list(encoded.sequence_ids(0))
        written = [place for place, text_number in enumerate(whose) if text_number is not None]
        marks = next((place for place, text_number in enumerate(whose) if text_number is not None), len(ids))
        end = written[-1] + 1 if written else _leading(self.tokenizer, marks)
        return ids[:end], encoded["offset_mapping"][:end]

    def _target(
        self, example: Example, ids: list[int], offsets: Sequence[Span], done: int, close: int
    ) -> int:
        """The first token behind the prompt, which no token before may run into."""
        if done == len(ids) or (done and offsets[done - 1][1] > close):
            raise Refusal(
                f"what follows text {example.id!r}",
                got="no token that begins where the text ends",
                needs="a token of its own",
                way_out="Let the second text begin with the blank before its first word.",
            )
        return ids[done]


def _leading(tokenizer: Any, marks: int) -> int:
    """Of a text of nothing, the special tokens that stand before texts."""
    whose = tokenizer(PROBE).sequence_ids(0)
    return min(marks, next(place for place, text_number in enumerate(whose) if text_number is not None))


def _label_refusal(label: str, got: str) -> Refusal:
    return Refusal(
        f"label {label!r} of a prompt",
        got=got,
        needs="a word that may come next, written as it stands behind the prompt",
        way_out=f"Begin it with a blank, and end the prompt without one, as in {EXAMPLE}.",
    )
