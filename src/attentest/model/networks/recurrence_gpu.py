"""The two loops of `recurrence` as one GPU kernel each: cuDNN launches every step, and small models wait.

A program walks through time alone, so a step costs no launch and no synchronisation. How much of the
recurrent matrix it can hold depends on the width, and so there are three kinds of kernels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attentest.model.networks import recurrence_kernels as kernels
from attentest.model.networks import recurrence_kernels_widest as widest
from attentest.model.networks.recurrence_kernels import triton
from attentest.model.precision import products_are_fast

NARROW = (16, 32)  # the powers of two whose four tiles fit into the registers of a warp
WIDE = (64,)
WIDEST = (128,)  # the four tiles ask for twice the shared memory there is
WIDTHS = NARROW + WIDE  # for one model at 128 cuDNN is as fast; `fits_stack` is for many
PART = 64  # of the state, in one product
TEXTS = 16  # the fewest rows a tensor core multiplies
WARPS = 8


def fits(width: int, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels can run an LSTM of this width here."""
    return width in WIDTHS and _can_run(device, dtype)


def fits_stack(width: int, device: torch.device, dtype: torch.dtype) -> bool:
    """The same of a stack of LSTMs, which cuDNN cannot do at all."""
    return width in WIDTHS + WIDEST and _can_run(device, dtype)


def _can_run(device: torch.device, dtype: torch.dtype) -> bool:
    """Their states are in single precision, so what is asked for in double must go the plain road."""
    return triton is not None and device.type == "cuda" and dtype == torch.float32


def run(gates: Tensor, state_weights: Tensor, cell: Tensor, squashed: Tensor, hidden: Tensor) -> None:
    """`recurrence.run`: input projections become activated gates, states are filled in."""
    sides, steps, batch, width = hidden.shape
    given = (gates, state_weights.contiguous(), cell, squashed, hidden, steps, batch)
    if width in NARROW:
        kernels.run_narrow[(sides, batch)](*given, W=width, num_warps=1)
        return
    grid, tiles = (sides, triton.cdiv(batch, TEXTS)), {"W": width, "B": TEXTS, "num_warps": WARPS}
    if width in WIDE:
        kernels.run_wide[grid](*given, **tiles)
    else:
        widest.run_widest[grid](*given, **tiles, **_widest())


def back(arriving: Tensor, state_weights: Tensor, gates: Tensor, cell: Tensor, squashed: Tensor) -> Tensor:
    """`recurrence.back`: the gradient at the gates before their activation."""
    sides, steps, batch, width = cell.shape
    slopes = torch.empty_like(gates)
    given = (arriving.contiguous(), state_weights.contiguous(), gates, cell, squashed, slopes, steps, batch)
    if width in NARROW:
        kernels.back_narrow[(sides, batch)](*given, W=width, num_warps=1)
        return slopes
    grid, tiles = (sides, triton.cdiv(batch, TEXTS)), {"W": width, "B": TEXTS, "num_warps": WARPS}
    if width in WIDE:
        kernels.back_wide[grid](*given, **tiles)
    else:
        widest.back_widest[grid](*given, **tiles, **_widest())
    return slopes


def _widest() -> dict[str, Any]:
    """Three passes are as exact as single precision; one is what TF32 is."""
    return {"K": PART, "num_stages": 2, "PRECISION": "tf32" if products_are_fast() else "tf32x3"}
