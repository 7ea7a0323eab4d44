"""Where a model was trained, as its configuration says it, and which parameters it ended with.

A GPU adds in another order than a CPU, and after a few epochs that is another model. So the device of a
training is a setting like any other; the digest tells whether two models are the same, wherever they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attentest.model.config import ModelConfig
from attentest.refusal import Refusal


def config_of(settings: Mapping[str, Any]) -> ModelConfig:
    """The configuration of settings that a user gave, who does not say there where the model is trained."""
    if "trained_on" in settings:
        raise Refusal(
            "model setting trained_on",
            got=repr(settings["trained_on"]),
            needs="to be left out: it is the device of the training",
            way_out="Give --device cpu or --device cuda, in Python device=.",
        )
    return ModelConfig.of(settings)


def placed(config: ModelConfig, device: str) -> ModelConfig:
    """The same model, trained on this device.

    Every number of an untrained model is drawn on the CPU, so it is the same model for either device.
    """
    return replace(config, trained_on="cpu" if config.epochs == 0 else device)


def parameters_digest(tensors: Mapping[str, Tensor]) -> str:
    """The sha256 of a state dict: names in their order, each with dtype, shape and bytes, as on a CPU."""
    found = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        head = json.dumps([name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape)])
        found.update(head.encode() + b"\n")
        found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()
