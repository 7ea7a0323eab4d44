"""The two loops of `recurrence` as one GPU kernel each: cuDNN launches every step, and small models wait.

A program walks through time alone, so a step costs no launch and no synchronisation. Narrow: a program owns
one text in one direction and keeps the whole recurrent matrix in registers. Wide: the matrix does not fit, so
a program owns a tile of texts, for which reading the matrix anew each step (it stays in the caches) is paid
once, and multiplies on tensor cores in three passes, which together are as exact as single precision.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPU, or for a platform without triton: cuDNN will do
    triton = None

NARROW = (16, 32)  # the powers of two whose four tiles fit into the registers of a warp
WIDE = (64,)  # at 128 the four tiles ask for twice the shared memory there is, and cuDNN does it
WIDTHS = NARROW + WIDE
TEXTS = 16  # the fewest rows a tensor core multiplies
WARPS = 8


def fits(width: int, device: torch.device) -> bool:
    """Whether the kernels can run an LSTM of this width here."""
    return triton is not None and device.type == "cuda" and width in WIDTHS


def run(gates: Tensor, state_weights: Tensor, cell: Tensor, squashed: Tensor, hidden: Tensor) -> None:
    """`recurrence._run`: input projections become activated gates, states are filled in."""
    _, steps, batch, width = hidden.shape
    given = (gates, state_weights.contiguous(), cell, squashed, hidden, steps, batch)
    if width in NARROW:
        _run[(2, batch)](*given, W=width, num_warps=1)
    else:
        _run_wide[(2, triton.cdiv(batch, TEXTS))](*given, W=width, B=TEXTS, num_warps=WARPS)


def back(arriving: Tensor, state_weights: Tensor, gates: Tensor, cell: Tensor, squashed: Tensor) -> Tensor:
    """`recurrence._back`: the gradient at the gates before their activation."""
    _, steps, batch, width = cell.shape
    slopes = torch.empty_like(gates)
    given = (arriving.contiguous(), state_weights.contiguous(), gates, cell, squashed, slopes, steps, batch)
    if width in NARROW:
        _back[(2, batch)](*given, W=width, num_warps=1)
    else:
        _back_wide[(2, triton.cdiv(batch, TEXTS))](*given, W=width, B=TEXTS, num_warps=WARPS)
    return slopes


def _kernel(function: Callable[..., Any]) -> Any:
    """Compile it; what checks annotations while testing is taken off first, for a kernel sees no Python."""
    return triton.jit(inspect.unwrap(function))


if triton is not None:

    @_kernel
    def _tile(weights, side, gate, row, column, W: tl.constexpr):
        return tl.load(weights + (side * 4 * W + gate * W + row[:, None]) * W + column[None, :])

    @_kernel
    def _sigmoid(x):
        return 1 / (1 + tl.exp(-x))

    @_kernel
    def _tanh(x):
        return 2 / (1 + tl.exp(-2 * x)) - 1

    @_kernel
    def _run(gates, weights, cell, squashed, hidden, steps, batch, W: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1)
        row, column = tl.arange(0, W), tl.arange(0, W)
        enter = _tile(weights, side, 0, row, column, W)
        keep = _tile(weights, side, 1, row, column, W)
        leave = _tile(weights, side, 2, row, column, W)
        content = _tile(weights, side, 3, row, column, W)
        state = tl.zeros((W,), tl.float32)
        memory = tl.zeros((W,), tl.float32)
        for step in range(steps):
            at = (side * steps + step) * batch + text
            gate = gates + at * 4 * W + row
            before = state[None, :]
            i = _sigmoid(tl.load(gate) + tl.sum(enter * before, 1))
            f = _sigmoid(tl.load(gate + W) + tl.sum(keep * before, 1))
            o = _sigmoid(tl.load(gate + 2 * W) + tl.sum(leave * before, 1))
            g = _tanh(tl.load(gate + 3 * W) + tl.sum(content * before, 1))
            memory = f * memory + i * g
            flat = _tanh(memory)
            state = o * flat
            tl.store(gate, i)
            tl.store(gate + W, f)
            tl.store(gate + 2 * W, o)
            tl.store(gate + 3 * W, g)
            tl.store(cell + at * W + row, memory)
            tl.store(squashed + at * W + row, flat)
            tl.store(hidden + at * W + row, state)

    @_kernel
    def _back(arriving, weights, gates, cell, squashed, slopes, steps, batch, W: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1)
        row, column = tl.arange(0, W), tl.arange(0, W)
        enter = _tile(weights, side, 0, row, column, W)
        keep = _tile(weights, side, 1, row, column, W)
        leave = _tile(weights, side, 2, row, column, W)
        content = _tile(weights, side, 3, row, column, W)
        through = tl.zeros((W,), tl.float32)  # what the next step sends back to this step's state
        of_cell = tl.zeros((W,), tl.float32)
        for turn in range(steps):
            step = steps - 1 - turn
            at = (side * steps + step) * batch + text
            gate = gates + at * 4 * W + row
            i, f, o, g = tl.load(gate), tl.load(gate + W), tl.load(gate + 2 * W), tl.load(gate + 3 * W)
            flat = tl.load(squashed + at * W + row)
            earlier = tl.load(cell + (at - batch) * W + row, mask=row < step * W, other=0.0)
            of_hidden = tl.load(arriving + at * W + row) + through
            of_cell += of_hidden * o * (1 - flat * flat)
            di = of_cell * g * i * (1 - i)
            df = of_cell * earlier * f * (1 - f)
            do = of_hidden * flat * o * (1 - o)
            dg = of_cell * i * (1 - g * g)
            slope = slopes + at * 4 * W + row
            tl.store(slope, di)
            tl.store(slope + W, df)
            tl.store(slope + 2 * W, do)
            tl.store(slope + 3 * W, dg)
            of_cell = of_cell * f
            sent = enter * di[:, None] + keep * df[:, None] + leave * do[:, None] + content * dg[:, None]
            through = tl.sum(sent, 0)

    @_kernel
    def _toward(state, weights, side, gate, unit, W: tl.constexpr):
        # A gate's share of the state: state @ weights[gate].T
        across = tl.load(weights + (side * 4 * W + gate * W + unit[None, :]) * W + unit[:, None])
        return tl.dot(state, across, input_precision="tf32x3")

    @_kernel
    def _from(slope, weights, side, gate, unit, W: tl.constexpr):
        # What a gate sends back to the state before it: slope @ weights[gate]
        return tl.dot(slope, _tile(weights, side, gate, unit, unit, W), input_precision="tf32x3")

    @_kernel
    def _run_wide(gates, weights, cell, squashed, hidden, steps, batch, W: tl.constexpr, B: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
        unit = tl.arange(0, W)
        real = (text < batch)[:, None]
        state = tl.zeros((B, W), tl.float32)
        memory = tl.zeros((B, W), tl.float32)
        for step in range(steps):
            at = ((side * steps + step) * batch + text)[:, None]
            gate = gates + at * 4 * W + unit[None, :]
            place = at * W + unit[None, :]
            i = _sigmoid(tl.load(gate, real, 0.0) + _toward(state, weights, side, 0, unit, W))
            f = _sigmoid(tl.load(gate + W, real, 0.0) + _toward(state, weights, side, 1, unit, W))
            o = _sigmoid(tl.load(gate + 2 * W, real, 0.0) + _toward(state, weights, side, 2, unit, W))
            g = _tanh(tl.load(gate + 3 * W, real, 0.0) + _toward(state, weights, side, 3, unit, W))
            memory = f * memory + i * g
            flat = _tanh(memory)
            state = o * flat
            tl.store(gate, i, real)
            tl.store(gate + W, f, real)
            tl.store(gate + 2 * W, o, real)
            tl.store(gate + 3 * W, g, real)
            tl.store(cell + place, memory, real)
            tl.store(squashed + place, flat, real)
            tl.store(hidden + place, state, real)

    @_kernel
    def _back_wide(
        arriving, weights, gates, cell, squashed, slopes, steps, batch, W: tl.constexpr, B: tl.constexpr
    ):
        side, text = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
        unit = tl.arange(0, W)
        real = (text < batch)[:, None]
        through = tl.zeros((B, W), tl.float32)  # what the next step sends back to this step's state
        of_cell = tl.zeros((B, W), tl.float32)
        for turn in range(steps):
            step = steps - 1 - turn
            at = ((side * steps + step) * batch + text)[:, None]
            gate = gates + at * 4 * W + unit[None, :]
            place = at * W + unit[None, :]
            i, f = tl.load(gate, real, 0.0), tl.load(gate + W, real, 0.0)
            o, g = tl.load(gate + 2 * W, real, 0.0), tl.load(gate + 3 * W, real, 0.0)
            flat = tl.load(squashed + place, real, 0.0)
            earlier = tl.load(cell + place - batch * W, real & (unit[None, :] < step * W), 0.0)
            of_hidden = tl.load(arriving + place, real, 0.0) + through
            of_cell += of_hidden * o * (1 - flat * flat)
            di = of_cell * g * i * (1 - i)
            df = of_cell * earlier * f * (1 - f)
            do = of_hidden * flat * o * (1 - o)
            dg = of_cell * i * (1 - g * g)
            slope = slopes + at * 4 * W + unit[None, :]
            tl.store(slope, di, real)
            tl.store(slope + W, df, real)
            tl.store(slope + 2 * W, do, real)
            tl.store(slope + 3 * W, dg, real)
            of_cell = of_cell * f
            through = _from(di, weights, side, 0, unit, W) + _from(df, weights, side, 1, unit, W)
            through += _from(do, weights, side, 2, unit, W) + _from(dg, weights, side, 3, unit, W)
