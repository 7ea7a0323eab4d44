"""The kernels of `recurrence_gpu` for LSTMs of up to 64 units; compiled where triton is installed.

Narrow: a program owns one text in one direction and keeps the whole recurrent matrix in registers. Wide: the
matrix does not fit, so a program owns a tile of texts, for which reading the matrix anew each step (it stays
in the caches) is paid once, and multiplies on tensor cores in three passes, which together are as exact as
single precision.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

try:
    import triton
    import triton.language as tl
except ImportError:  # torch for CPU, or for a platform without triton: cuDNN will do
    triton = None


def kernel(function: Callable[..., Any]) -> Any:
    """Compile it; what checks annotations while testing is taken off first, for a kernel sees no Python."""
    return triton.jit(inspect.unwrap(function))


if triton is not None:

    @kernel
    def tile(weights, side, gate, row, column, W: tl.constexpr):
        return tl.load(weights + (side * 4 * W + gate * W + row[:, None]) * W + column[None, :])

    @kernel
    def sigmoid(x):
        return 1 / (1 + tl.exp(-x))

    @kernel
    def tanh(x):
        return 2 / (1 + tl.exp(-2 * x)) - 1

    @kernel
    def run_narrow(gates, weights, cell, squashed, hidden, steps, batch, W: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1)
        row, column = tl.arange(0, W), tl.arange(0, W)
        enter = tile(weights, side, 0, row, column, W)
        keep = tile(weights, side, 1, row, column, W)
        leave = tile(weights, side, 2, row, column, W)
        content = tile(weights, side, 3, row, column, W)
        state = tl.zeros((W,), tl.float32)
        memory = tl.zeros((W,), tl.float32)
        for step in range(steps):
            at = (side * steps + step) * batch + text
            gate = gates + at * 4 * W + row
            before = state[None, :]
            i = sigmoid(tl.load(gate) + tl.sum(enter * before, 1))
            f = sigmoid(tl.load(gate + W) + tl.sum(keep * before, 1))
            o = sigmoid(tl.load(gate + 2 * W) + tl.sum(leave * before, 1))
            g = tanh(tl.load(gate + 3 * W) + tl.sum(content * before, 1))
            memory = f * memory + i * g
            flat = tanh(memory)
            state = o * flat
            tl.store(gate, i)
            tl.store(gate + W, f)
            tl.store(gate + 2 * W, o)
            tl.store(gate + 3 * W, g)
            tl.store(cell + at * W + row, memory)
            tl.store(squashed + at * W + row, flat)
            tl.store(hidden + at * W + row, state)

    @kernel
    def back_narrow(arriving, weights, gates, cell, squashed, slopes, steps, batch, W: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1)
        row, column = tl.arange(0, W), tl.arange(0, W)
        enter = tile(weights, side, 0, row, column, W)
        keep = tile(weights, side, 1, row, column, W)
        leave = tile(weights, side, 2, row, column, W)
        content = tile(weights, side, 3, row, column, W)
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

    @kernel
    def toward(state, weights, side, gate, unit, W: tl.constexpr):
        # A gate's share of the state: state @ weights[gate].T
        across = tl.load(weights + (side * 4 * W + gate * W + unit[None, :]) * W + unit[:, None])
        return tl.dot(state, across, input_precision="tf32x3")

    @kernel
    def from_gate(slope, weights, side, gate, unit, W: tl.constexpr):
        # What a gate sends back to the state before it: slope @ weights[gate]
        return tl.dot(slope, tile(weights, side, gate, unit, unit, W), input_precision="tf32x3")

    @kernel
    def run_wide(gates, weights, cell, squashed, hidden, steps, batch, W: tl.constexpr, B: tl.constexpr):
        side, text = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
        unit = tl.arange(0, W)
        real = (text < batch)[:, None]
        state = tl.zeros((B, W), tl.float32)
        memory = tl.zeros((B, W), tl.float32)
        for step in range(steps):
            at = ((side * steps + step) * batch + text)[:, None]
            gate = gates + at * 4 * W + unit[None, :]
            place = at * W + unit[None, :]
            i = sigmoid(tl.load(gate, real, 0.0) + toward(state, weights, side, 0, unit, W))
            f = sigmoid(tl.load(gate + W, real, 0.0) + toward(state, weights, side, 1, unit, W))
            o = sigmoid(tl.load(gate + 2 * W, real, 0.0) + toward(state, weights, side, 2, unit, W))
            g = tanh(tl.load(gate + 3 * W, real, 0.0) + toward(state, weights, side, 3, unit, W))
            memory = f * memory + i * g
            flat = tanh(memory)
            state = o * flat
            tl.store(gate, i, real)
            tl.store(gate + W, f, real)
            tl.store(gate + 2 * W, o, real)
            tl.store(gate + 3 * W, g, real)
            tl.store(cell + place, memory, real)
            tl.store(squashed + place, flat, real)
            tl.store(hidden + place, state, real)

    @kernel
    def back_wide(
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
            through = from_gate(di, weights, side, 0, unit, W) + from_gate(df, weights, side, 1, unit, W)
            through += from_gate(do, weights, side, 2, unit, W) + from_gate(dg, weights, side, 3, unit, W)
