"""Every importance of one text with its sign, what it should add up to, and how attention agrees with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.catalogue import Effort, attention_of, explain
from attentest.evidence.importances.given_attention import GivenAttention
from attentest.evidence.importances.gradient import Gradients
from attentest.evidence.importances.gradient_under import gradients_under
from attentest.evidence.importances.names import GRADIENT, LEFT_OUT
from attentest.evidence.importances.presence import explained
from attentest.inspection.records import Agreement, Importance
from attentest.model.networks.decoder import distribution
from attentest.model.seam import Model, Reading
from attentest.statistics.rank_agreement import kendalls

CHANCE = 1000  # random orders behind the spread of tau where the importance is not computed again
CENTRAL = (0.025, 0.975)


@final
@dataclass(frozen=True, eq=False)
class Asked:
    """A model, its one text as it was read, and the attention whose agreement is asked about."""

    model: Model
    found: Gradients
    attention: Tensor
    nulls: int
    effort: Effort
    rng: torch.Generator

    @property
    def reading(self) -> Reading:
        """The reading that importances are of."""
        return self.found.reading

    @property
    def given(self) -> GivenAttention | None:
        """Permuted attention, where the model can be given it and a null was asked for."""
        if not self.nulls or self.reading.weights.shape[-1] < 2 or not self.of_row:
            return None
        return GivenAttention.permuted(self.reading, self.nulls, rng=self.rng)

    @property
    def of_row(self) -> bool:
        """Whether the attention is the reading's own, and no map that was made of it."""
        return torch.equal(self.attention, attention_of(self.reading))


@final
@dataclass(frozen=True, eq=False)
class Values:
    """What an importance says: signed, as studies rank it, its remainder, and itself under permutations."""

    scores: Tensor
    magnitude: Tensor
    delta: float | None = None
    under: tuple[Tensor, Tensor] | None = None  # permuted attention, and the importance under it


def importances(asked: Asked, names: Sequence[str], tokens: tuple[str, ...]) -> dict[str, Importance]:
    """Those of these names, in their order."""
    label = asked.model.labels[int(explained(asked.model, asked.reading).predicted[0])]
    found = {}
    for name in names:
        values = MEASURES.get(name, _explained)(asked, name)
        found[name] = Importance(
            name,
            tokens,
            _numpy(values.scores[0]),
            _numpy(values.magnitude[0]),
            label,
            values.delta,
            _agreement(asked, values),
        )
    return found


def _gradient(asked: Asked, name: str) -> Values:
    given, under = asked.given, None
    if given is not None:
        again = gradients_under(asked.model, asked.reading, given.weights).times_input
        under = given.ranked, again
    return Values(asked.found.signed, asked.found.times_input, under=under)


def _left_out(asked: Asked, name: str) -> Values:
    given = asked.given
    found = leave_one_out(asked.model, asked.reading, given=given)
    under = None if given is None or found.under is None else (given.ranked, found.under)
    return Values(found.fall, found.change, under=under)


def _explained(asked: Asked, name: str) -> Values:
    """An explainer whose scores have signs; of two of them it is known what they should add up to."""
    found = explain(asked.model, asked.reading, rng=asked.rng, effort=asked.effort, names=(name,))[name]
    delta = None
    if name in PROMISES:
        delta = float(found.double().sum()) - PROMISES[name](asked)
    return Values(found, found.abs(), delta)


@torch.no_grad()
def _from_zero_vectors(asked: Asked) -> float:
    """How much likelier the predicted class is than with all word vectors at zero."""
    about, reading = explained(asked.model, asked.reading), asked.reading
    again = asked.model.read(reading.batch, embeddings=torch.zeros_like(reading.embeddings))
    start = distribution(asked.model.decide(again))[0, about.predicted[0]]
    return float(about.probability[0].double() - start.double())


def _from_no_units(asked: Asked) -> float:
    """How much likelier the predicted class is than of an empty text."""
    about = explained(asked.model, asked.reading)
    return float(about.probability[0].double() - about.unread[0].double())


MEASURES: Mapping[str, Callable[[Asked, str], Values]] = {GRADIENT: _gradient, LEFT_OUT: _left_out}
PROMISES: Mapping[str, Callable[[Asked], float]] = {
    "integrated-gradients": _from_zero_vectors,
    "shapley": _from_no_units,
}


def _agreement(asked: Asked, values: Values) -> Agreement | None:
    """Tau of attention with the importance, and the same for permuted attention."""
    attention, magnitude = _numpy(asked.attention[0]), _numpy(values.magnitude[0])
    if not asked.nulls or len(attention) < 2:
        return None
    tau = _tau(attention[None], magnitude[None])[0]
    if values.under is None:
        drawn = np.random.default_rng(int(torch.randint(2**62, (), generator=asked.rng)))
        orders = drawn.permuted(np.tile(attention, (CHANCE, 1)), axis=1)
        draws = _tau(orders, np.tile(magnitude, (CHANCE, 1)))
    else:
        draws = _tau(*(_numpy(each[0]) for each in values.under))
    known = draws[np.isfinite(draws)]
    if not len(known) or not np.isfinite(tau):
        return None
    low, high = np.quantile(known, CENTRAL)
    recomputed = values.under is not None
    return Agreement(float(tau), float(known.mean()), float(low), float(high), recomputed)


def _tau(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return kendalls(first, second, np.full(len(first), first.shape[1]))[0]


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()
