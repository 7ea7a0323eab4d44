"""`hierarchy` for a stack of models: all sentences are lines of one grid, which the host has measured.

A recorded step has one shape and asks the host for nothing, so the grid is as large as the largest of the
stack needs, and every line as long as the longest sentence: on a GPU padding is cheaper than a question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.func import functional_call, vmap

from attentest.fleet.stacked_encoders import Own, encode, within
from attentest.model.networks.hierarchy import Hierarchical
from attentest.model.networks.projection import softmax

Sentences = Int[Tensor, "model batch token"]  # the number of each token's sentence within its text
Present = Bool[Tensor, "model batch sentence"]


@final
@dataclass(frozen=True)
class Measures:
    """How much room the sentences of a batch need, in the most demanding model of the stack."""

    lines: int  # sentences of all texts together
    words: int  # of the longest sentence
    sentences: int  # of the text that has most

    def generous(self) -> Measures:
        """The next powers of two: three numbers have many combinations, and each is recorded by itself."""
        return Measures(*(2 ** (n - 1).bit_length() for n in (self.lines, self.words, self.sentences)))


@final
@dataclass(frozen=True)
class Grid:
    """Which token stands where, and which line is which sentence of which text."""

    token: Int[Tensor, "model line word"]  # numbered through the texts of the model
    real: Bool[Tensor, "model line word"]
    line: Int[Tensor, "model batch sentence"]
    present: Present


def lay_out(sentences: Sentences, mask: Bool[Tensor, "model batch token"], room: Measures) -> Grid:
    """Number the sentences of each model through its texts; what is not there goes to a line of its own."""
    models, batch, tokens = mask.shape
    counts = torch.where(mask, sentences + 1, 0).amax(2)
    before = counts.cumsum(1) - counts
    line = torch.where(mask, before[..., None] + sentences, room.lines).flatten(1)
    begins = torch.ones_like(mask)
    begins[..., 1:] = sentences[..., 1:] != sentences[..., :-1]
    place = torch.arange(batch * tokens, device=mask.device).expand(models, -1)
    start = place.new_zeros(models, room.lines + 1)
    start.scatter_(1, torch.where(begins.flatten(1), line, room.lines), place)
    length = place.new_zeros(models, room.lines + 1)
    length.scatter_add_(1, line, mask.flatten(1).to(length.dtype))
    word = torch.arange(room.words, device=mask.device)
    real = word < length[:, :-1, None]
    token = torch.where(real, start[:, :-1, None] + word, 0)
    number = torch.arange(room.sentences, device=mask.device)
    present = number < counts[..., None]
    return Grid(token, real, torch.where(present, before[..., None] + number, 0), present)


def encode_sentences(
    encoder: Hierarchical, own: Own, embedded: Float[Tensor, "model batch token emb"], grid: Grid
) -> tuple[Float[Tensor, "model batch sentence hidden"], Float[Tensor, "model batch hidden"]]:
    """The states of sentences, and every text as one vector."""
    words = _taken(embedded.flatten(1, 2), grid.token, grid.real)
    hidden, _ = encode(encoder.words, within(own, "words"), words, grid.real)

    def score(own: dict[str, Tensor], states: Tensor) -> Tensor:
        return functional_call(encoder.attention, own, (states, None))

    scores = vmap(score)(within(own, "attention"), hidden)
    weights = softmax(scores.flatten(0, 1), grid.real.flatten(0, 1)).view_as(scores)
    made = torch.einsum("mlw,mlwh->mlh", weights, hidden)
    units = _taken(made, grid.line, grid.present)
    return encode(encoder.sentences, within(own, "sentences"), units, grid.present)


def _taken(
    vectors: Float[Tensor, "model row width"],
    at: Int[Tensor, "model line place"],
    real: Bool[Tensor, "model line place"],
) -> Float[Tensor, "model line place width"]:
    """These vectors in their places; zero where there is none."""
    index = at.flatten(1)[..., None].expand(-1, -1, vectors.shape[2])
    return vectors.gather(1, index).unflatten(1, at.shape[1:]).masked_fill(~real[..., None], 0.0)
