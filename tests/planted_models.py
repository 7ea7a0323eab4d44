"""Two adapters: in one, attention is the explanation; in the other it has nothing to do with it."""

import numpy as np
import torch
from torch import nn

from attentest.corpus.example import Example

LABELS = ("bad", "good")
STRENGTHS = 12  # words of each class, from idle to decisive
WORDS = [f"{label}{strength}" for label in LABELS for strength in range(STRENGTHS)]


class Planted:
    """A word has a strength and a side. It votes for its side by its strength, weighed by attention.

    With `honest`, attention grows with the strength; without, with a number that knows nothing of it.
    """

    def __init__(self, *, honest):
        strength = torch.arange(STRENGTHS) / (STRENGTHS - 1)
        strength = torch.cat([strength, strength])
        side = torch.tensor([-1.0, 1.0]).repeat_interleave(STRENGTHS)
        idle = torch.rand(len(WORDS), generator=torch.Generator().manual_seed(1))
        looks = 6 * strength if honest else idle
        self.embedding = nn.Embedding.from_pretrained(
            torch.stack([looks, 6 * strength * side], dim=1), freeze=False
        )

    def numbers(self, words):
        return [WORDS.index(word) for word in words]

    def attend(self, vectors, mask):
        return vectors[..., 1:], vectors[..., 0].masked_fill(~mask, float("-inf")).softmax(-1)

    def decide(self, states, weights):
        return (weights[..., None] * states).sum(1)

    def predict(self, tokens, mask):
        return self.decide(*self.attend(self.embedding(tokens), mask))


def planted_texts(count=60, *, rationales=True):
    """Idle and weak words of both sides, and one or two strong ones of the label's side, marked."""
    rng, examples = np.random.default_rng(0), []
    for number in range(count):
        label = LABELS[number % 2]
        weak = [f"{rng.choice(LABELS)}{rng.integers(0, STRENGTHS // 2)}" for _ in range(rng.integers(6, 12))]
        strong = [f"{label}{rng.integers(STRENGTHS - 3, STRENGTHS)}" for _ in range(rng.integers(1, 3))]
        words = rng.permutation([*weak, *strong]).tolist()
        marks = tuple(place for place, word in enumerate(words) if word in strong) if rationales else None
        examples.append(Example(id=f"t{number}", tokens=tuple(words), label=label, rationale=marks))
    return examples


def factory():
    """What `attentest audit module:factory` calls."""
    return Planted(honest=True)
