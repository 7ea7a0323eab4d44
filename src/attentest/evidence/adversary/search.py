"""The published search for adversarial attention (Jain & Wallace 2019, JW-5): candidates and Adam.

It minimises, for every text, `sum_i [-JSD(a_i, a) + penalty * relu(TVD_i - optimised_at)] - pair` over the
softmax of free scores. The penalty is subtracted from what is sought: with the sign of the paper's text it
would reward violations (A1). The derivatives of softmax, divergence, pair term and hinge are written out,
so a step is some thirty in-place operations on all candidates of all texts; only the way from attention to
output depends on the model, and only a decoder that is not affine is asked for it through autograd.

Everything inside is laid out (unit, candidate, batch): sums over units then add up long contiguous rows,
where short texts would otherwise leave a vector unit nearly empty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.model.divergence import LN2, jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.model.subset import in_parts
from attentest.refusal import Refusal, look_up

# What each pair's divergence is multiplied by: the mean over distinct pairs, and the published mean over all
# k x k, which counts every pair twice and each candidate with itself (A3).
PAIR_TERMS: dict[str, Callable[[int], float]] = {
    "distinct": lambda k: 2 / (k * max(k - 1, 1)),
    "as-published": lambda k: 2 / k**2,
}

NOISE = 3.0  # of the start; log-uniform scores below it are one constant, which softmax does not see
ABSENT, TINY = -1e4, 1e-30  # padding: no weight that a sum would notice, no logarithm that is infinite
MARGIN = 1e-6  # float32 may misjudge an output by about this much; what is kept must pass in float64
CHUNK = 250_000  # scores at a time: a dozen arrays of a megabyte, whatever the length of the texts

Laid = Float[Tensor, "unit variant batch"]
Own = Float[Tensor, "unit 1 batch"]
Pull = Callable[[Float[Tensor, "variant batch"]], Laid]
Road = Callable[[Laid], tuple[Float[Tensor, "variant batch"], Pull]]


@final
@dataclass(frozen=True, kw_only=True)
class Searched:
    """What one run found: the largest divergence with `TVD <= epsilon`, at least 0 as the original counts.

    NaN where the model's own output is; 0 for one token, which callers leave out.
    """

    epsilons: tuple[float, ...]
    last: Float[Tensor, "epsilon batch"]  # among the candidates after the last step: what was published
    best: Float[Tensor, "epsilon batch"]  # among all candidates of all steps
    weights: Float[Tensor, "epsilon batch unit"]  # of the best


@final
@dataclass(frozen=True, kw_only=True)
class PublishedSearch:
    """The search with its published settings.

    `optimised_at` is the change of output that goes unpunished; None means the published one, which is 0.01,
    or 0.005 for models with a query, where the code holds twice the total variation against 0.01 (A2).
    `pair` rewards candidates that differ: a name of PAIR_TERMS, or None to go without.
    """

    epsilons: tuple[float, ...] = (0.01, 0.05)
    candidates: int = 5
    steps: int = 500
    learning_rate: float = 0.01
    penalty: float = 500.0
    optimised_at: float | None = None
    pair: str | None = "distinct"

    def __post_init__(self) -> None:
        _need(self.candidates >= 1, f"{self.candidates} candidates", "at least 1", "The paper uses 5.")
        _need(self.steps >= 1, f"{self.steps} steps", "at least 1", "The paper uses 500.")
        _need(len(self.epsilons) > 0, "no epsilon", "at least one", "The paper uses 0.01 and 0.05.")
        for epsilon in (*self.epsilons, 0.01 if self.optimised_at is None else self.optimised_at):
            small = "The paper uses 0.01, and 0.05 with a query."
            _need(0 < epsilon <= 1, f"epsilon {epsilon}", "a total variation above 0 and at most 1", small)
        for name in ("learning_rate", "penalty"):
            size = getattr(self, name)
            fine = 0 < size < math.inf
            _need(fine, f"{name} {size}", "a finite number above 0", "The paper uses 0.01 and 500.")
        if self.pair is not None:
            look_up(self.pair, PAIR_TERMS, "pair term")

    @torch.no_grad()
    def run(self, model: Model, reading: Reading, *, rng: torch.Generator) -> Searched:
        """Search every text of the reading; nothing is encoded again and no parameter gets a gradient."""
        noise = torch.randn(int(reading.mask.sum()), self.candidates, generator=rng)  # real units only
        scores = reading.weights.new_full((*reading.mask.shape, self.candidates), ABSENT)
        scores[reading.mask] = NOISE * noise.to(scores)
        found = [
            self._search(model, part, scores[rows].permute(1, 2, 0).contiguous())
            for rows, part in in_parts(reading, max(1, CHUNK // max(1, scores[0].numel())))
        ]
        last, best, weights = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
        return Searched(epsilons=self.epsilons, last=last, best=best, weights=weights)

    def _search(self, model: Model, reading: Reading, scores: Laid) -> tuple[Tensor, ...]:
        own = reading.weights.T.unsqueeze(1).contiguous()
        kept = _Kept(own, self.epsilons)
        self._descend(road_to_output(model, reading), own, scores, kept, reading.query is not None)
        return self._judge(model, reading, torch.cat([scores.softmax(0), kept.weights], dim=1))

    def _descend(self, road: Road, own: Own, scores: Laid, kept: _Kept, has_query: bool) -> None:
        """Move `scores` in place, showing every iterate but the last to `kept`."""
        k, adam = self.candidates, _AmsGrad(scores, self.learning_rate)
        share = 0.0 if self.pair is None else PAIR_TERMS[self.pair](k)
        unpunished = self.optimised_at or (0.005 if has_query else 0.01)
        own_part = torch.xlogy(own, own).sum(0)
        for _ in range(self.steps):
            logs = scores.log_softmax(0)
            weights = logs.exp().clamp_min_(TINY)
            both = weights + own
            slope = both.log()
            divergence = 0.5 * ((weights * logs).sum(0) + own_part - both.mul_(slope).sum(0)) + LN2
            change, pull = road(weights)
            kept.see(weights, change, divergence)
            # The derivative of JSD(x, y) in x is 0.5 ln(2x / (x + y)); softmax's is blind to constants.
            slope.sub_(logs, alpha=1 + share * (k - 1))
            if share:
                slope.add_(_sums_with_others(weights), alpha=share)
            slope.mul_(0.5).add_(pull(self.penalty * (change > unpunished).to(change)))
            adam.step(slope.sub_((weights * slope).sum(0)).mul_(weights))

    def _judge(self, model: Model, reading: Reading, found: Laid) -> tuple[Tensor, ...]:
        """Measure the last candidates and those kept in float64, where the decision is affine.

        A decoder that is not keeps its own precision for the output: its float32 error of about 1e-7 is far
        below any tolerance in use. What an epsilon allows, a larger one allows too, so all are candidates.
        """
        found = found.double().mul_(reading.mask.T.unsqueeze(1))
        found = found.div_(found.sum(0))
        own = reading.weights.double()
        road = road_to_output(model, reading, torch.float64)
        change = road(found)[0]
        divergence = jensen_shannon(found.permute(2, 1, 0), own[:, None]).T
        last, best, weights = [], [], []
        everything = torch.cat([found, own.T.unsqueeze(1)], dim=1)
        for epsilon in self.epsilons:
            allowed = divergence.where(change <= epsilon, 0.0)
            most, which = torch.cat([allowed, allowed.new_zeros(1, len(own))]).max(0)
            which = which.where(most > 0, len(allowed))  # where nothing is better, the original itself
            last.append(allowed[: self.candidates].amax(0).where(~change[0].isnan(), torch.nan))
            best.append(most.where(~change[0].isnan(), torch.nan))
            weights.append(everything.gather(1, which.expand(len(found), 1, -1))[:, 0].T)
        return torch.stack(last), torch.stack(best), torch.stack(weights)


def road_to_output(model: Model, reading: Reading, dtype: torch.dtype | None = None) -> Road:
    """From attention to the change of output and its vector-Jacobian product, by hand where it is affine."""
    if reading.values is None or reading.bias is None:
        return _Decided(model, reading)
    dtype = dtype or reading.weights.dtype
    bias = reading.bias.to(dtype).expand(len(reading.weights), -1)
    if reading.batch.answers is not None:
        bias = bias.masked_fill(~reading.batch.answers, -math.inf)
    kind = _Several if bias.shape[1] > 2 else _Binary
    return kind(reading.weights.to(dtype), reading.values.to(dtype), bias)


@final
class _Binary:
    """One logit, or the difference of two: TVD is the change of one sigmoid."""

    def __init__(
        self,
        weights: Float[Tensor, "batch unit"],
        values: Float[Tensor, "batch unit class"],
        bias: Float[Tensor, "batch class"],
    ) -> None:
        difference = values if values.shape[2] == 1 else values.diff(dim=2)
        self.values = difference[..., 0].T.unsqueeze(1).contiguous()
        self.bias = bias[:, 0] if bias.shape[1] == 1 else bias.diff(dim=1)[:, 0]
        self.own = self._output(weights.T.unsqueeze(1))

    def _output(self, weights: Laid) -> Float[Tensor, "variant batch"]:
        return torch.sigmoid((weights * self.values).sum(0) + self.bias)

    def __call__(self, weights: Laid) -> tuple[Tensor, Pull]:
        output = self._output(weights)
        moved = output - self.own
        return moved.abs(), lambda by: (by * moved.sign() * output * (1 - output)) * self.values


@final
class _Several:
    """A softmax over an affine decision."""

    def __init__(
        self,
        weights: Float[Tensor, "batch unit"],
        values: Float[Tensor, "batch unit class"],
        bias: Float[Tensor, "batch class"],
    ) -> None:
        self.values, self.bias = values, bias
        self.own = self._output(weights.T.unsqueeze(1))

    def _output(self, weights: Laid) -> Float[Tensor, "variant batch class"]:
        return (torch.einsum("uvb,buc->vbc", weights, self.values) + self.bias).softmax(-1)

    def __call__(self, weights: Laid) -> tuple[Tensor, Pull]:
        output = self._output(weights)
        side = 0.5 * (output - self.own).sign()

        def pull(by: Tensor) -> Tensor:
            of_logits = output * (side - (output * side).sum(-1, keepdim=True)) * by[..., None]
            return torch.einsum("vbc,buc->uvb", of_logits, self.values)

        return total_variation(output, self.own), pull


@final
class _Decided:
    """Any decoder, through `decide` and autograd, with what was read held fixed."""

    def __init__(self, model: Model, reading: Reading) -> None:
        query = None if reading.query is None else reading.query.detach()
        held = replace(reading, hidden=reading.hidden.detach(), query=query)
        self.model, self.reading = model, held
        self.own = distribution(model.decide(held))[:, None].detach()

    def __call__(self, weights: Laid) -> tuple[Tensor, Pull]:
        given = weights.permute(2, 1, 0).to(self.reading.hidden.dtype).requires_grad_()
        with torch.enable_grad():
            change = total_variation(distribution(self.model.decide(self.reading, given)), self.own)
        return change.detach().T, lambda by: torch.autograd.grad(change, given, by.T)[0].permute(2, 1, 0)


@final
class _Kept:
    """The best feasible iterate of every text so far, for each epsilon; at first the original."""

    def __init__(self, own: Own, epsilons: tuple[float, ...]) -> None:
        self.limits = own.new_tensor(epsilons)[:, None, None] - MARGIN
        self.weights = own.repeat(1, len(epsilons), 1)
        self.divergence = own.new_zeros(len(epsilons), own.shape[2])

    def see(self, weights: Laid, change: Tensor, divergence: Tensor) -> None:
        most, which = divergence.where(change <= self.limits, -1.0).max(1)
        better = most > self.divergence
        found = weights.gather(1, which.expand(len(weights), -1, -1))
        torch.where(better, found, self.weights, out=self.weights)
        torch.where(better, most, self.divergence, out=self.divergence)


@final
class _AmsGrad:
    """Adam with amsgrad on one tensor, in place, as torch defines it."""

    def __init__(self, scores: Laid, rate: float, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.scores, self.rate, self.betas, self.count = scores, rate, betas, 0
        self.mean, self.square, self.largest = (torch.zeros_like(scores) for _ in range(3))

    def step(self, slope: Laid) -> None:
        self.count += 1
        kept, kept_square = self.betas
        root = math.sqrt(1 - kept_square**self.count)
        self.mean.lerp_(slope, 1 - kept)
        self.square.mul_(kept_square).addcmul_(slope, slope, value=1 - kept_square)
        torch.maximum(self.largest, self.square, out=self.largest)
        size = self.largest.sqrt().add_(1e-8 * root)
        self.scores.addcdiv_(self.mean, size, value=-self.rate * root / (1 - kept**self.count))


def _sums_with_others(weights: Laid) -> Laid:
    """`sum_{j != i} ln(a_i + a_j)` for every candidate i.

    Candidates stand in a circle: those `apart` places from each other are one shifted addition, and its
    logarithm serves both partners. Half way round a circle of even size, i meets j and j meets i again.
    """
    k = weights.shape[1]
    circle = torch.cat([weights, weights[:, : k // 2]], dim=1)
    total = torch.zeros_like(weights)
    for apart in range(1, k // 2 + 1):
        together = (weights + circle[:, apart : apart + k]).log_()
        total.add_(together)
        if 2 * apart < k:
            total[:, apart:].add_(together[:, :-apart])
            total[:, :apart].add_(together[:, -apart:])
    return total


def _need(fine: bool, got: str, needs: str, way_out: str) -> None:
    if not fine:
        raise Refusal("the published search", got=got, needs=needs, way_out=way_out)
