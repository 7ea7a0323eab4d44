"""A Batch is some examples as padded tensors; an IndexedSplit makes batches without touching strings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attentest.corpus.example import UNLABELLED, Example
from attentest.corpus.vocabulary import PAD, Vocabulary


@final
@dataclass(frozen=True, kw_only=True)
class Batch:
    """What a model reads. Markers are not here: the model frames the text itself, so units are tokens."""

    ids: tuple[str, ...]
    tokens: Int[Tensor, "batch token"]
    mask: Bool[Tensor, "batch token"]
    labels: Int[Tensor, " batch"]
    query: Int[Tensor, "batch word"] | None = None
    query_mask: Bool[Tensor, "batch word"] | None = None
    answers: Bool[Tensor, "batch class"] | None = None  # False where an answer is impossible
    sentences: Int[Tensor, "batch token"] | None = None  # the sentence each token belongs to, from 0

    def __len__(self) -> int:
        return len(self.ids)

    def to(self, device: torch.device | str) -> Batch:
        """The same batch on another device."""
        held = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: dict[str, Any] = {k: v.to(device) for k, v in held.items() if isinstance(v, Tensor)}
        return replace(self, **moved)


def padded(rows: Sequence[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Rows of numbers side by side, with where there are any."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max())[None, :] < lengths[:, None]
    filled = np.full(mask.shape, PAD, dtype=rows[0].dtype)
    filled[mask] = np.concatenate(rows)
    return torch.from_numpy(filled), torch.from_numpy(mask)


def sentence_numbers(example: Example) -> np.ndarray:
    """The number of the sentence each token belongs to; a text without breaks is one sentence."""
    begins = np.zeros(len(example.tokens), dtype=np.int64)
    begins[list(example.sentences or ())] = 1
    begins[0] = 0  # whatever comes before the first break belongs to the first sentence
    return begins.cumsum()


class AbstractSplit(ABC):
    """Examples with their words numbered once, by whatever numbers them."""

    examples: Sequence[Example]
    tokens: list[Int[np.ndarray, " token"]]
    queries: list[Int[np.ndarray, " word"]]
    lengths: Int[np.ndarray, " text"]
    labels: Int[np.ndarray, " text"]
    sentences: list[Int[np.ndarray, " token"]] | None = None
    possible: Bool[np.ndarray, "text label"] | None = None
    at_once: int | None = None  # texts that are read together, at most; None: as many as is usual
    alike: int | None = None  # as many at most where all that is done to a text pads it to the longest
    held: dict[Any, Any] | None = None  # readings that several will ask for, where there is room for them

    def __len__(self) -> int:
        return len(self.examples)

    @abstractmethod
    def rationale(self, row: int) -> Bool[np.ndarray, " unit"]:
        """Which units of a text somebody marked."""

    @abstractmethod
    def unit_texts(self, row: int) -> tuple[str, ...]:
        """What is written at each unit of a text; of a model that gathers sentences, at each word."""

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """These rows, padded to the longest of them."""
        tokens, mask = padded([self.tokens[row] for row in rows])
        query, query_mask = padded([self.queries[row] for row in rows]) if self.queries else (None, None)
        return Batch(
            ids=tuple(self.examples[row].id for row in rows),
            tokens=tokens,
            mask=mask,
            labels=torch.from_numpy(self.labels[rows]),
            query=query,
            query_mask=query_mask,
            answers=None if self.possible is None else torch.from_numpy(self.possible[rows]),
            sentences=None if self.sentences is None else padded([self.sentences[row] for row in rows])[0],
        )


def marked_words(example: Example) -> Bool[np.ndarray, " word"]:
    """Which words of a text somebody marked."""
    return np.isin(np.arange(len(example.tokens)), example.rationale or ())


@final
class IndexedSplit(AbstractSplit):
    """Examples numbered by a vocabulary."""

    def __init__(self, examples: Sequence[Example], vocabulary: Vocabulary, labels: Sequence[str]) -> None:
        self.examples = examples
        self.tokens = [vocabulary.numbers(example.tokens) for example in examples]
        self.queries = [vocabulary.numbers(e.query) for e in examples if e.query is not None]
        self.lengths = np.array([len(tokens) for tokens in self.tokens])
        number = {UNLABELLED: -1, **{label: n for n, label in enumerate(labels)}}
        self.labels = np.array([number[example.label] for example in examples])
        if any(example.sentences is not None for example in examples):
            self.sentences = [sentence_numbers(example) for example in examples]
        if any(example.candidates is not None for example in examples):
            self.possible = np.array(
                [[e.candidates is None or name in e.candidates for name in labels] for e in examples]
            )

    def rationale(self, row: int) -> Bool[np.ndarray, " unit"]:
        """Which words of a text somebody marked."""
        return marked_words(self.examples[row])

    def unit_texts(self, row: int) -> tuple[str, ...]:
        """The words of a text."""
        return tuple(self.examples[row].tokens)


def buckets(
    lengths: np.ndarray, size: int, *, tokens: int | None = None, rng: np.random.Generator | None = None
) -> list[np.ndarray]:
    """Rows in groups of alike length, so that little is padding.

    With an `rng`, lengths are blurred by up to 10 % before sorting and the groups shuffled, as in the
    published protocol: batches differ between epochs and no length is always last. With `tokens`, a group
    of long texts is smaller, so that no padded group exceeds that many tokens.
    """
    order = lengths.astype(float)
    if rng is not None:
        order = order * rng.uniform(0.9, 1.1, len(order))
    rows = np.argsort(order, kind="stable")
    groups, start = [], 0
    while start < len(rows):
        end = min(start + size, len(rows))
        if tokens is not None:
            while end - start > 1 and lengths[rows[start:end]].max() * (end - start) > tokens:
                end -= 1
        groups.append(rows[start:end])
        start = end
    if rng is not None:
        rng.shuffle(groups)
    return groups


def passes(lengths: np.ndarray, size: int, times: int, *, seed: list[int]) -> list[np.ndarray]:
    """Buckets of all rows, so many times over, each time drawn anew; the first time as for a single pass."""
    seeds = [seed, *([*seed, number] for number in range(1, times))]
    return [rows for each in seeds for rows in buckets(lengths, size, rng=np.random.default_rng(each))]
