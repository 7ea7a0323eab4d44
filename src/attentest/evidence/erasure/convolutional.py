"""Leave-one-out under convolutions: only windows across the gap change, and those change by single taps.

A convolution is a sum over taps, `b + sum_o W_o x_{p+o}`, so `W_o x_p` is computed once for every place and
tap. Leave out unit t: the taps of the unit d places after t that reached t or before it now read one place
further back, and those of the unit d places before t that reached t or beyond read one further on. Moving
one tap at a time from the outermost inwards gives the windows of all distances, two additions each. With
radius r that is 2r changed units a variant; all others keep hidden state, score and value.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attentest.corpus.vocabulary import END, PAD, START
from attentest.evidence.erasure.remainder import (
    AbstractWeighedRemainder,
    Carried,
    Scalars,
    carried,
    parts_of,
    rescored,
)
from attentest.model.framing import framed
from attentest.model.networks.decoder import Affine
from attentest.model.networks.encoders import Convolutional
from attentest.model.seam import Model, Reading

# The unit `distance` places behind the one left out (negative: before it), one entry for every unit.
Moved = dict[int, Float[Tensor, "batch unit hidden"]]


def floats_per_variant(model: Model, units: int) -> int:
    """Memory of one variant: scores and weights, products of the taps, and twice its changed units."""
    network = parts_of(model)
    assert isinstance(network.encoder, Convolutional)
    taps = [kernel.kernel_size[0] for kernel in _kernels(network.encoder)]
    channels = network.width // len(taps)
    classes = len(model.labels) if isinstance(network.decoder, Affine) else 0
    return (8 + 2 * classes) * units + 4 * max(taps) * network.width + sum(taps) * channels


@final
class ConvolutionalRemainder(AbstractWeighedRemainder):
    """The states around the gap of every variant, by their distance from it."""

    def __init__(self, model: Model, reading: Reading, lefts: range) -> None:
        super().__init__(model, reading, lefts)
        encoder, decoder = self.network.encoder, self.network.decoder
        assert isinstance(encoder, Convolutional)
        self.hidden = _hidden_around_the_gap(model, encoder, reading)
        self.each = {
            distance: decoder.values(states) if isinstance(decoder, Affine) else states
            for distance, states in self.hidden.items()
        }

    def scores(self) -> Scalars:
        """The text's own but around the gap."""
        scores = self.reading.scores[:, None].repeat(1, len(self.lefts), 1)
        for distance, states in self.hidden.items():
            new = rescored(self.network, self.reading, states)
            if new is not None:
                diagonal, units = _pairs(scores, self.lefts, distance)
                diagonal.copy_(new[:, units])
        return scores

    def sums(self, weights: Scalars) -> Carried:
        """Unchanged units by one product, changed ones distance by distance."""
        changed = []
        for distance, each in self.each.items():
            diagonal, units = _pairs(weights, self.lefts, distance)
            changed.append((max(-self.lefts.start - distance, 0), diagonal[..., None] * each[:, units]))
            diagonal.zero_()
        sums = weights @ carried(self.reading)
        for begin, part in changed:
            sums[:, begin : begin + part.shape[1]] += part
        return sums

    def pair_values(self) -> Float[Tensor, "batch variant unit class"]:
        """The text's own but around the gap."""
        assert self.reading.values is not None
        values = self.reading.values[:, None].repeat(1, len(self.lefts), 1, 1)
        for number, classes in enumerate(values.unbind(3)):
            for distance, each in self.each.items():
                diagonal, units = _pairs(classes, self.lefts, distance)
                diagonal.copy_(each[:, units, number])
        return values


def _hidden_around_the_gap(model: Model, encoder: Convolutional, reading: Reading) -> Moved:
    """The new states by distance; kernels too narrow to reach across the gap keep theirs."""
    markers = model.embedding(torch.tensor([PAD, START, END], device=model.device))
    rows, places, _ = framed(reading.embeddings, markers, reading.mask)
    kernels = _kernels(encoder)
    old = reading.hidden.split([kernel.out_channels for kernel in kernels], dim=2)
    new = [_moved_taps(kernel, rows, places) for kernel in kernels]
    distances = max(new, key=len)
    return {
        distance: torch.cat([moved.get(distance, same) for moved, same in zip(new, old, strict=True)], dim=2)
        for distance in distances
    }


def _kernels(encoder: Convolutional) -> list[nn.Conv1d]:
    return [kernel for kernel in encoder.kernels if isinstance(kernel, nn.Conv1d)]


def _moved_taps(kernel: nn.Conv1d, rows: Tensor, places: Tensor) -> Moved:
    radius, units = kernel.kernel_size[0] // 2, places.shape[1] - 2
    products = rows @ kernel.weight.permute(1, 2, 0).flatten(1)
    # Row 0 is padding, exactly zero, as is whatever a convolution sees beyond the frame.
    wide = functional.embedding(functional.pad(places, (radius + 1, radius + 1)), products)
    by_tap = wide.unflatten(2, (-1, kernel.out_channels)).unbind(2)

    def tap(offset: int, shift: int = 0) -> Tensor:
        """What the tap adds at every unit: a unit's own place lies behind the padding and the start."""
        begin = radius + 2 + offset + shift
        return by_tap[offset + radius][:, begin : begin + units]

    own = torch.stack([tap(offset) for offset in range(-radius, radius + 1)]).sum(0)
    if kernel.bias is not None:
        own = own + kernel.bias
    moved = {}
    for side in (-1, 1):
        window = own
        for distance in range(radius, 0, -1):
            reaching = -side * distance
            window = window - tap(reaching) + tap(reaching, -side)
            moved[side * distance] = torch.relu(window)
    return moved


def _pairs(grid: Scalars, lefts: range, distance: int) -> tuple[Tensor, slice]:
    """The cells of (variant, unit) that lie `distance` apart, and the units they belong to."""
    offset = lefts.start + distance
    diagonal = grid.diagonal(offset, dim1=1, dim2=2)
    begin = max(offset, 0)
    return diagonal, slice(begin, begin + diagonal.shape[1])
