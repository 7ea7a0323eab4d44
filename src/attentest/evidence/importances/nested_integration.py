"""Integrated gradients in as many steps as a precision asks for, none of them lost when there are to be more.

Fejér's second rule has 1, 3, 7, 15, 31 ... places on the way, each set among the next. A text is done when
more places no longer change its values; after the first three, when its values add up to what they must.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.erasure.parts import alike, overhead
from attentest.evidence.importances.gradient import per_unit
from attentest.evidence.importances.integrated_gradients import floats_of_a_step, slopes_at
from attentest.evidence.importances.presence import PerText, PerUnit, explained
from attentest.evidence.importances.sampled import Precision
from attentest.model.batch import buckets
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.model.subset import selected

FIRST = 3
Places = Float[np.ndarray, " place"]


@final
@dataclass(frozen=True)
class Integrated:
    """The values, and how many places of the way each text was asked about."""

    values: PerUnit
    steps: Int[Tensor, " batch"]


def nested_rule(count: int) -> tuple[Places, Places]:
    """Places between 0 and 1 in order, and what each stands for; `count` is one less than a power of 2."""
    angles = np.pi * np.arange(count, 0, -1) / (count + 1)
    odd = np.arange(1, count + 1, 2)
    sums = (np.sin(np.outer(angles, odd)) / odd).sum(1)
    return (np.cos(angles) + 1) / 2, 2 * np.sin(angles) * sums / (count + 1)


def integrated_to(model: Model, reading: Reading, precision: Precision) -> Integrated:
    """Integrated gradients from vectors of zeros, to a precision; signed, for the predicted class."""
    values = reading.embeddings.new_zeros(reading.mask.shape)
    steps = torch.zeros(len(values), dtype=torch.long, device=values.device)
    lengths = reading.batch.mask.sum(1).cpu().numpy()
    costs = np.array([FIRST * floats_of_a_step(model, length) for length in lengths.tolist()])
    for group in buckets(costs, len(costs), tokens=erasure.FLOATS):
        for alone in alike(group, lengths, overhead(values.device) // FIRST):
            texts = torch.from_numpy(alone).to(values.device)
            some = selected(reading, texts)
            found = _integrated(model, some, without_vectors(model, some), precision)
            values[texts, : some.mask.shape[1]] = found.values
            steps[texts] = found.steps
    return Integrated(values, steps)


def without_vectors(model: Model, reading: Reading) -> PerText:
    """The predicted class's probability where the way begins.

    There nothing is left of a text but its length, so a model made elsewhere reads one text of each. Not so
    where texts have a second one, or a token that is asked about.
    """
    best = explained(model, reading).predicted[:, None]
    lengths = reading.batch.mask.sum(1).cpu().numpy()
    _, first, again = np.unique(lengths, return_index=True, return_inverse=True)
    if model.network is not None or reading.batch.query is not None or "target" in reading.kept:
        first = again = np.arange(len(lengths))
    some = selected(reading, torch.from_numpy(first).to(best.device))
    with torch.no_grad():
        nothing = model.read(some.batch, embeddings=torch.zeros_like(some.embeddings))
        answer = distribution(model.decide(nothing))
    return answer[torch.from_numpy(again).to(best.device)].gather(1, best)[:, 0]


def _integrated(model: Model, reading: Reading, begin: PerText, precision: Precision) -> Integrated:
    """Some texts together: those that are not done go on with the places between."""
    total = explained(model, reading).probability - begin
    values = reading.embeddings.new_zeros(reading.mask.shape)
    steps = torch.zeros(len(values), dtype=torch.long, device=values.device)
    active, count, held = torch.arange(len(values), device=values.device), FIRST, dict[float, Tensor]()
    while len(active):
        places, shares = nested_rule(count)
        held = _asked(model, selected(reading, active), held, places)
        along = sum(share * held[place] for place, share in zip(places, shares, strict=True))
        some = selected(reading, active)
        found = per_unit(model, some, along)
        before = values[active, : found.shape[1]]
        off = (found - before).norm(dim=1) if count > FIRST else (found.sum(1) - total[active]).abs()
        values[active, : found.shape[1]], steps[active] = found, count
        go_on = (off > precision.error * _spread(found, some.mask)) & (2 * count + 1 <= precision.steps)
        active, count = active[go_on], 2 * count + 1
        held = {place: one[go_on] for place, one in held.items()}
    return Integrated(values, steps)


def _spread(values: PerUnit, mask: Tensor) -> PerText:
    """The root of the squares of what sets units apart."""
    mean = values.sum(1, keepdim=True) / mask.sum(1, keepdim=True)
    return ((values - mean) * mask).norm(dim=1)


def _asked(
    model: Model, reading: Reading, held: dict[float, Tensor], places: Places
) -> dict[float, Float[Tensor, "batch token"]]:
    """What each token adds at every place, of which some are `held`."""
    tokens = reading.batch.mask.shape[1]
    new = [place for place in places.tolist() if place not in held]
    found = {place: one[:, :tokens] for place, one in held.items()}
    at_once = max(1, erasure.FLOATS // (len(reading.mask) * floats_of_a_step(model, tokens)))
    for first in range(0, len(new), at_once):
        some = new[first : first + at_once]
        slopes = slopes_at(model, reading, reading.embeddings.new_tensor(some))
        found |= dict(zip(some, (slopes * reading.embeddings.detach()).sum(-1), strict=True))
    return found
