"""Models whose truth is known, as rules in plain numpy: what each word says, how it is weighed, what follows.

Every word w has a value v_w, signed evidence, and a mark m_w, how much of it there is. Attention is a softmax
of scores; unit t says y_t; the evidence is x = gain * sum_t a_t y_t; and with anchors c_k from -1 to 1 the
logit of class k is strength * (2 c_k x - c_k^2). Values, scores and what units say are chosen independently
(`constructed.CONSTRUCTIONS`), so that attention may point at the words that matter or not, and the output
may depend on it or not. The network of the same construction (`constructed_network`) is written apart from
this file, and tests hold the two against each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Float

from attentest.corpus.generators.review_lexicon import GRADES
from attentest.corpus.vocabulary import RESERVED

PerWord = Float[np.ndarray, " word"]
PerToken = Float[np.ndarray, " token"]

STREAM = 22_000  # tells our random numbers from those of other generators with the same seed
DRAWN = 4096  # random numbers that places, texts and pairs of words are given
PERIOD = 20  # words of one wave of smooth attention
PHASES = 97
COUNTED = 3.0  # a sum of evidence counts so many words as one
STRONG = 3  # the lowest grade of a keyword
LOUDEST = 3.0
UNIQUE = 0.02  # by which words of one grade differ, so that one of them is the strongest


@final
@dataclass(frozen=True, eq=False)
class Lexicon:
    """What a rule knows of each word of a vocabulary; everything drawn comes from the seed."""

    words: Sequence[str]
    values_by: str
    seed: int

    @cached_property
    def _rng(self) -> dict[str, np.ndarray]:
        rng, size = np.random.default_rng([self.seed, STREAM]), len(self.words)
        return {
            "chance": rng.standard_normal(size),
            "loud": rng.uniform(0.0, LOUDEST, size),
            "side": rng.choice((-1.0, 1.0), size),
            "size": rng.uniform(0.05, 1.0, size),
            "table": rng.standard_normal(DRAWN),
        }

    @cached_property
    def grades(self) -> PerWord:
        """From -4 to 4 for sentiment words, 0 for all others."""
        return np.array([GRADES.get(word.lower(), 0) for word in self.words], dtype=np.float64)

    @cached_property
    def values(self) -> PerWord:
        """The signed evidence of each word."""
        sign = np.sign(self.grades)
        of = {
            "graded": sign * (np.abs(self.grades) / 4 + UNIQUE * (self._rng["size"] - 1)),
            "keyword": sign * (np.abs(self.grades) >= STRONG),
            "alike": sign,
            "loud": np.where(sign != 0, sign, self._rng["side"]),
            "every": self._rng["side"] * self._rng["size"],
        }[self.values_by]
        return np.where(self.reserved, 0.0, of)

    @cached_property
    def marks(self) -> PerWord:
        """How much evidence there is; where every word is loud, which words are to be selected."""
        return (self.grades != 0).astype(np.float64) if self.values_by == "loud" else np.abs(self.values)

    @cached_property
    def chance(self) -> PerWord:
        """A number that has nothing to do with the evidence."""
        return np.where(self.reserved, 0.0, self._rng["chance"])

    @cached_property
    def loud(self) -> PerWord:
        """The length of a part of the word's vector that no decision looks at."""
        return np.where(self.reserved, 0.0, self._rng["loud"])

    @cached_property
    def table(self) -> np.ndarray:
        """Random numbers for places, texts and pairs of words."""
        return self._rng["table"]

    @cached_property
    def reserved(self) -> np.ndarray:
        """Padding, unknown words and markers: they say nothing."""
        return np.arange(len(self.words)) < len(RESERVED)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Rule:
    """One construction over one vocabulary; a text is the numbers of its words."""

    lexicon: Lexicon
    scores_by: str
    states_by: str
    focus: float
    gain: float
    classes: int
    strength: float = 1.0
    temperature: float = 1.0
    noise: float = 0.0

    def weights(self, text: np.ndarray) -> PerToken:
        """The attention of each word."""
        scores = self.scores(text)
        grown = np.exp(scores - scores.max())
        return grown / grown.sum()

    def scores(self, text: np.ndarray) -> PerToken:
        """What the softmax is of."""
        words, place = self.lexicon, np.arange(len(text))
        marks = words.marks[text]
        plain = {
            "right": lambda: marks,
            "strongest": lambda: (place == marks.argmax()).astype(np.float64),
            "least": lambda: -marks,
            "word": lambda: words.chance[text],
            "norm": lambda: np.hypot(words.values[text], words.loud[text]),
            "loud": lambda: words.loud[text],
            "position": lambda: words.table[place % DRAWN],
            "text": lambda: words.table[(31 * text.sum() + 17 * place) % DRAWN],
            "smooth": lambda: np.sin(2 * math.pi * (place / PERIOD + text.sum() % PHASES / PHASES)),
            "uniform": lambda: np.zeros(len(text)),
            "previous": lambda: _earlier(marks),
        }[self.scores_by]()
        pairs = words.table[(31 * _earlier(text).astype(np.int64) + text) % DRAWN]
        return (self.focus * plain + self.noise * pairs) / self.temperature

    def said(self, text: np.ndarray) -> PerToken:
        """What each unit says, so that the evidence is the sum of it by weight."""
        values = self.lexicon.values[text]
        if self.states_by == "own":
            return values
        if self.states_by == "previous":
            return _earlier(values)
        if self.states_by == "strongest":
            return np.full(len(text), values[self.lexicon.marks[text].argmax()])
        return np.full(len(text), values.sum() / COUNTED)  # sum, running, blind

    def contributions(self, text: np.ndarray) -> PerToken:
        """How much of the evidence comes from each word, whatever its sign."""
        sizes = self.gain * np.abs(self.lexicon.values[text])
        if self.states_by == "own":
            return sizes * self.weights(text)
        if self.states_by == "previous":
            return sizes * np.append(self.weights(text)[1:], 0.0)
        if self.states_by == "strongest":
            return np.where(np.arange(len(text)) == self.lexicon.marks[text].argmax(), sizes, 0.0)
        return sizes / COUNTED

    def output(self, text: np.ndarray, weights: PerToken | None = None) -> np.ndarray:
        """The probabilities of the classes under its own weights, or under any."""
        own = self.weights(text) if weights is None else weights
        evidence = self.gain * float(own @ self.said(text))
        anchors = np.linspace(-1.0, 1.0, self.classes)
        logits = self.strength * (2 * anchors * evidence - anchors**2)
        grown = np.exp(logits - logits.max())
        return grown / grown.sum()


def at_corners(output: Callable[[PerToken | None], np.ndarray], words: int) -> PerToken:
    """How far an output moves, in total variation, if all the weight goes to one unit; of each unit."""
    own = output(None)
    moved = [output(corner) for corner in np.eye(words)]
    return np.asarray(0.5 * np.abs(np.array(moved) - own).sum(1))


def _earlier(numbers: np.ndarray) -> np.ndarray:
    """What stands one place before; 0 before the first."""
    return np.concatenate([np.zeros(1), numbers[:-1]])
