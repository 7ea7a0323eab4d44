"""The measurements of one text that was read: each by the code of the studies, and each refusal in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.adversary.search import PublishedSearch
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.importances.given_attention import GivenAttention
from attentest.evidence.permutation import medians, permuted_logits
from attentest.evidence.removal.decisions import attended, overtaken, predicted, without
from attentest.evidence.removal.exhausted_flip import MOST, exhausted_sets
from attentest.evidence.removal.first_flip import first_flips
from attentest.evidence.removal.orders import largest_first, rankings
from attentest.evidence.removal.smallest import smallest_flip
from attentest.inspection.records import Adversary, Permuted, SmallestFlip
from attentest.model.divergence import attainable, total_variation
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading

PROGRAMMES = 2_000_000  # answers squared times units, which is how linear programmes grow: some 2 seconds
CENTRAL = (0.025, 0.975)
NULLS = 20  # permutations of attention whose strongest adversary is computed, too

ONE_UNIT = "With one unit attention has no choice: its weight is 1, and there is no other attention."
NO_FLIP = "No set of units flips the decision while one unit stays."
NOT_FOUND = (
    "None of three rankings (attention, its gradient, their product) flips the decision while one unit"
    f" stays; with more than {MOST} units not every set is tried where the decision is not affine."
)


@final
@dataclass(frozen=True, eq=False)
class Missing(Exception):
    """What is not there, and why, in a sentence."""

    why: str


def check_choice(reading: Reading) -> None:
    """Attention over one unit is no choice."""
    if reading.weights.shape[-1] < 2:
        raise Missing(ONE_UNIT)


@torch.no_grad()
def permuted(model: Model, reading: Reading, count: int, rng: torch.Generator) -> Permuted:
    """The same weights on other units, `count` times (Jain & Wallace 2019)."""
    check_choice(reading)
    own = model.decide(reading)
    logits = permuted_logits(model, reading, count, rng=rng)
    changes = total_variation(distribution(logits), distribution(own)[:, None])
    low, high = np.quantile(changes[0].double().cpu().numpy(), CENTRAL)
    flips = float(overtaken(logits, predicted(own)).double().mean())
    found = changes[0].double().cpu().numpy()
    return Permuted(float(medians(changes)[0]), float(low), float(high), flips, found)


@torch.no_grad()
def adversary(
    model: Model, reading: Reading, epsilon: float, *, steps: int, rng: torch.Generator
) -> Adversary:
    """The strongest adversary, exactly where the decision is affine; elsewhere the published search."""
    check_choice(reading)
    if reading.values is None or reading.bias is None or _takes_long(reading.values):
        return _searched(model, reading, epsilon, steps, rng)
    parts = (reading.values, reading.bias, reading.mask, epsilon)
    found = strongest_adversary(reading.weights, *parts, answers=reading.batch.answers)
    return Adversary(
        found.weights[0].cpu().numpy(),
        float(found.divergence[0]),
        float(found.output_change[0]),
        found.exact,
        float(found.bound[0]),
        epsilon,
        _of_permuted(reading, epsilon, rng) if found.exact else None,
    )


def _takes_long(values: Tensor) -> bool:
    _, units, classes = values.shape
    return classes > 2 and classes**2 * units > PROGRAMMES


def _of_permuted(reading: Reading, epsilon: float, rng: torch.Generator) -> float:
    """The same maximum for the text's weights in random orders: what geometry alone allows."""
    assert reading.values is not None and reading.bias is not None
    drawn = GivenAttention.permuted(reading, NULLS, rng=rng).weights[0]
    values, mask = (each.expand(NULLS, *each.shape[1:]) for each in (reading.values, reading.mask))
    answers = reading.batch.answers
    possible = None if answers is None else answers.expand(NULLS, -1)
    found = strongest_adversary(drawn, values, reading.bias, mask, epsilon, answers=possible)
    return float(found.divergence.median())


def _searched(model: Model, reading: Reading, epsilon: float, steps: int, rng: torch.Generator) -> Adversary:
    found = PublishedSearch(epsilons=(epsilon,), steps=steps).run(model, reading, rng=rng)
    weights = found.weights[0]
    given = weights.to(reading.hidden.dtype)
    own, other = (distribution(model.decide(reading, each)) for each in (None, given))
    return Adversary(
        weights[0].double().cpu().numpy(),
        float(found.best[0, 0]),
        float(total_variation(own, other)[0]),
        exact=False,
        bound=float(attainable(reading.weights, reading.mask)[0]),
        epsilon=epsilon,
        null=None,
    )


def flip(model: Model, reading: Reading, tokens: Sequence[str]) -> SmallestFlip:
    """The smallest set of units that carries the decision: exact where the decision is affine or short."""
    check_choice(reading)
    removed, exact = _smallest(model, reading)
    if not removed.any():
        raise Missing(NO_FLIP if exact else NOT_FOUND)
    with torch.no_grad():
        rest = without(reading.weights, removed[:, None])
        output = distribution(model.decide(reading, rest))[0, 0]
    best = int(output.argmax())
    indices = tuple(removed[0].nonzero()[:, 0].tolist())
    words = tuple(tokens[place] for place in indices)
    return SmallestFlip(indices, words, model.labels[best], float(output[best]), exact)


def _smallest(model: Model, reading: Reading) -> tuple[Tensor, bool]:
    """Which units go, and whether none fewer would do."""
    if reading.values is not None and reading.bias is not None:
        answers = reading.batch.answers
        found = smallest_flip(reading.weights, reading.values, reading.bias, reading.mask, answers=answers)
        return found.removed, True
    items = attended(reading)
    if int(items.sum()) <= MOST:
        return exhausted_sets(model, reading)[1], True
    size, alone = exhausted_sets(model, reading, single=True)
    if size[0] == 1:
        return alone, True
    ranked = rankings(model, reading).values()
    orders = torch.stack([largest_first(scores, items) for scores in ranked], dim=1)
    count = first_flips(model, reading, orders).count[0]
    # Without any unit the bias alone decides, which is no attention; one must stay.
    usable = (count > 0) & (count < int(items.sum()))
    removed = torch.zeros_like(reading.mask)
    if usable.any():
        best = int(count.where(usable, len(items[0]) + 1).argmin())
        removed[0, orders[0, best, : count[best]]] = True
    return removed, int(removed.sum()) == 2  # no single unit does
