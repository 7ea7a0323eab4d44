"""Which numbers of a model are none: one NaN in a table of vectors is in every text that has the word."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor


def not_finite(tensors: Iterable[tuple[str, Tensor]], *, infinite: bool = False) -> str | None:
    """The name of the first tensor that holds a NaN, or an infinity unless it may be `infinite`.

    Each is read once and nothing is copied: the extremes of numbers with a NaN among them are NaN.
    """
    return next((name for name, tensor in tensors if not _is_fine(tensor.detach(), infinite)), None)


def _is_fine(tensor: Tensor, infinite: bool) -> bool:
    if not tensor.is_floating_point() or not tensor.numel() or tensor.is_meta:
        return True
    low, high = tensor.aminmax()
    return bool(low.isnan().logical_not() if infinite else low.isfinite() & high.isfinite())
