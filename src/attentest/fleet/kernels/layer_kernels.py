"""The kernels of `stacked_layer`: what stands between its products, in one pass over memory each.

Written in torch, a residual with its norm is five passes and its gradient nine; on a GPU these, not the
products, are what a layer costs. A program owns a stretch of one model's rows, and adds up for itself what
the model's biases and weights will need.
"""

from __future__ import annotations

from attentest.model.networks.recurrence_kernels import kernel, triton

ROWS, TILES = 16, 8  # rows of a tile, and tiles of a program
EPS = 1e-5  # torch's, of a layer norm

if triton is not None:
    import triton.language as tl

    LEAST = tl.constexpr(EPS)

    @kernel
    def norm(
        stayed,
        added,
        bias,
        weight,
        shift,
        out,
        normal,
        spread,
        rows,
        W: tl.constexpr,
        ROWS: tl.constexpr,
        TILES: tl.constexpr,
    ):
        model, column = tl.program_id(1).to(tl.int64), tl.arange(0, W)
        of_model = model * W + column
        lift, scale = tl.load(bias + of_model)[None, :], tl.load(weight + of_model)[None, :]
        move = tl.load(shift + of_model)[None, :]
        for tile in range(TILES):
            row = (tl.program_id(0) * TILES + tile) * ROWS + tl.arange(0, ROWS)
            real, at = (row < rows)[:, None], ((model * rows + row) * W)[:, None] + column[None, :]
            x = tl.load(stayed + at, real, 0.0) + tl.load(added + at, real, 0.0) + lift
            x -= (tl.sum(x, 1) / W)[:, None]
            inverse = 1 / tl.sqrt(tl.sum(x * x, 1) / W + LEAST)
            x *= inverse[:, None]
            tl.store(normal + at, x, real)
            tl.store(spread + model * rows + row, inverse, row < rows)
            tl.store(out + at, x * scale + move, real)

    @kernel
    def norm_back(
        slope,
        normal,
        spread,
        weight,
        grad,
        sums,
        rows,
        W: tl.constexpr,
        ROWS: tl.constexpr,
        TILES: tl.constexpr,
    ):
        model, column = tl.program_id(1).to(tl.int64), tl.arange(0, W)
        scale = tl.load(weight + model * W + column)[None, :]
        of_bias = tl.zeros((W,), tl.float32)
        of_weight = tl.zeros((W,), tl.float32)
        of_shift = tl.zeros((W,), tl.float32)
        for tile in range(TILES):
            row = (tl.program_id(0) * TILES + tile) * ROWS + tl.arange(0, ROWS)
            real, at = (row < rows)[:, None], ((model * rows + row) * W)[:, None] + column[None, :]
            g, x = tl.load(slope + at, real, 0.0), tl.load(normal + at, real, 0.0)
            inverse = tl.load(spread + model * rows + row, row < rows, 0.0)
            scaled = g * scale
            common = (tl.sum(scaled, 1) / W)[:, None] + x * (tl.sum(scaled * x, 1) / W)[:, None]
            down = (scaled - common) * inverse[:, None]
            tl.store(grad + at, down, real)
            of_bias += tl.sum(down, 0)
            of_weight += tl.sum(g * x, 0)
            of_shift += tl.sum(g, 0)
        to = sums + (model * tl.num_programs(0) + tl.program_id(0)) * 3 * W + column
        tl.store(to, of_bias)
        tl.store(to + W, of_weight)
        tl.store(to + 2 * W, of_shift)

    @kernel
    def relu(given, bias, out, rows, W: tl.constexpr, ROWS: tl.constexpr, TILES: tl.constexpr):
        model, column = tl.program_id(1).to(tl.int64), tl.arange(0, W)
        lift = tl.load(bias + model * W + column)[None, :]
        for tile in range(TILES):
            row = (tl.program_id(0) * TILES + tile) * ROWS + tl.arange(0, ROWS)
            real, at = (row < rows)[:, None], ((model * rows + row) * W)[:, None] + column[None, :]
            tl.store(out + at, tl.maximum(tl.load(given + at, real, 0.0) + lift, 0.0), real)

    @kernel
    def relu_back(slope, out, grad, sums, rows, W: tl.constexpr, ROWS: tl.constexpr, TILES: tl.constexpr):
        model, column = tl.program_id(1).to(tl.int64), tl.arange(0, W)
        of_bias = tl.zeros((W,), tl.float32)
        for tile in range(TILES):
            row = (tl.program_id(0) * TILES + tile) * ROWS + tl.arange(0, ROWS)
            real, at = (row < rows)[:, None], ((model * rows + row) * W)[:, None] + column[None, :]
            down = tl.where(tl.load(out + at, real, 0.0) > 0, tl.load(slope + at, real, 0.0), 0.0)
            tl.store(grad + at, down, real)
            of_bias += tl.sum(down, 0)
        tl.store(sums + (model * tl.num_programs(0) + tl.program_id(0)) * W + column, of_bias)
