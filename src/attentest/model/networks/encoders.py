"""Encoders turn embedded tokens into hidden states: those that see the whole text, and those that do not.

A text arrives as `rows`, vectors, and `places`, the row that stands at each place: what is done to each
vector alone is done once, however often it stands somewhere. A contextual encoder gets texts framed by a
start and an end marker and gives the frame back; the model cuts the markers off, so that no attention can
ever rest on one. `last` is the text as one vector: what a query is summarised by, and what decides when
there is no attention.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attentest.model.networks import recurrence_gpu
from attentest.model.networks.recurrence import BidirectionalLSTM

Rows = Float[Tensor, "row emb"]
Places = Int[Tensor, "batch place"]
Present = Bool[Tensor, "batch place"]  # True on tokens and markers


@final
@dataclass(frozen=True)
class Encoded:
    """Hidden states, the text as one vector, and the encoder's own attention maps where it has any."""

    hidden: Float[Tensor, "batch unit hidden"]
    last: Float[Tensor, "batch hidden"]
    inner: Tensor | None = None  # (batch, layer, place, place), or (batch, token) within sentences
    mask: Bool[Tensor, "batch unit"] | None = None  # where units are not tokens: which of them are real


def mean_over(hidden: Tensor, present: Tensor) -> Tensor:
    """The mean of the hidden states that are there."""
    real = present[..., None].to(hidden.dtype)
    return (hidden * real).sum(1) / real.sum(1).clamp_min(1)


# Below this width our LSTM spends its time in calls and torch's wins; above, arithmetic decides.
OWN_ROAD_FROM = 64


@final
class Recurrent(nn.Module):
    """A one-layer bidirectional LSTM or GRU: our own road for wide LSTMs on a CPU, torch's for the rest."""

    contextual = True

    def __init__(self, emb: int, hidden: int, cell: type[nn.LSTM] | type[nn.GRU]) -> None:
        super().__init__()
        self.cell = cell(emb, hidden, batch_first=True, bidirectional=True)
        self.width = 2 * hidden

    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """Both directions, each within the text's own length."""
        lengths = present.sum(1)
        if self.takes_own_road(rows.device):
            hidden = BidirectionalLSTM.apply(rows, places, lengths, *self._stacked())
        else:
            embedded = functional.embedding(places, rows)
            packed = pack_padded_sequence(embedded, lengths.cpu(), batch_first=True, enforce_sorted=False)
            hidden, _ = pad_packed_sequence(
                self.cell(packed)[0], batch_first=True, total_length=places.shape[1]
            )
        half = self.width // 2
        texts = torch.arange(len(hidden), device=hidden.device)
        last = torch.cat([hidden[texts, lengths - 1, :half], hidden[:, 0, half:]], dim=1)
        return Encoded(hidden, last)

    def takes_own_road(self, device: torch.device) -> bool:
        """Whether the pass is `recurrence.BidirectionalLSTM`."""
        if not isinstance(self.cell, nn.LSTM):
            return False
        half = self.width // 2
        on_gpu = recurrence_gpu.fits(half, device, next(self.cell.parameters()).dtype)
        return on_gpu or (device.type == "cpu" and half >= OWN_ROAD_FROM)

    def _stacked(self) -> tuple[Tensor, Tensor, Tensor]:
        """Both directions' weights in one tensor each, torch's gates i, f, g, o as i, f, o, g.

        The three sigmoid gates then lie side by side and open in one call.
        """
        both = []
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            sides = torch.stack([getattr(self.cell, name), getattr(self.cell, f"{name}_reverse")])
            enter, keep, content, leave = sides.chunk(4, dim=1)
            both.append(torch.cat([enter, keep, leave, content], dim=1))
        return both[0].flatten(0, 1), both[1], (both[2] + both[3]).flatten()


@final
class Convolutional(nn.Module):
    """Parallel convolutions of several widths, same padding, ReLU, outputs side by side."""

    contextual = True

    def __init__(self, emb: int, kernels: Sequence[int], channels: int) -> None:
        super().__init__()
        self.kernels = nn.ModuleList(nn.Conv1d(emb, channels, k, padding=k // 2) for k in kernels)
        self.width = channels * len(kernels)

    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """The row of padding is exactly zero, so a text sees zeros beyond its end however wide its batch."""
        across = functional.embedding(places, rows).transpose(1, 2)
        hidden = torch.relu(torch.cat([kernel(across) for kernel in self.kernels], dim=1)).transpose(1, 2)
        # ReLU leaves nothing below zero, so zeroed padding can never win the maximum.
        return Encoded(hidden, (hidden * present[..., None]).amax(1))


@final
class TokenWise(nn.Module):
    """Each token on its own: a small network without context. `Average` and `MLP` of the papers."""

    contextual = False

    def __init__(self, network: nn.Module, width: int) -> None:
        super().__init__()
        self.network = network
        self.width = width

    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """The same network at every position."""
        hidden = functional.embedding(places, self.network(rows))
        return Encoded(hidden, mean_over(hidden, present))


@final
class SelfAttention(nn.Module):
    """One post-norm Transformer layer with one head, written out so that its map can be kept."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, hidden: Tensor, present: Present) -> tuple[Tensor, Tensor]:
        """The next hidden states and who looked at whom."""
        query, key, value = self.project(hidden).chunk(3, dim=-1)
        scores = query @ key.transpose(1, 2) / math.sqrt(hidden.shape[-1])
        inner = scores.masked_fill(~present[:, None], float("-inf")).softmax(-1)
        hidden = self.norms[0](hidden + self.out(inner @ value))
        return self.norms[1](hidden + self.feed(hidden)), inner


@final
class Transformer(nn.Module):
    """Two layers, one head, every width 128, sinusoidal positions, no dropout (Meister et al. 2021, A32)."""

    contextual = True

    def __init__(self, emb: int, width: int, layers: int = 2) -> None:
        super().__init__()
        self.enter = nn.Linear(emb, width)
        self.layers = nn.ModuleList(SelfAttention(width) for _ in range(layers))
        self.width = width

    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """Encode; `inner` keeps the map of every layer."""
        hidden = functional.embedding(places, self.enter(rows))
        hidden = hidden + sinusoids(hidden.shape[1], self.width, hidden.device).to(hidden)
        maps = []
        for layer in self.layers:
            hidden, inner = layer(hidden, present)
            maps.append(inner)
        return Encoded(hidden, mean_over(hidden, present), torch.stack(maps, dim=1))


def sinusoids(places: int, width: int, device: torch.device) -> Float[Tensor, "place width"]:
    """The fixed positions of Vaswani et al. 2017."""
    rate = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    angle = torch.arange(places, device=device)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:, :width]


class AbstractTextEncoder(nn.Module, ABC):
    """An encoder of which nothing is known but that it needs no markers: no fast road applies."""

    contextual = False
    width: int

    @abstractmethod
    def forward(self, rows: Rows, places: Places, present: Present) -> Encoded:
        """The states of every token."""


Encoder = Recurrent | Convolutional | TokenWise | Transformer | AbstractTextEncoder
