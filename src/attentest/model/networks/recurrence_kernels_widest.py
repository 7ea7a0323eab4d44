"""The kernels of `recurrence_gpu` for LSTMs of 128 units, which only stacks of models take.

Not even one gate's matrix fits beside the others, so products take the state in parts, which are read back
from where the step before has put them.
"""

from __future__ import annotations

from attentest.model.networks.recurrence_kernels import kernel, triton

if triton is not None:
    import triton.language as tl

    from attentest.model.networks.recurrence_kernels import sigmoid, tanh

    @kernel
    def run_widest(
        gates,
        weights,
        cell,
        squashed,
        hidden,
        steps,
        batch,
        W: tl.constexpr,
        B: tl.constexpr,
        K: tl.constexpr,
        PRECISION: tl.constexpr,
    ):
        side, text = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
        unit, part = tl.arange(0, W), tl.arange(0, K)
        real = (text < batch)[:, None]
        memory = tl.zeros((B, W), tl.float32)
        own = weights + side * 4 * W * W
        for step in range(steps):
            at = ((side * steps + step) * batch + text)[:, None]
            gate = gates + at * 4 * W + unit[None, :]
            place = at * W + unit[None, :]
            i, f = tl.load(gate, real, 0.0), tl.load(gate + W, real, 0.0)
            o, g = tl.load(gate + 2 * W, real, 0.0), tl.load(gate + 3 * W, real, 0.0)
            before = hidden + (at - batch) * W + part[None, :]
            seen = real & (part[None, :] < step * W)
            for k in range(0, W, K):
                h = tl.load(before + k, seen, 0.0)
                across = own + unit[None, :] * W + k + part[:, None]
                i = tl.dot(h, tl.load(across), i, input_precision=PRECISION)
                f = tl.dot(h, tl.load(across + W * W), f, input_precision=PRECISION)
                o = tl.dot(h, tl.load(across + 2 * W * W), o, input_precision=PRECISION)
                g = tl.dot(h, tl.load(across + 3 * W * W), g, input_precision=PRECISION)
            i, f, o, g = sigmoid(i), sigmoid(f), sigmoid(o), tanh(g)
            memory = f * memory + i * g
            flat = tanh(memory)
            tl.store(gate, i, real)
            tl.store(gate + W, f, real)
            tl.store(gate + 2 * W, o, real)
            tl.store(gate + 3 * W, g, real)
            tl.store(cell + place, memory, real)
            tl.store(squashed + place, flat, real)
            tl.store(hidden + place, o * flat, real)
            tl.debug_barrier()  # the next step reads the state that other threads have put there

    @kernel
    def back_widest(
        arriving,
        weights,
        gates,
        cell,
        squashed,
        slopes,
        steps,
        batch,
        W: tl.constexpr,
        B: tl.constexpr,
        K: tl.constexpr,
        PRECISION: tl.constexpr,
    ):
        side, text = tl.program_id(0), tl.program_id(1) * B + tl.arange(0, B)
        unit, part = tl.arange(0, W), tl.arange(0, K)
        real = (text < batch)[:, None]
        through = tl.zeros((B, W), tl.float32)  # what the next step sends back to this step's state
        of_cell = tl.zeros((B, W), tl.float32)
        own = weights + side * 4 * W * W
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
            slope = slopes + at * 4 * W + unit[None, :]
            tl.store(slope, of_cell * g * i * (1 - i), real)
            tl.store(slope + W, of_cell * earlier * f * (1 - f), real)
            tl.store(slope + 2 * W, of_hidden * flat * o * (1 - o), real)
            tl.store(slope + 3 * W, of_cell * i * (1 - g * g), real)
            of_cell = of_cell * f
            tl.debug_barrier()
            through = tl.zeros((B, W), tl.float32)
            for k in range(0, 4 * W, K):  # the four gates are one long product
                d = tl.load(slopes + at * 4 * W + k + part[None, :], real, 0.0)
                across = tl.load(own + (k + part[:, None]) * W + unit[None, :])
                through = tl.dot(d, across, through, input_precision=PRECISION)
