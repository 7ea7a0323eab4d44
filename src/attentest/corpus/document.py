"""A Document is what a reader finds in a publisher's file, before any preparation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from attentest.corpus.example import Split


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text as published. A text that comes as tokens is not tokenised again."""

    id: str
    text: str | tuple[str, ...]
    label: str
    split: Split | None = None  # None: the publisher does not say, preparation will
    query: str | tuple[str, ...] | None = None
    rationale: tuple[int, ...] | None = None  # positions among its tokens, before any is dropped
    sentences: tuple[int, ...] | None = None  # where each begins, in a text that comes as tokens
    candidates: tuple[str, ...] | None = None
