"""The second half of a convolution: what each offset of its kernel says, added up where it speaks of.

Written with slices this is a copy and a fill for each offset and kernel, and again for each gradient: most of
the calls of a fleet of convolutions. A window over memory is one sum, and its gradient one copy.
"""

from __future__ import annotations

from typing import Any, final

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional


@final
class ShiftedSum(torch.autograd.Function):
    """`sum over o of said[.., t + o - offsets // 2, o, ..]`, nothing beyond the ends; offsets are odd.

    `said` is (model, batch, place, offset, channel), the sum (model, batch, place, channel).
    """

    @staticmethod
    def forward(ctx: Any, said: Tensor) -> Tensor:
        """A step along the offsets of the window is one along places, too."""
        ctx.offsets = said.shape[3]
        reach = ctx.offsets // 2
        padded = functional.pad(said, (0, 0, 0, 0, reach, reach))
        model, batch, place, offset, channel = padded.stride()
        return padded.as_strided(said.shape, (model, batch, place, place + offset, channel)).sum(3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        """Place u spoke by offset o to place u - o + offsets // 2: a window the other way round."""
        reach = ctx.offsets // 2
        padded = functional.pad(grad, (0, 0, reach, reach))
        model, batch, place, channel = padded.stride()
        shape = (*grad.shape[:3], ctx.offsets, grad.shape[3])
        return padded.as_strided(shape, (model, batch, place, place, channel)).flip(3)
