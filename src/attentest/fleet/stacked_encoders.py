"""Every encoder for a stack of models, from vectors to states: batched products, `vmap` if that will do."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.func import functional_call, vmap

from attentest.fleet.recurrence_gru import StackedGRU
from attentest.fleet.recurrence_stacked import StackedLSTM
from attentest.fleet.stacked_transformer import encode_transformer
from attentest.model.networks.encoders import Convolutional, Encoder, Recurrent, Transformer
from attentest.model.networks.shifted import ShiftedSum

Own = Mapping[str, Tensor]  # the parameters of one part, by their names within it, each with an axis `model`
Vectors = Float[Tensor, "model batch place emb"]
There = Bool[Tensor, "model batch place"]
Encoded = tuple[Float[Tensor, "model batch place hidden"], Float[Tensor, "model batch hidden"]]


def encode(encoder: Encoder, own: Own, embedded: Vectors, present: There) -> Encoded:
    """The states of all places, and every text as one vector."""
    if isinstance(encoder, Recurrent):
        return _recurrent(encoder, own, embedded, present)
    if isinstance(encoder, Convolutional):
        return _convolutional(encoder, own, embedded, present)
    if isinstance(encoder, Transformer):
        return encode_transformer(encoder, own, embedded, present)
    return vmap(_any_encoder(encoder))(dict(own), embedded, present)


def within(own: Own, part: str) -> dict[str, Tensor]:
    """The parameters of one part of these, by their names within it."""
    return {n.removeprefix(f"{part}."): p for n, p in own.items() if n.startswith(f"{part}.")}


def _any_encoder(encoder: nn.Module) -> Callable[..., tuple[Tensor, Tensor]]:
    def encode(own: dict[str, Tensor], embedded: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        rows = embedded.flatten(0, 1)
        places = torch.arange(len(rows), device=rows.device).view(present.shape)
        encoded = functional_call(encoder, own, (rows, places, present))
        return encoded.hidden, encoded.last

    return encode


def _recurrent(encoder: Recurrent, own: Own, embedded: Vectors, present: There) -> Encoded:
    lengths = present.sum(2)
    both = [
        torch.stack([own[f"cell.{name}"], own[f"cell.{name}_reverse"]], dim=1)
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    ]
    if isinstance(encoder.cell, nn.GRU):
        hidden = StackedGRU.apply(embedded, lengths, *both)
    else:
        hidden = StackedLSTM.apply(embedded, lengths, *_arranged(both))
    half = encoder.width // 2
    at = (lengths - 1).clamp_min(0)[..., None, None].expand(-1, -1, 1, half)
    last = torch.cat([hidden[..., :half].gather(2, at)[:, :, 0], hidden[:, :, 0, half:]], dim=2)
    return hidden, last


def _arranged(both: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """An LSTM's gates in the order i, f, o, g, as `Recurrent` has them, and its biases added."""
    parts = (sides.chunk(4, dim=2) for sides in both)
    of_input, of_state, bias, also = (
        torch.cat([enter, keep, leave, content], dim=2) for enter, keep, content, leave in parts
    )
    return of_input.flatten(1, 2), of_state, (bias + also).flatten(1)


def _convolutional(encoder: Convolutional, own: Own, embedded: Vectors, present: There) -> Encoded:
    """A convolution as one product for all offsets of its kernel, which are shifted and added."""
    models, batch, places, width = embedded.shape
    flat, found = embedded.flatten(1, 2), []
    for number in range(len(encoder.kernels)):
        weight = own[f"kernels.{number}.weight"]  # (model, channel, emb, offset)
        channels, offsets = weight.shape[1], weight.shape[3]
        across = weight.permute(0, 2, 3, 1).reshape(models, width, offsets * channels)
        said = torch.bmm(flat, across).view(models, batch, places, offsets, channels)
        found.append(ShiftedSum.apply(said) + own[f"kernels.{number}.bias"][:, None, None])
    hidden = torch.relu(torch.cat(found, dim=3))
    return hidden, (hidden * present[..., None]).amax(2)
