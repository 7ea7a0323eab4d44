"""The kernels of `stacked_rows`: a program for each name of a row, of which the first to come does the work.

`seen` tells who is first: every program leaves the present there and gets what was there before. Who gets the
present is too late.
"""

from __future__ import annotations

from attentest.model.networks.recurrence_kernels import kernel, triton
from attentest.model.training.optimiser import EPS, FIRST, SECOND

if triton is not None:
    import triton.language as tl

    FADE, AGE, LEAST = tl.constexpr(FIRST), tl.constexpr(SECOND), tl.constexpr(EPS)

    @kernel
    def catch_up(
        rows,
        table,
        first,
        second,
        largest,
        seen,
        steps,
        fading,
        aging,
        glides,
        wide,
        BLOCK: tl.constexpr,
    ):
        row, now = tl.load(rows + tl.program_id(0)), tl.load(steps)
        if row >= 0:
            since = tl.atomic_xchg(seen + row, now, sem="relaxed")
            if since < now:
                idle = now - since
                left = tl.load(fading + idle)
                glide = (tl.load(glides + since) - left * tl.load(glides + now)).to(tl.float32)
                column = tl.arange(0, BLOCK)
                at, real = row * wide + column, column < wide
                momentum = tl.load(first + at, real, 0.0)
                toward = momentum / (tl.sqrt(tl.load(largest + at, real, 0.0)) + LEAST)
                tl.store(table + at, tl.load(table + at, real, 0.0) - toward * glide, real)
                tl.store(first + at, momentum * left.to(tl.float32), real)
                age = tl.load(aging + idle).to(tl.float32)
                tl.store(second + at, tl.load(second + at, real, 0.0) * age, real)

    @kernel
    def add(rows, gradient, sums, wide, BLOCK: tl.constexpr):
        name = tl.program_id(0).to(tl.int64)
        row = tl.load(rows + name)
        if row >= 0:
            column = tl.arange(0, BLOCK)
            real = column < wide
            slope = tl.load(gradient + name * wide + column, real, 0.0)
            tl.atomic_add(sums + row * wide + column, slope, real, sem="relaxed")

    @kernel
    def move(
        rows,
        table,
        first,
        second,
        largest,
        seen,
        steps,
        fading,
        aging,
        gradient,
        rate,
        decay,
        wide,
        BLOCK: tl.constexpr,
    ):
        row, now = tl.load(rows + tl.program_id(0)), tl.load(steps)
        if row >= 0:
            since = tl.atomic_xchg(seen + row, now, sem="relaxed")
            if since < now:
                column = tl.arange(0, BLOCK)
                at, real = row * wide + column, column < wide
                value, before = tl.load(table + at, real, 0.0), tl.load(first + at, real, 0.0)
                slope = tl.load(gradient + at, real, 0.0) + decay * value
                momentum = before + (1 - FADE) * (slope - before)
                square = AGE * tl.load(second + at, real, 0.0) + (1 - AGE) * slope * slope
                most = tl.maximum(tl.load(largest + at, real, 0.0), square)
                bottom = tl.sqrt(most) / tl.sqrt((1 - tl.load(aging + now)).to(tl.float32)) + LEAST
                scale = rate / (1 - tl.load(fading + now)).to(tl.float32)
                tl.store(table + at, value - momentum / bottom * scale, real)
                tl.store(first + at, momentum, real)
                tl.store(second + at, square, real)
                tl.store(largest + at, most, real)
                tl.store(gradient + at, tl.zeros_like(value), real)
