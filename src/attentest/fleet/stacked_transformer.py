"""The Transformer for a stack of models: every layer is a few batched products, and its maps are not kept.

`encoders.Transformer` keeps who looked at whom, which an analysis asks for and a training does not.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.fleet.stacked_layer import Look, Rows, add_and_norm, biased_relu
from attentest.model.networks.encoders import Transformer, sinusoids

Own = Mapping[str, Tensor]


def encode_transformer(
    encoder: Transformer,
    own: Own,
    embedded: Float[Tensor, "model text place emb"],
    present: Bool[Tensor, "model text place"],
) -> tuple[Float[Tensor, "model text place width"], Float[Tensor, "model text width"]]:
    """What `encoders.Transformer` gives for each model's own texts."""
    shape = (*present.shape, encoder.width)
    places = sinusoids(shape[2], encoder.width, embedded.device).to(embedded)
    entered = _product(own, "enter", embedded.flatten(1, 2)).view(shape)
    hidden = (entered + (places + own["enter.bias"][:, None, None])).flatten(1, 2)
    absent = torch.zeros_like(present, dtype=hidden.dtype).masked_fill_(~present, float("-inf"))
    for number in range(len(encoder.layers)):
        hidden = _layer(own, f"layers.{number}", hidden, absent.flatten(0, 1))
    states, real = hidden.view(shape), present.to(hidden.dtype)
    mean = (real[:, :, None] @ states)[:, :, 0] / real.sum(2, keepdim=True).clamp_min(1)
    return states, mean


def _layer(own: Own, name: str, hidden: Rows, absent: Float[Tensor, "text place"]) -> Rows:
    weight, bias = own[f"{name}.project.weight"].transpose(1, 2), own[f"{name}.project.bias"][:, None]
    projected = torch.baddbmm(bias, hidden, weight)
    looked = Look.apply(projected.view(*absent.shape, -1), absent).view(hidden.shape)
    hidden = _close(own, name, 0, hidden, "out", looked)
    fed = biased_relu(_product(own, f"{name}.feed.0", hidden), own[f"{name}.feed.0.bias"])
    return _close(own, name, 1, hidden, "feed.2", fed)


def _close(own: Own, name: str, number: int, stayed: Rows, last: str, given: Rows) -> Rows:
    """The last product of a half layer, and the residual with its norm."""
    norm = f"{name}.norms.{number}"
    added, bias = _product(own, f"{name}.{last}", given), own[f"{name}.{last}.bias"]
    return add_and_norm(stayed, added, bias, own[f"{norm}.weight"], own[f"{norm}.bias"])


def _product(own: Own, name: str, given: Float[Tensor, "model row _"]) -> Rows:
    return torch.bmm(given, own[f"{name}.weight"].transpose(1, 2))
