"""Which parameters were audited, so that a result can be matched with the model it is about."""

from __future__ import annotations

from attentest.model.seam import Model
from attentest.model.training.provenance import parameters_digest


def audited_digest(model: Model) -> str:
    """The digest of all that the model's answers depend on: of a module, its state dict."""
    return parameters_digest(model.tensors())
