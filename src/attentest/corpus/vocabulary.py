"""A Vocabulary numbers the words of a training split; four numbers are reserved."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from attentest.corpus.example import Example
from attentest.refusal import Refusal

PAD, UNK, START, END = range(4)
RESERVED = ("<pad>", "<unk>", "<start>", "<end>")


@final
@dataclass(frozen=True)
class Vocabulary:
    """Words by number. Reserved numbers first, then words by document frequency, ties by spelling."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[:4] != RESERVED or len(set(self.words)) != len(self.words):
            raise Refusal(
                "vocabulary",
                got=f"{len(self.words)} words that begin {list(self.words[:4])}",
                needs=f"distinct words that begin {list(RESERVED)}",
                way_out="The file was not written by attentest, or was changed since.",
            )

    @classmethod
    def build(cls, examples: Iterable[Example], min_df: int = 1) -> Vocabulary:
        """The words that occur in at least `min_df` training texts (queries count as part of theirs)."""
        frequency: Counter[str] = Counter()
        for example in examples:
            frequency.update({*example.tokens, *(example.query or ())})
        # A corpus may contain a token spelled like a reserved word; it is text, so it becomes <unk>.
        kept = [w for w, n in frequency.items() if n >= min_df and w not in RESERVED]
        return cls((*RESERVED, *sorted(kept, key=lambda word: (-frequency[word], word))))

    @cached_property
    def index(self) -> dict[str, int]:
        """Word -> number; reserved spellings are left out, so text can never name padding or a marker."""
        return {word: number for number, word in enumerate(self.words) if number >= len(RESERVED)}

    @cached_property
    def lower_cased(self) -> bool:
        """Whether no word has a capital letter, as after a preparation that lower-cases."""
        return all(word == word.lower() for word in self.words)

    def numbers(self, tokens: Sequence[str]) -> np.ndarray:
        """The numbers of some tokens; an unknown word is <unk>."""
        index = self.index
        return np.fromiter((index.get(token, UNK) for token in tokens), np.int64, len(tokens))

    def __len__(self) -> int:
        return len(self.words)

    def to_json(self) -> str:
        """One JSON list, so that the file can be read by anything."""
        return json.dumps(list(self.words), ensure_ascii=False, indent=0)

    @classmethod
    def from_json(cls, text: str) -> Vocabulary:
        """The inverse of `to_json`; anything else is refused."""
        try:
            words = json.loads(text)
            if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
                raise TypeError("not a list of words")
        except (ValueError, TypeError) as error:
            raise Refusal(
                "vocabulary file",
                got=f"something unreadable ({error})",
                needs="a JSON list of words",
                way_out="Write the model folder again.",
            ) from error
        return cls(tuple(words))
