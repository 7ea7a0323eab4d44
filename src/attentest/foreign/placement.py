"""Where a model computes, and in which type of number: as it comes, or as the user says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from attentest.refusal import Refusal

AUTO = "auto"
HALF = (torch.float16, torch.bfloat16)
TYPES = {name: getattr(torch, name) for name in ("float32", "float64", "float16", "bfloat16")}


def best_device() -> torch.device:
    """A GPU if there is one that torch can use, else the processor."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def device_named(name: str | None) -> torch.device | None:
    """The device of that name, None where nothing is said; one that is not there is refused."""
    if name is None:
        return None
    if name == AUTO:
        return best_device()
    there: dict[str, Callable[[], bool]] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
    }
    look = there.get(name.partition(":")[0])
    if look is not None and not look():
        raise Refusal(
            f"device={name!r}",
            got="a machine on which torch finds none",
            needs="a device that is there",
            way_out="Say device='cpu', or device='auto' for the best there is.",
        )
    return torch.device(name)


def type_named(name: str | None) -> torch.dtype | None:
    """The type of that name; None where the model's own is to stay."""
    return None if name in (None, AUTO) else TYPES[str(name)]


def is_spread(model: Any) -> bool:
    """Whether a model was placed on several devices when it was loaded (`device_map`)."""
    placed = getattr(model, "hf_device_map", None) or {}
    return len(set(map(str, placed.values()))) > 1


def placed(model: Any, device: str | None, dtype: str | None) -> Any:
    """A model in hand where and as the user says; `auto` leaves it where it is."""
    where = None if device == AUTO else device_named(device)
    if where is not None and is_spread(model):
        raise Refusal(
            f"device={device!r}",
            got="a model that is spread over several devices (device_map)",
            needs="no device: it stays where it was placed",
            way_out="Leave the device out.",
        )
    numbers = type_named(dtype)
    if where is None and numbers is None:
        return model
    return model.to(**{k: v for k, v in (("device", where), ("dtype", numbers)) if v is not None})


def rounding(dtype: torch.dtype) -> float:
    """How far two ways of computing one answer may differ, relative to the largest logit."""
    return 32 * torch.finfo(dtype).eps if dtype in HALF else 1e-4


def rounding_note(dtype: torch.dtype) -> list[str]:
    """What a reader must know of a model in half precision; nothing of any other."""
    if dtype not in HALF:
        return []
    name = str(dtype).removeprefix("torch.")
    return [
        f"The model computes in {name}, whose rounding is {torch.finfo(dtype).eps:.2%} of a number: smaller"
        " changes of its answer cannot be seen. Its own attention was proven to give its own answer within"
        f" that rounding (logits within {rounding(dtype):.2g})."
    ]
