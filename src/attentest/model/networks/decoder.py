"""Decoders turn a context vector into logits; where they are affine, attention acts through `values`."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attentest.shapes import Hidden, Logits, Query, Values

Context = Float[Tensor, "batch *variant hidden"]


@final
class Affine(nn.Module):
    """`W c + b`: one sigmoid logit, a softmax over labels, or the one dense layer of the papers' QA text."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, classes)

    def values(self, hidden: Hidden) -> Values:
        """What each unit would say alone: `logits = weights @ values + bias`."""
        return hidden @ self.dense.weight.T

    @property
    def bias(self) -> Tensor:
        """The logits of an attention that rests nowhere."""
        return self.dense.bias


@final
class TwoLayer(nn.Module):
    """`W2 tanh(Wp c + Wq q)`, the query decoder of the published code (A28); inner width half the hidden."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.of_context = nn.Linear(width, width // 2)
        self.of_query = nn.Linear(width, width // 2, bias=False)
        self.to_logits = nn.Linear(width // 2, classes)

    def forward(self, context: Context, query: Query) -> Logits:
        """Logits of each context under its own query."""
        from_query = self.of_query(query)
        if context.ndim == 3:
            from_query = from_query[:, None]
        return self.to_logits(torch.tanh(self.of_context(context) + from_query))


def distribution(logits: Logits) -> Float[Tensor, "batch *variant outcome"]:
    """Probabilities over outcomes; one sigmoid logit becomes the pair `(1 - y, y)`."""
    if logits.shape[-1] > 1:
        return logits.softmax(-1)
    return torch.cat([torch.sigmoid(-logits), torch.sigmoid(logits)], dim=-1)


# `sigmoid` and `softmax` are the two heads of classification; query models choose `two-layer` or `affine`.
DECODERS: dict[str, type[Affine] | type[TwoLayer]] = {
    "sigmoid": Affine,
    "softmax": Affine,
    "affine": Affine,
    "two-layer": TwoLayer,
}
