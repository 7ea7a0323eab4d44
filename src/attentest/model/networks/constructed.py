"""Constructions as networks of the grid: word vectors, an encoder, dot attention and an affine decoder.

A word's vector holds its value, its mark, its random number, its loudness and its own number; a state holds
the score, what the unit says (in two parts, which the decoder adds), and what no decision looks at.
"""

from __future__ import annotations

import math
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from attentest.model.constructions import WITHOUT_CONTEXT, Constructed
from attentest.model.networks.constructed_rule import COUNTED, DRAWN, PERIOD, PHASES, Rule
from attentest.model.networks.encoders import (
    AbstractTextEncoder,
    Encoded,
    Places,
    Present,
    Rows,
    TokenWise,
    mean_over,
)

VALUE, MARK, CHANCE, LOUD, NUMBER = range(5)
WIDTH = 5  # of a word's vector
NUMBERS = 1 << 16  # a word's number is held as a share of it
STATE = 4  # score, said, said as well, unread

Vectors = Float[Tensor, "*place emb"]
States = Float[Tensor, "*place hidden"]


def encoder_for(written: str) -> TokenWise | TextStates:
    """The encoder of a construction: without context where the rule needs none, so that fast roads apply."""
    constructed = Constructed.parse(written)
    if constructed.kind == WITHOUT_CONTEXT:
        return TokenWise(WordStates(constructed), STATE)
    return TextStates(constructed)


@final
class WordStates(nn.Module):
    """States that depend on their own word alone."""

    def __init__(self, constructed: Constructed) -> None:
        super().__init__()
        self.by, self.factor = constructed.of.scores, constructed.of.focus / constructed.knobs.temperature

    def forward(self, vectors: Vectors) -> States:
        """Of every vector its state."""
        scores = {
            "right": lambda: vectors[..., MARK],
            "least": lambda: -vectors[..., MARK],
            "word": lambda: vectors[..., CHANCE],
            "loud": lambda: vectors[..., LOUD],
            "norm": lambda: _length(vectors),
            "uniform": lambda: torch.zeros_like(vectors[..., VALUE]),
        }[self.by]()
        said, silent = vectors[..., VALUE], torch.zeros_like(vectors[..., VALUE])
        return torch.stack([self.factor * scores, said, silent, vectors[..., LOUD]], dim=-1)


@final
class TextStates(AbstractTextEncoder):
    """States that depend on the whole text: on places, on neighbours, on sums."""

    table: Tensor

    def __init__(self, constructed: Constructed) -> None:
        super().__init__()
        self.constructed, self.width = constructed, STATE
        self.register_buffer("table", torch.zeros(DRAWN))

    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """The scores, and what each unit says."""
        vectors = functional.embedding(places, rows) * present[..., None]
        of, knobs = self.constructed.of, self.constructed.knobs
        numbers = (vectors[..., NUMBER].detach() * NUMBERS).round().long()
        scores = of.focus * self._scores(vectors, numbers, present)
        if knobs.noise:
            scores = scores + knobs.noise * self.table[(31 * _earlier(numbers) + numbers) % DRAWN]
        said, more = self._said(vectors)
        unread = vectors[..., LOUD] + vectors[..., CHANCE] * (of.states == "blind")
        hidden = torch.stack([scores / knobs.temperature, said, more, unread], dim=-1)
        return Encoded(hidden, mean_over(hidden, present))

    def _scores(self, vectors: Vectors, numbers: Tensor, present: Bool[Tensor, "text place"]) -> Tensor:
        place = torch.arange(numbers.shape[1], device=numbers.device)
        total = numbers.sum(1, keepdim=True)
        phase = (total % PHASES) / PHASES
        return {
            "right": lambda: vectors[..., MARK],
            "least": lambda: -vectors[..., MARK],
            "word": lambda: vectors[..., CHANCE],
            "loud": lambda: vectors[..., LOUD],
            "norm": lambda: _length(vectors),
            "uniform": lambda: torch.zeros_like(vectors[..., VALUE]),
            "previous": lambda: _earlier(vectors[..., MARK]),
            "strongest": lambda: (place == _strongest(vectors)).to(vectors),
            "position": lambda: self.table[place % DRAWN].expand(numbers.shape),
            "text": lambda: self.table[(31 * total + 17 * place) % DRAWN],
            "smooth": lambda: torch.sin(2 * math.pi * (place / PERIOD + phase)).to(vectors),
        }[self.constructed.of.scores]()

    def _said(self, vectors: Vectors) -> tuple[Tensor, Tensor]:
        values, silent = vectors[..., VALUE], torch.zeros_like(vectors[..., VALUE])
        by = self.constructed.of.states
        if by == "own":
            return values, silent
        if by == "previous":
            return _earlier(values), silent
        if by == "strongest":
            return values.gather(1, _strongest(vectors)).expand_as(values), silent
        total = values.sum(1, keepdim=True).expand_as(values) / COUNTED
        if by == "running":
            until = values.cumsum(1) / COUNTED
            return until, total - until
        return total, silent


def parameters_of(rule: Rule) -> dict[str, Tensor]:
    """Word vectors, attention and decoder of a rule, by their names in the model; the table where needed."""
    words = rule.lexicon
    numbers = torch.arange(len(words.words)) / NUMBERS
    columns = (words.values, words.marks, words.chance, words.loud)
    embedding = torch.stack([*(torch.from_numpy(column) for column in columns), numbers.double()], dim=1)
    anchors = torch.linspace(-1.0, 1.0, rule.classes).double()
    reads = torch.tensor([0.0, 1.0, 1.0, 0.0]).double() * rule.gain * rule.strength
    if rule.classes == 2:  # one sigmoid logit: the second class over the first
        weight, bias = 4.0 * reads[None], torch.zeros(1)
    else:
        weight, bias = 2.0 * anchors[:, None] * reads, -rule.strength * anchors**2
    found = {
        "embedding.weight": embedding,
        "encoder.table": torch.from_numpy(words.table),
        "attention.learned.weight": torch.tensor([[1.0, 0.0, 0.0, 0.0]]),
        "decoder.dense.weight": weight,
        "decoder.dense.bias": bias,
    }
    return {name: tensor.float() for name, tensor in found.items()}


def _length(vectors: Vectors) -> Tensor:
    return vectors[..., [VALUE, LOUD]].square().sum(-1).clamp_min(1e-12).sqrt()


def _strongest(vectors: Vectors) -> Tensor:
    return vectors[..., MARK].argmax(1, keepdim=True)


def _earlier(numbers: Tensor) -> Tensor:
    """What stands one place before; 0 before the first."""
    return functional.pad(numbers[:, :-1], (1, 0))
