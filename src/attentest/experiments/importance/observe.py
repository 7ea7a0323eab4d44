"""Does attention agree with what moves the output?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, final

import numpy as np
import torch
from torch import Tensor

from attentest.evidence.concordance import count_on
from attentest.evidence.erasure.drawn_units import Units, drawn_units, only
from attentest.evidence.erasure.known import KnownParts
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.catalogue import explain
from attentest.evidence.importances.given_attention import AttentionPool, GivenAttention
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.gradient_under import gradients_under
from attentest.evidence.importances.names import IN_ROWS, WITH_NULLS, asked_also, column, further
from attentest.evidence.importances.traded_importance import traded_gradient, traded_leave_one_out
from attentest.evidence.permutation import orders
from attentest.experiments.contract import Row, Subject
from attentest.experiments.importance import ABOUT
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import AbstractBesideControls
from attentest.experiments.shared.shown import shown
from attentest.model.batch import Batch
from attentest.model.reader import readings
from attentest.model.seam import Model, Reading
from attentest.refusal import Refusal
from attentest.statistics.rank_agreement import kendalls, significant
from attentest.statistics.top_k import distance, overlap

Columns = dict[str, np.ndarray]
NULLS = ("swapped", "permuted")


@final
@dataclass(frozen=True)
class Importances:
    """What attention says of each unit, and what gradient and leave-one-out say.

    With `given` attention the two also say it under each of these, `gradient_under` and `loo_under`. What
    was asked `also` is by its column.
    """

    reading: Reading
    weights: np.ndarray
    gradient: np.ndarray
    loo: np.ndarray
    norm_held: np.ndarray
    norm_free: np.ndarray
    lengths: np.ndarray
    gradient_under: np.ndarray | None = None
    loo_under: np.ndarray | None = None
    also: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: Model,
        batch: Batch,
        given: GivenAttention | None = None,
        known: KnownParts | None = None,
        units: Units | None = None,
        also: Sequence[str] = (),
        rng: torch.Generator | None = None,
    ) -> Importances:
        """From one reading all of them, or those of drawn `units`; `rng` is for those of `also` that draw."""
        # But in our own networks draws are differentiated one by one; the first is the own attention.
        others = None if given is None or model.network is not None else given.weights[:, 1:]
        found = gradients(model, batch, free=True, given=others)
        reading = found.reading
        loo = leave_one_out(model, reading, given=given, known=known, units=units)
        assert found.norm_free is not None
        if reading.weights.ndim == 3:  # the mean over heads
            mean = reading.weights.mean(1)
            reading = replace(reading, weights=mean, scores=reading.scores.mean(1))
        weights, under = reading.weights, None
        if found.under is not None:
            under = torch.cat([found.times_input[:, None], found.under], dim=1)
        elif given is not None:
            under = gradients_under(model, found.reading, given.weights).times_input
        return cls(
            reading=reading,
            weights=_numpy(only(units, weights)),
            gradient=_numpy(only(units, found.times_input)),
            loo=_numpy(only(units, loo.change)),
            norm_held=_numpy(only(units, found.norm_held)),
            norm_free=_numpy(only(units, found.norm_free)),
            lengths=_numpy((reading.mask if units is None else units).sum(1)).astype(int),
            gradient_under=None if under is None else _numpy(only(units, under)),
            loo_under=None if loo.under is None else _numpy(only(units, loo.under)),
            also=_sizes(model, found.reading, also, rng, units),
        )

    @property
    def sizes(self) -> dict[str, np.ndarray]:
        """How much each importance says that a unit matters, by its column."""
        return dict(zip(IN_ROWS, (self.gradient, self.loo), strict=True)) | dict(self.also)

    def agreement(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tau-b and p-value of every text, or of every draw of every text, counted where the model is."""
        shape, draws = x.shape[:-1], x.size // (len(x) * x.shape[-1])
        first, second = (each.reshape(-1, x.shape[-1]) for each in (x, y))
        count = count_on(self.reading.mask.device)
        tau, p_value = kendalls(first, second, self.lengths.repeat(draws), count=count)
        return tau.reshape(shape), p_value.reshape(shape)


@final
@dataclass(frozen=True, kw_only=True)
class Importance(AbstractBesideControls):
    """Rank agreement of attention, gradient and leave-one-out (JW-1 to JW-3), each beside its two nulls.

    A null gives the text weights that do not match its words (`swapped`, `permuted`: see
    `given_attention`), computes the importance again under them, and correlates the two. Leave-one-out is
    computed twice: with the remaining words scored again, as published (`tau_loo`), and with their scores
    held (`tau_loo_held`), as in its nulls, where no scores of their own belong to the weights. The
    columns `traded` are the first edition's null. What is asked `also` has no null of that kind.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 2
    later: ClassVar[Mapping[str, Any]] = {"also": ""}

    nulls: int = 20
    shown: int = 200
    texts: str = ""  # ids of further texts to keep whole
    also: str = " ".join(further(WITH_NULLS, cheap=True))  # further importances of the catalogue

    def __post_init__(self) -> None:
        if self.nulls < 1 or self.shown < 0:
            raise Refusal(
                "experiment importance",
                got=f"{self.nulls} draws of the null, {self.shown} texts to show",
                needs="at least 1 draw, and 0 texts or more",
                way_out="20 draws are the default.",
            )
        asked_also(self.also, WITH_NULLS, "experiment importance, further importance")

    def ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        """The rows of one model."""
        model = subject.model.with_heads
        pool = AttentionPool.of(model, subject.texts)
        whole = shown(subject, self.shown, self.texts) if subject.name == "trained" else set()
        k = max(10, int(0.1 * subject.texts.lengths.mean()))  # as the published code has it
        also = asked_also(self.also, WITH_NULLS, "further importance")
        # Apart from the draws of the nulls, which are the same whatever else is asked.
        drawn = torch.Generator().manual_seed(rng.initial_seed() + 1)
        for rows, reading in readings(model, subject.texts):
            given = pool.own_and_nulls(model, reading, rows, self.nulls, rng=rng)
            units = drawn_units(reading, subject.ranked)
            own = Importances.of(model, reading.batch, given, subject.known, units, also, drawn)
            ranked = _numpy(only(units, given.ranked))
            columns = agreement(own, k) | self._nulls(own, ranked) | self.traded(model, own, rng)
            for place, row in enumerate(common_columns(subject, rows, own.reading)):
                yield {
                    **row,
                    "k": k,
                    **{name: float(column[place]) for name, column in columns.items()},
                    **_vectors(own, place, row_is_whole=rows[place] in whole),
                }

    def _nulls(self, own: Importances, weights: np.ndarray) -> Columns:
        assert own.gradient_under is not None and own.loo_under is not None
        columns = {}
        columns["tau_loo_held"], columns["p_loo_held"] = own.agreement(own.weights, own.loo_under[:, 0])
        for number, null in enumerate(NULLS):
            draws = slice(1 + number * self.nulls, 1 + (number + 1) * self.nulls)
            for name, importance in zip(IN_ROWS, (own.gradient_under, own.loo_under), strict=True):
                tau, p_value = own.agreement(weights[:, draws], importance[:, draws])
                columns[f"{null}_tau_{name}"] = mean_of_defined(tau)
                columns[f"{null}_significant_{name}"] = mean_of_defined(significant(p_value))
        return columns

    def traded(self, model: Model, own: Importances, rng: torch.Generator) -> Columns:
        """The null of the first edition: sensitivities, or values, change places beneath the weights."""
        network = model.network
        if network is None:
            return dict.fromkeys(("traded_tau_gradient", "traded_tau_loo"), np.full(len(own.lengths), np.nan))
        drawn = orders(own.reading.mask, self.nulls, rng=rng)
        with torch.no_grad():
            weights = own.reading.weights
            gradient = torch.as_tensor(own.gradient, dtype=weights.dtype, device=weights.device)
            by_gradient = _numpy(traded_gradient(weights, gradient, drawn))
            by_loo = _numpy(traded_leave_one_out(network, own.reading, drawn))
        same = np.broadcast_to(own.weights[:, None], by_loo.shape)
        return {
            "traded_tau_gradient": own.agreement(same, by_gradient)[0].mean(1),
            "traded_tau_loo": own.agreement(same, by_loo)[0].mean(1),
        }


def mean_of_defined(draws: np.ndarray) -> np.ndarray:
    """The mean over draws of those that are defined; NaN where none is."""
    known = ~np.isnan(draws)
    count = known.sum(1)
    return np.where(count > 0, np.where(known, draws, 0.0).sum(1) / np.maximum(count, 1), np.nan)


def agreement(own: Importances, k: int) -> Columns:
    """How the rankings of each text agree."""
    columns = {}
    for name, importance in own.sizes.items():
        columns[f"tau_{name}"], columns[f"p_{name}"] = own.agreement(own.weights, importance)
        columns[f"overlap_{name}"] = overlap(own.weights, importance, own.lengths, k)
        columns[f"distance_{name}"] = distance(own.weights, importance, own.lengths, k)
    columns["tau_gradient_loo"], columns["p_gradient_loo"] = own.agreement(own.gradient, own.loo)
    columns["tau_norm_held"] = own.agreement(own.weights, own.norm_held)[0]
    columns["tau_norm_free"] = own.agreement(own.weights, own.norm_free)[0]
    return columns


def _vectors(own: Importances, place: int, *, row_is_whole: bool) -> Row:
    """The weights and importances of one text, of which only some are kept whole."""
    vectors = {"weights": own.weights, **own.sizes}
    if not row_is_whole:
        return dict.fromkeys(vectors)
    length = own.lengths[place]
    return {name: each[place, :length].astype(np.float32).tolist() for name, each in vectors.items()}


@torch.no_grad()
def _sizes(
    model: Model,
    reading: Reading,
    names: Sequence[str],
    rng: torch.Generator | None,
    units: Units | None,
) -> dict[str, np.ndarray]:
    """The magnitudes of importances of the catalogue, by their column."""
    if not names:
        return {}
    rng = torch.Generator() if rng is None else rng
    found = explain(model, reading, rng=rng, names=names)
    return {column(name): np.abs(_numpy(only(units, values))) for name, values in found.items()}


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
