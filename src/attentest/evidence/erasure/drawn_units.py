"""Of a long text some units, drawn at random: a rank correlation over them estimates that over all.

To leave out every word of a text costs the square of its length. Kendall's tau is a mean over pairs of units,
so over units drawn at random it comes to the same in the mean; only its error is larger.
"""

from __future__ import annotations

import zlib

import torch
from jaxtyping import Bool
from torch import Tensor

from attentest.model.seam import Reading

Units = Bool[Tensor, "batch unit"]


def drawn_units(reading: Reading, most: int | None) -> Units | None:
    """At most so many units of every text, or None where that is all of them.

    Who is drawn depends on nothing but the text's id and its length, so all questions draw the same.
    """
    lengths = reading.mask.sum(1)
    if most is None or int(lengths.max()) <= most:
        return None
    found = torch.zeros_like(reading.mask)
    for row, (name, length) in enumerate(zip(reading.batch.ids, lengths.tolist(), strict=True)):
        rng = torch.Generator().manual_seed(zlib.crc32(name.encode()))
        found[row, torch.randperm(length, generator=rng)[:most].to(found.device)] = True
    return found


def only(units: Units | None, values: Tensor) -> Tensor:
    """The values of the drawn units side by side, in the order of the text; 0 where a text has fewer."""
    if units is None:
        return values
    order = (~units).int().argsort(dim=1, stable=True)[:, : int(units.sum(1).max())]
    shape = (len(values), *[1] * (values.ndim - 2), -1)
    place = order.view(shape).expand(*values.shape[:-1], -1)
    there = units.gather(1, order).view(shape)
    return values.gather(-1, place).masked_fill(~there, 0)
