"""What a constructed transformer computes, written in numpy: the truth that audits are compared with.

Every word has evidence (`values`) and a score that attention follows (`ranks`). The evidence of a text is

    used    sum over words of weight * value, with weight = softmax(rank / temperature)
    idle    the mean of the values, whatever the weights are

The layer norm of [CLS] and the tanh of the pooler change it by at most 0.1 percent and are part of the rule;
a causal language model has the layer norm of its last position and no pooler.
The class with anchor c in linspace(-1, 1, classes) has the logit strength * (2 * c * evidence - c * c).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from jaxtyping import Float

from attentest.refusal import Refusal, look_up

Mechanism = Literal["used", "idle"]
MECHANISMS: dict[str, Mechanism] = {
    "hf-used-pointer": "used",
    "hf-used-elsewhere": "used",
    "hf-idle-pointer": "idle",
    "hf-idle-elsewhere": "idle",
    "causal-used-pointer": "used",
    "causal-used-elsewhere": "used",
    "causal-idle-pointer": "idle",
    "causal-idle-elsewhere": "idle",
}
CAUSAL_NAMES = "causal-"  # how the names of causal language models begin
SIGNALS = ("rank", "value", "kind", "filler")  # each is two dimensions of a state: x and -x
WIDTH = 2 * len(SIGNALS)
LOUDEST = 0.1  # what the largest possible evidence adds to the state of [CLS], whose norm is sqrt(WIDTH)
PRESSED = 0.1  # the pooler's factor: its tanh stays in its linear part

PerWord = Float[np.ndarray, " word"]
Classes = Float[np.ndarray, " class"]


@final
@dataclass(frozen=True, kw_only=True)
class TransformerRule:
    """A rule and its numbers; `ranks` are those that attention follows, noise included."""

    mechanism: Mechanism
    classes: int
    values: Mapping[str, float]
    ranks: Mapping[str, float]
    strength: float
    temperature: float
    pooled: bool = True  # whether the evidence goes through a pooler before the classes are read from it

    @classmethod
    def of(
        cls,
        name: str,
        words: Sequence[str],
        labels: Sequence[str],
        *,
        values: Mapping[str, float],
        ranks: Mapping[str, float],
        strength: float,
        temperature: float,
        noise: float,
        seed: int,
    ) -> TransformerRule:
        """The rule of that name over these words.

        Words are lower-cased. A word without a value or a rank has 0. `noise` is the standard deviation of a
        normal number that is added to each word's rank, drawn once for each word from `seed`.
        """
        mechanism = look_up(name, MECHANISMS, "constructed transformer")
        vocabulary = sorted({word.lower() for word in words})
        _check(vocabulary, labels, values, ranks, strength, temperature, noise)
        drawn = np.random.default_rng(seed).normal(0.0, 1.0, len(vocabulary))
        return cls(
            mechanism=mechanism,
            classes=len(labels),
            values={word: float(values.get(word, 0.0)) for word in vocabulary},
            ranks={
                word: float(ranks.get(word, 0.0) + noise * draw)
                for word, draw in zip(vocabulary, drawn, strict=True)
            },
            strength=strength,
            temperature=temperature,
            pooled=not name.startswith(CAUSAL_NAMES),
        )

    @property
    def largest(self) -> float:
        """The largest absolute value of a word, or 1 where all are 0."""
        return max(map(abs, self.values.values()), default=0.0) or 1.0

    @property
    def anchors(self) -> Classes:
        """Where each class stands on the line of evidence."""
        return np.linspace(-1.0, 1.0, self.classes)

    def weights(self, tokens: Sequence[str]) -> PerWord:
        """Attention of the deciding position: the softmax over the words."""
        scores = _looked_up(self.ranks, tokens) / self.temperature
        shares = np.exp(scores - scores.max())
        return np.asarray(shares / shares.sum())

    def contributions(self, tokens: Sequence[str]) -> PerWord:
        """How much each word adds to the evidence, in absolute value."""
        return self._shares(tokens, None) * np.abs(_looked_up(self.values, tokens))

    def output(self, tokens: Sequence[str], weights: PerWord | None = None) -> Classes:
        """The probability of each class under the rule's own weights or any others over the words."""
        evidence = float(self._shares(tokens, weights) @ _looked_up(self.values, tokens))
        logits = self.strength * (2 * self.anchors * self._carried(evidence) - self.anchors**2)
        odds = np.exp(logits - logits.max())
        return np.asarray(odds / odds.sum())

    def _shares(self, tokens: Sequence[str], weights: PerWord | None) -> PerWord:
        """What the value of each word is multiplied by."""
        if self.mechanism == "idle":
            return np.full(len(tokens), 1 / len(tokens))
        return self.weights(tokens) if weights is None else weights

    def _carried(self, evidence: float) -> float:
        """The evidence after the layer norm of the deciding position and, if there is one, the pooler.

        Before the layer norm the squares of the state sum to WIDTH, and the evidence adds twice its own.
        """
        added = LOUDEST * evidence / self.largest
        normed = added / np.sqrt(1 + 2 * added**2 / WIDTH)
        carried = np.tanh(PRESSED * normed) / PRESSED if self.pooled else normed
        return float(carried * self.largest / LOUDEST)


def _looked_up(table: Mapping[str, float], tokens: Sequence[str]) -> PerWord:
    """The number of each token; a word that the model does not know has 0."""
    return np.array([table.get(token.lower(), 0.0) for token in tokens])


def _check(
    vocabulary: Sequence[str],
    labels: Sequence[str],
    values: Mapping[str, float],
    ranks: Mapping[str, float],
    strength: float,
    temperature: float,
    noise: float,
) -> None:
    """Refuse numbers that no such model can have."""
    strange = sorted((set(values) | set(ranks)) - set(vocabulary))
    got = None
    if strange:
        got = f"numbers for {', '.join(strange[:3])} ({len(strange)} in all)", "lower-case words of `words`"
    elif len(labels) < 2:
        got = f"{len(labels)} labels", "at least 2"
    elif not (strength > 0 and temperature > 0 and noise >= 0):
        got = (
            f"strength {strength}, temperature {temperature}, noise {noise}",
            "a strength and a temperature above 0, and a noise of 0 or more",
        )
    if got:
        raise Refusal(
            "a constructed transformer",
            got=got[0],
            needs=got[1],
            way_out="Change that argument; the others can stay.",
        )
