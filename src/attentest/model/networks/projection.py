"""Projections make weights of raw scores: each maps `(scores, mask)` onto the simplex over real tokens.

A row without a single real token gets zero weights rather than a crash: sorting-based maps index past the
end of an all-masked row.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import entmax
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attentest.refusal import Refusal, look_up

Scores = Float[Tensor, "batch token"]
RealTokens = Bool[Tensor, "batch token"]


def _masked(
    scores: Scores, mask: RealTokens, onto_simplex: Callable[[Tensor], Tensor]
) -> Float[Tensor, "batch token"]:
    """Project with padding at minus infinity, then silence the rows that had nothing to attend to."""
    empty = ~mask.any(dim=-1, keepdim=True)
    open_scores = scores.masked_fill(~(mask | empty), float("-inf"))
    return onto_simplex(open_scores).masked_fill(~mask, 0.0)


def softmax(scores: Scores, mask: RealTokens) -> Scores:
    """`exp(z) / sum exp(z)`."""
    return _masked(scores, mask, partial(torch.softmax, dim=-1))


def sparsemax(scores: Scores, mask: RealTokens) -> Scores:
    """The Euclidean projection of the scores onto the simplex (Martins & Astudillo 2016)."""
    return _masked(scores, mask, partial(entmax.sparsemax, dim=-1))


def entmax15(scores: Scores, mask: RealTokens) -> Scores:
    """1.5-entmax, half way between softmax and sparsemax (Peters et al. 2019)."""
    return _masked(scores, mask, partial(entmax.entmax15, dim=-1))


def sparsegen(scores: Scores, mask: RealTokens, *, sparsity: float) -> Scores:
    """Sparsegen-lin (Laha et al. 2018): completing the square gives `sparsemax(z / (1 - lambda))`.

    0 is sparsemax, towards 1 one token takes all, towards minus infinity it is uniform; never softmax.
    """
    if not sparsity < 1:
        raise Refusal(
            "sparsegen",
            got=f"sparsity {sparsity}",
            needs="a number below 1",
            way_out="Write for example sparsegen(0.5); 0 is sparsemax.",
        )
    return sparsemax(scores / (1 - sparsity), mask)


def gumbel_draws(like: Scores, rng: torch.Generator) -> Scores:
    """Gumbel noise of that shape: minus the logarithm of exponential draws, where zero would be infinite."""
    draw = torch.empty(like.shape, dtype=like.dtype, device=rng.device).exponential_(generator=rng)
    return -draw.clamp_min(torch.finfo(like.dtype).tiny).log()


def gumbel_softmax(
    scores: Scores, mask: RealTokens, *, temperature: float, rng: torch.Generator | None = None
) -> Scores:
    """`softmax((z + g) / temperature)` with fresh Gumbel noise g from `rng`; without an `rng`, no noise."""
    if not temperature > 0:
        raise Refusal(
            "gumbel-softmax or tempered-softmax",
            got=f"temperature {temperature}",
            needs="a number above 0",
            way_out="Write for example gumbel-softmax(0.8).",
        )
    if rng is not None:
        scores = scores + gumbel_draws(scores, rng).to(scores.device)
    return softmax(scores / temperature, mask)


def tempered_softmax(scores: Scores, mask: RealTokens, *, temperature: float) -> Scores:
    """`softmax(z / temperature)`: what Gumbel-softmax is without its noise, in training too."""
    return gumbel_softmax(scores, mask, temperature=temperature)


def uniform(scores: Scores, mask: RealTokens) -> Scores:
    """`1 / T` on the real tokens, whatever the scores."""
    real = mask.to(scores.dtype)
    return real / real.sum(dim=-1, keepdim=True).clamp_min(1)


SMALLEST, LARGEST = 1e-9, 1e9  # of a parameter: scores are divided by it, in single precision


@final
@dataclass(frozen=True)
class Projection:
    """A projection as a configuration names it: `softmax`, `sparsegen(0.6)`, `stored`."""

    name: str
    parameter: float | None = None

    @classmethod
    def parse(cls, written: str) -> Projection:
        """Read `name` or `name(number)`; a missing or needless number is refused."""
        match = re.fullmatch(r"([a-z0-9-]+)(?:\(([^()]*)\))?", written.strip())
        name, inner = match.groups() if match else (written, None)
        wants = look_up(name, PROJECTIONS, "projection") in PARAMETERS
        try:
            number = None if inner is None else float(inner)
        except ValueError:
            number, inner = None, f"{inner!r}"
        if number and not math.isnan(number) and not SMALLEST <= abs(number) <= LARGEST:  # overflows
            number, inner = None, f"{inner}"
        if wants != (number is not None) or (inner is not None and number is None):
            size = f"0, or from {SMALLEST:g} to {LARGEST:g} in size"
            needs = f"a number, as in {name}(0.5), {size}" if wants else "no parameter"
            raise Refusal(
                f"projection {written!r}",
                got="no number" if inner is None else f"the parameter {inner}",
                needs=needs,
                way_out="Write the projection as in `attentest train --help`.",
            )
        chosen = cls(name, number)
        if wants:  # let the function itself judge the number
            chosen(torch.zeros(1, 1), torch.ones(1, 1, dtype=torch.bool))
        return chosen

    def __call__(self, scores: Scores, mask: RealTokens, rng: torch.Generator | None = None) -> Scores:
        """The weights; only Gumbel-softmax draws from `rng`."""
        function = PROJECTIONS[self.name]
        if function is gumbel_softmax:
            return gumbel_softmax(scores, mask, temperature=self.parameter or 0.0, rng=rng)
        if function is tempered_softmax:
            return tempered_softmax(scores, mask, temperature=self.parameter or 0.0)
        if function is sparsegen:
            return sparsegen(scores, mask, sparsity=0.0 if self.parameter is None else self.parameter)
        return function(scores, mask)


# `stored` weights come from elsewhere, by instance id; until they are looked up the place is uniform.
PROJECTIONS: dict[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
    "sparsegen": sparsegen,
    "gumbel-softmax": gumbel_softmax,
    "tempered-softmax": tempered_softmax,
    "uniform": uniform,
    "stored": uniform,
}
PARAMETERS = (sparsegen, gumbel_softmax, tempered_softmax)
