"""Texts between their markers, before they are encoded, and the noise of the context vector."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from attentest.shapes import Embedded, Hidden, Mask


class Framed(NamedTuple):
    """Texts between their markers: vectors, which of them stands at each place, and where anything stands."""

    rows: Float[Tensor, "row emb"]
    places: Int[Tensor, "batch place"]
    present: Bool[Tensor, "batch place"]


def frame(
    places: Int[Tensor, "batch token"], at: Int[Tensor, " 3"], mask: Bool[Tensor, "batch token"]
) -> tuple[Int[Tensor, "batch place"], Bool[Tensor, "batch place"]]:
    """Put a start before each text, an end right behind its last token, and padding after.

    `at` says in which rows padding, start and end are. Texts are left-aligned, so only integers move.
    """
    padding, start, end = at
    inside = functional.pad(torch.where(mask, places, padding), (1, 1))
    where = torch.arange(inside.shape[1], device=mask.device)[None]
    last = mask.sum(1, keepdim=True) + 1
    inside = torch.where(where == 0, start, torch.where(where == last, end, inside))
    return torch.where(where > last, padding, inside), where <= last


def framed(embeddings: Embedded, markers: Float[Tensor, "3 emb"], mask: Mask) -> Framed:
    """The frame of vectors that come one per token, each its own row."""
    batch, tokens, _ = embeddings.shape
    rows = torch.cat([markers, embeddings.flatten(0, 1)])
    own = torch.arange(3, len(rows), device=mask.device).view(batch, tokens)
    return Framed(rows, *frame(own, torch.arange(3, device=mask.device), mask))


def dropped(hidden: Hidden, share: float, rng: torch.Generator) -> Hidden:
    """Dropout of the context vector, taken before the sum: one mask a text for all its units.

    `sum_t a_t (m * h_t)` is `m * sum_t a_t h_t`, so deciding needs no noise of its own.
    """
    keep = torch.rand(len(hidden), 1, hidden.shape[2], generator=rng).to(hidden) >= share
    return hidden * keep / (1 - share)
