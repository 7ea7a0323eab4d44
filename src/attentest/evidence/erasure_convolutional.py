"""Leave-one-out under convolutions: only windows across the gap change, and those change by single taps.

A convolution is a sum over taps, `b + sum_o W_o x_{p+o}`, so `W_o x_p` is computed once for every place and
tap. Leave out unit t: the taps of the unit d places after t that reached t or before it now read one place
further back, and those of the unit d places before t that reached t or beyond read one further on. Moving
one tap at a time from the outermost inwards gives the windows of all distances, two additions each. With
radius r that is 2r changed units a variant; all others keep hidden state, score and value.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from attentest.corpus.vocabulary import END, PAD, START
from attentest.evidence.erasure_remainder import (
    Carried,
    Scalars,
    answered,
    carried,
    kept,
    output_change,
    rescored,
    reweighed,
)
from attentest.model.decoder import Affine
from attentest.model.encoders import Convolutional
from attentest.model.seam import AttentionModel, Reading, framed

# The unit `distance` places behind the one left out (negative: before it), one entry for every unit.
Moved = dict[int, Float[Tensor, "batch unit hidden"]]


def floats_per_variant(model: AttentionModel, units: int) -> int:
    """Memory of one variant: scores and weights, products of the taps, and twice its changed units."""
    assert isinstance(model.encoder, Convolutional)
    taps = [kernel.kernel_size[0] for kernel in _kernels(model.encoder)]
    channels = model.encoder.width // len(taps)
    return 8 * units + 4 * max(taps) * model.encoder.width + sum(taps) * channels


def convolutional(model: AttentionModel, reading: Reading, lefts: range) -> Float[Tensor, "batch variant"]:
    """The output change of each variant."""
    assert isinstance(model.encoder, Convolutional)
    hidden = _hidden_around_the_gap(model, model.encoder, reading)
    remain = kept(reading, lefts)
    scores = reading.scores[:, None].repeat(1, len(lefts), 1)
    for distance, states in hidden.items():
        new = rescored(model, reading, states)
        if new is not None:
            diagonal, units = _pairs(scores, lefts, distance)
            diagonal.copy_(new[:, units])
    weights = reweighed(model, reading.weights[:, None], scores, remain)
    return output_change(
        model, reading, answered(model, reading, _sums(model, reading, hidden, weights, lefts))
    )


def _hidden_around_the_gap(model: AttentionModel, encoder: Convolutional, reading: Reading) -> Moved:
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


def _sums(model: AttentionModel, reading: Reading, hidden: Moved, weights: Scalars, lefts: range) -> Carried:
    """What attention sums up: unchanged units by one product, changed ones distance by distance."""
    changed = []
    for distance, states in hidden.items():
        diagonal, units = _pairs(weights, lefts, distance)
        each = model.decoder.values(states) if isinstance(model.decoder, Affine) else states
        changed.append((max(-lefts.start - distance, 0), diagonal[..., None] * each[:, units]))
        diagonal.zero_()
    sums = weights @ carried(reading)
    for begin, part in changed:
        sums[:, begin : begin + part.shape[1]] += part
    return sums
