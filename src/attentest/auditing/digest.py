"""Which parameters were audited, so that a result can be matched with the model it is about."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from attentest.foreign.adapter import AdaptedModel
from attentest.model.seam import AttentionModel
from attentest.model.training.provenance import parameters_digest


def audited_digest(model: AttentionModel) -> str:
    """The digest of the model's state dict, and of the modules and tensors that an adapter holds."""
    state: dict[str, Any] = dict(model.state_dict())
    adapter = model.adapter if isinstance(model, AdaptedModel) else None
    if adapter is not None and not isinstance(adapter, nn.Module):
        for name, part in vars(adapter).items():
            state |= part.state_dict(prefix=f"{name}.") if isinstance(part, nn.Module) else {name: part}
    return parameters_digest({name: value for name, value in state.items() if isinstance(value, Tensor)})
