"""The steps of a stacked Transformer layer between its products, each with a gradient of its own.

Each is written twice: in torch, which says what it is, and by `layer_kernels`, where these can be had.
"""

from __future__ import annotations

import math
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from attentest.fleet.kernels import layer_kernels as kernels
from attentest.model.networks.recurrence_kernels import triton

Rows = Float[Tensor, "model row width"]
Of = Float[Tensor, "model width"]  # one of each model


def add_and_norm(stayed: Rows, added: Rows, bias: Of, weight: Of, shift: Of) -> Rows:
    """`stayed + added + bias`, normed row by row, times `weight`, plus `shift`."""
    if is_fast(stayed):
        return _AddAndNorm.apply(stayed, added, bias, weight, shift)
    normal = functional.layer_norm(stayed + added + bias[:, None], stayed.shape[-1:], eps=kernels.EPS)
    return torch.addcmul(shift[:, None], normal, weight[:, None])


def biased_relu(given: Rows, bias: Of) -> Rows:
    """What is above zero of `given + bias`."""
    return _BiasedReLU.apply(given, bias) if is_fast(given) else torch.relu(given + bias[:, None])


def is_fast(rows: Rows) -> bool:
    """Whether the kernels can do it: one power of two of columns, in single precision."""
    wide = rows.shape[-1]
    fits = wide & (wide - 1) == 0 and rows.dtype == torch.float32
    return triton is not None and rows.is_cuda and fits


@final
class _AddAndNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, stayed: Tensor, added: Tensor, bias: Tensor, weight: Tensor, shift: Tensor
    ) -> Tensor:
        given = [each.contiguous() for each in (stayed, added, bias, weight, shift)]
        models, rows, wide = stayed.shape
        out, normal = torch.empty_like(given[0]), torch.empty_like(given[0])
        spread = stayed.new_empty(models, rows)
        kernels.norm[_grid(stayed)](*given, out, normal, spread, rows, wide, kernels.ROWS, kernels.TILES)
        ctx.save_for_backward(normal, spread, weight)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        normal, spread, weight = ctx.saved_tensors
        models, rows, wide = normal.shape
        grad = torch.empty_like(normal)
        programs = _grid(normal)
        sums = normal.new_empty(models, programs[0], 3, wide)
        given = (slope.contiguous(), normal, spread, weight.contiguous())
        kernels.norm_back[programs](*given, grad, sums, rows, wide, kernels.ROWS, kernels.TILES)
        return grad, grad, *sums.sum(1).unbind(1)


@final
class _BiasedReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, given: Tensor, bias: Tensor) -> Tensor:
        given, bias = given.contiguous(), bias.contiguous()
        out, shape = torch.empty_like(given), given.shape[1:]
        kernels.relu[_grid(given)](given, bias, out, *shape, kernels.ROWS, kernels.TILES)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, ...]:
        (out,) = ctx.saved_tensors
        grad, programs = torch.empty_like(out), _grid(out)
        sums = out.new_empty(len(out), programs[0], out.shape[2])
        shape = out.shape[1:]
        kernels.relu_back[programs](slope.contiguous(), out, grad, sums, *shape, kernels.ROWS, kernels.TILES)
        return grad, sums.sum(1)


def _grid(rows: Rows) -> tuple[int, int]:
    return -(-rows.shape[1] // (kernels.ROWS * kernels.TILES)), len(rows)


@final
class Look(torch.autograd.Function):
    """What each place takes from the others, of which those that are absent (-inf) have no weight.

    Queries, keys and values lie side by side, and so do their gradients, which are written where they belong:
    to cut and to join them would be two passes over the largest of all tensors.
    """

    @staticmethod
    def forward(
        ctx: Any,
        projected: Float[Tensor, "text place triple"],
        absent: Float[Tensor, "text place"],
    ) -> Float[Tensor, "text place width"]:
        """The weights are kept for the gradient, the scores are not."""
        query, key, value = projected.chunk(3, dim=-1)
        scores = torch.baddbmm(absent[:, None], query, key.transpose(1, 2), alpha=_scale(query))
        weights = scores.softmax(2)
        ctx.save_for_backward(projected, weights)
        return torch.bmm(weights, value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None]:
        """The gradient of what was projected, all three parts of it."""
        projected, weights = ctx.saved_tensors
        query, key, value = projected.chunk(3, dim=-1)
        grad = torch.empty_like(projected)
        of_query, of_key, of_value = grad.chunk(3, dim=-1)
        torch.bmm(weights.transpose(1, 2), slope, out=of_value)
        of_weights = torch.bmm(slope, value.transpose(1, 2))
        of_scores = torch._softmax_backward_data(of_weights, weights, 2, weights.dtype)
        torch.baddbmm(of_query, of_scores, key, beta=0, alpha=_scale(query), out=of_query)
        torch.baddbmm(of_key, of_scores.transpose(1, 2), query, beta=0, alpha=_scale(query), out=of_key)
        return grad, None


def _scale(query: Tensor) -> float:
    return 1 / math.sqrt(query.shape[-1])
