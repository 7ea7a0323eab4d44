"""A training's unfinished state, in the store's `partial` folder."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from attentest.store.store import Store


class Kept:
    """One file, replaced whole: whenever we are killed, the last save is all there."""

    def __init__(self, store: Store, key: str) -> None:
        self.store, self.path = store, ("partial", key, "state.safetensors")

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last save. Notes travel as a tensor of bytes, so that one file holds one moment."""
        content = self.store.find(*self.path)
        if content is None:
            return None
        tensors = load_tensors(content)
        notes = bytes(tensors.pop("notes").numpy())
        return tensors, json.loads(notes)

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Replace the last save."""
        note = torch.from_numpy(np.frombuffer(json.dumps(notes).encode(), dtype=np.uint8).copy())
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        self.store.replace(save_tensors({**whole, "notes": note}), *self.path)
