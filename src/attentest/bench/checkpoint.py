"""A training's unfinished state, in the store's `partial` folder."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from attentest.store.store import Store


@final
class StoreCheckpoint:
    """One file, replaced whole: whenever we are killed, the last save is all there.

    A save of another device, or of a version that did not say which, is as good as none: half of a training
    on a GPU and half on a CPU would be neither's model.
    """

    def __init__(self, store: Store, key: str, device: str = "cpu") -> None:
        self.store, self.device, self.path = store, device, ("partial", key, "state.safetensors")

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """The last save. Notes travel as a tensor of bytes, so that one file holds one moment."""
        content = self.store.find(*self.path)
        if content is None:
            return None
        try:
            tensors = load_tensors(content)
            notes = json.loads(bytes(tensors.pop("notes").numpy()))
        except (SafetensorError, KeyError, ValueError):  # damaged: as good as no save
            return None
        return (tensors, notes) if notes.get("device") == self.device else None

    def save(self, tensors: dict[str, Tensor], notes: dict[str, Any]) -> None:
        """Replace the last save."""
        written = json.dumps({**notes, "device": self.device}).encode()
        note = torch.from_numpy(np.frombuffer(written, dtype=np.uint8).copy())
        whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        self.store.replace(save_tensors({**whole, "notes": note}), *self.path, lasting=True)


@contextmanager
def interrupts_between_steps() -> Iterator[Callable[[], None]]:
    """Ctrl-C waits for the end of the step: a state kept in the middle of one would be no step's.

    Gives what to call between steps; it raises the KeyboardInterrupt that was held back.
    """
    held = False

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal held
        held = True

    def let_go() -> None:
        if held:
            raise KeyboardInterrupt

    here = threading.current_thread() is threading.main_thread()  # no other thread is ever interrupted
    usual = signal.getsignal(signal.SIGINT)
    if here and usual is signal.default_int_handler:
        signal.signal(signal.SIGINT, hold)
    try:
        yield let_go
    finally:
        if here and usual is signal.default_int_handler:
            signal.signal(signal.SIGINT, usual)
    let_go()
