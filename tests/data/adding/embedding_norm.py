"""The length of a unit's vector, as an importance that a test adds."""

from __future__ import annotations

import torch

from attentest.evidence.importances.presence import PerUnit
from attentest.model.seam import Model, Reading


def embedding_norm(model: Model, reading: Reading, *, rng: torch.Generator, effort: object) -> PerUnit:
    """0 on padding."""
    return reading.embeddings.norm(dim=-1) * reading.mask
