"""How exactly a GPU multiplies single precision: in full, or with ten bits of mantissa (TF32), and faster.

Torch has two names for the switch, and refuses to read the older once somebody has set the newer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def full_precision() -> Iterator[None]:
    """No TF32 in here, whoever switched it on: a distance is a difference, which ten bits may not survive."""
    with _products("ieee", False):
        yield


@contextmanager
def fast_products() -> Iterator[None]:
    """TF32 in here, as cuDNN's recurrences and convolutions have it by default."""
    with _products("tf32", True):
        yield


def products_are_fast() -> bool:
    """Whether TF32 is on, for kernels that multiply by themselves."""
    matmul = torch.backends.cuda.matmul
    return matmul.fp32_precision == "tf32" if hasattr(matmul, "fp32_precision") else matmul.allow_tf32


@contextmanager
def _products(newer: str, older: bool) -> Iterator[None]:
    matmul = torch.backends.cuda.matmul
    name, value = ("fp32_precision", newer) if hasattr(matmul, "fp32_precision") else ("allow_tf32", older)
    before = getattr(matmul, name)
    setattr(matmul, name, value)
    try:
        yield
    finally:
        setattr(matmul, name, before)


def at_least_single(numbers: torch.Tensor) -> torch.Tensor:
    """The numbers in single precision if they are of half: their differences are looked at, in numpy too."""
    return numbers.float() if numbers.dtype in (torch.float16, torch.bfloat16) else numbers
