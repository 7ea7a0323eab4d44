"""The published search with heads together: every head of a transformer moves, their mean is compared.

The same objective, settings and optimiser as the search for one distribution. Deciding is a layer of a
transformer here, so autograd's share of the time is small and nothing is derived by hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from attentest.evidence.adversary.search import ABSENT, NOISE, PAIR_TERMS, PublishedSearch
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal

Candidates = Float[Tensor, "batch variant head unit"]
PerCandidate = Float[Tensor, "batch variant"]


@final
@dataclass(frozen=True, kw_only=True)
class SearchedHeads:
    """The largest divergence between means over heads with `TVD <= epsilon`; 0 where nothing was found."""

    epsilons: tuple[float, ...]
    last: Float[Tensor, "epsilon batch"]  # among the candidates after the last step: what was published
    best: Float[Tensor, "epsilon batch"]  # among all candidates of all steps
    weights: Float[Tensor, "epsilon batch head unit"]  # of the best


def search_heads(
    search: PublishedSearch, model: Model, reading: Reading, *, rng: torch.Generator
) -> SearchedHeads:
    """Search every text of a reading whose weights are (batch, head, unit); nothing is encoded again."""
    if reading.weights.ndim != 3:
        raise Refusal(
            "a search of all heads",
            got=f"attention of the shape {tuple(reading.weights.shape)}",
            needs="(batch, head, unit): heads together",
            way_out="One distribution a text is what PublishedSearch.run is for.",
        )
    held = reading.detached()
    scores = _start(held, search.candidates, rng).requires_grad_()
    adam = torch.optim.Adam([scores], lr=search.learning_rate, amsgrad=True)
    with torch.no_grad():
        own = distribution(model.decide(held))[:, None]
    kept = _Kept(held, search.epsilons)
    for _ in range(search.steps):
        with torch.enable_grad():
            weights = scores.softmax(-1)
            change = total_variation(distribution(model.decide(held, weights)), own)
            divergence = _from_own(held, weights)
            loss = _objective(search, weights, change, divergence, has_query=held.query is not None)
            (scores.grad,) = torch.autograd.grad(loss, scores)
        kept.see(weights.detach(), change.detach(), divergence.detach())
        adam.step()
    with torch.no_grad():
        weights = scores.softmax(-1)
        change = total_variation(distribution(model.decide(held, weights)), own)
        divergence = _from_own(held, weights)
        kept.see(weights, change, divergence)
    last = torch.stack([divergence.where(change <= e, 0.0).amax(1) for e in search.epsilons])
    undefined = own.isnan().any(-1).T
    return SearchedHeads(
        epsilons=search.epsilons,
        last=last.masked_fill(undefined, torch.nan),
        best=kept.divergence.masked_fill(undefined, torch.nan),
        weights=kept.weights,
    )


def _start(reading: Reading, candidates: int, rng: torch.Generator) -> Candidates:
    batch, heads, units = reading.weights.shape
    noise = NOISE * torch.randn(batch, candidates, heads, units, generator=rng)
    return noise.to(reading.weights).masked_fill(~reading.mask[:, None, None], ABSENT)


def _from_own(reading: Reading, weights: Candidates) -> PerCandidate:
    """The divergence between means over heads."""
    return jensen_shannon(weights.mean(2), reading.weights.mean(1)[:, None])


def _objective(
    search: PublishedSearch,
    weights: Candidates,
    change: PerCandidate,
    divergence: PerCandidate,
    has_query: bool,
) -> Float[Tensor, ""]:
    unpunished = search.optimised_at or (0.005 if has_query else 0.01)
    loss = (search.penalty * (change - unpunished).clamp_min(0.0) - divergence).sum()
    if search.pair is None:
        return loss
    means = weights.mean(2)
    pairs = combinations(range(search.candidates), 2)
    apart = sum((jensen_shannon(means[:, i], means[:, j]).sum() for i, j in pairs), loss.new_zeros(()))
    return loss - PAIR_TERMS[search.pair](search.candidates) * apart


@final
class _Kept:
    """The best feasible iterate of every text so far, for each epsilon; at first the original."""

    def __init__(self, reading: Reading, epsilons: tuple[float, ...]) -> None:
        self.epsilons = epsilons
        self.weights = reading.weights.expand(len(epsilons), *reading.weights.shape).clone()
        self.divergence = reading.weights.new_zeros(len(epsilons), len(reading.weights))

    def see(self, weights: Candidates, change: PerCandidate, divergence: PerCandidate) -> None:
        texts = torch.arange(len(weights), device=weights.device)
        for place, epsilon in enumerate(self.epsilons):
            most, which = divergence.where(change <= epsilon, -1.0).max(1)
            better = most > self.divergence[place]
            self.weights[place][better] = weights[texts, which][better]
            self.divergence[place] = torch.where(better, most, self.divergence[place])
