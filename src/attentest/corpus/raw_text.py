"""The string that a model with its own tokenizer reads, and where each word of an example is in it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from attentest.corpus.example import Example
from attentest.corpus.words import word_spans

Span = tuple[int, int]  # (start, end) in the raw string


def text_and_spans(example: Example) -> tuple[str, list[Span]]:
    """The raw string and the span of every word; tokens without a raw string are joined with blanks.

    The words are the example's own tokens where they are the string without its blanks, in any case. Where a
    preparation dropped or rewrote some, they are those that our tokeniser finds in the string.
    """
    if example.text is not None:
        return example.text, _spans_of_tokens(example.text, example.tokens) or word_spans(example.text)
    ends = list(accumulate(len(token) + 1 for token in example.tokens))
    spans = [(end - 1 - len(token), end - 1) for token, end in zip(example.tokens, ends, strict=True)]
    return " ".join(example.tokens), spans


def query_text(example: Example) -> str | None:
    """The raw string of the second text, or None where there is no second text."""
    if example.query is None:
        return None
    return " ".join(example.query) if example.query_text is None else example.query_text


def _spans_of_tokens(text: str, tokens: Sequence[str]) -> list[Span] | None:
    """The spans of tokens that lost nothing of the text but its blanks; None where they lost more."""
    places = [place for place, character in enumerate(text) if not character.isspace()]
    joined = "".join(tokens)
    written = "".join(text.split())
    if not all(tokens) or len(joined) != len(places) or joined.lower() != written.lower():
        return None
    ends = accumulate(map(len, tokens))
    return [(places[end - len(token)], places[end - 1] + 1) for token, end in zip(tokens, ends, strict=True)]
