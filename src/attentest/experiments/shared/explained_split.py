"""A split as its classifier answers it, and what each explainer says of every word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.game.messages import Messages, counted, places
from attentest.evidence.importances.gradient import gradients
from attentest.model.batch import AbstractSplit, buckets
from attentest.model.networks.decoder import distribution
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import Model

IMPORTANCES = ("gradient", "erasure", "attention")


@final
@dataclass(frozen=True, eq=False)
class ExplainedSplit:
    """Texts lie one behind the other, a number a word: gradient x input, leave-one-out TVD, attention."""

    split: AbstractSplit
    answers: Int[np.ndarray, " text"]
    defined: Bool[np.ndarray, " text"]  # whether the classifier's output is a number
    importances: Mapping[str, Float[np.ndarray, " token"]]

    @classmethod
    def of(cls, model: Model, split: AbstractSplit) -> ExplainedSplit:
        """All of them, from one reading of each text."""
        answers = np.zeros(len(split), dtype=np.int64)
        defined = np.zeros(len(split), dtype=bool)
        importances = {name: np.empty(split.lengths.sum()) for name in IMPORTANCES}
        for rows in buckets(split.lengths, split.at_once or TEXTS, tokens=TOKENS):
            found = gradients(model, split.batch(rows).to(model.device))
            reading = found.reading
            output = distribution(model.decide(reading)).detach()
            answers[rows] = _numpy(output.argmax(-1))
            defined[rows] = _numpy(output.isfinite().all(-1))
            at = places(split.lengths, rows)
            loo = leave_one_out(model, reading).change
            for name, values in zip(IMPORTANCES, (found.times_input, loo, reading.weights), strict=True):
                importances[name][at] = _numpy(values[reading.mask])
        return cls(split, answers, defined, importances)

    @property
    def lengths(self) -> Int[np.ndarray, " text"]:
        """How many words each text has."""
        return self.split.lengths

    @cached_property
    def words(self) -> Int[np.ndarray, " token"]:
        """The number of every word."""
        return np.concatenate(self.split.tokens)

    @cached_property
    def attended(self) -> Bool[np.ndarray, " token"]:
        """The words of positive weight: no other is ever sent in the name of attention."""
        return self.importances["attention"] > 0

    @cached_property
    def support(self) -> Int[np.ndarray, " text"]:
        """How many of them each text has."""
        return counted(self.attended, self.lengths)

    def messages(self, chosen: Bool[np.ndarray, "token layperson"], vocabulary: int) -> Messages:
        """The chosen words; where texts have a query it is known, in words of their own.

        The query is what is asked, not what is explained: no explainer chooses from it, and a layperson who
        had not heard it would be asked a question without the question. What it tells alone is what silence
        scores. The same word in text and query are two words to a linear model, or it could not tell them
        apart.
        """
        asked = self.split.queries or [np.empty(0, dtype=np.int64)] * len(self.split)
        return Messages.of(self.words, self.lengths, chosen, [query + vocabulary for query in asked])


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
