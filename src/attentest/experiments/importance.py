"""Does attention agree with what moves the output?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch
from torch import Tensor

from attentest.corpus.batch import Batch, buckets
from attentest.evidence.concordance import count_on
from attentest.evidence.erasure import leave_one_out
from attentest.evidence.gradient import gradients
from attentest.evidence.null_importance import null_gradient, null_leave_one_out
from attentest.evidence.permutation import orders
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.controls import beside_controls, controls
from attentest.experiments.rows import begun
from attentest.experiments.shown import shown
from attentest.findings.rank_agreement import kendalls, significant
from attentest.findings.top_k import distance, overlap
from attentest.model.config import ModelConfig
from attentest.model.reader import TEXTS, TOKENS
from attentest.model.seam import AttentionModel, Reading
from attentest.refusal import Refusal

Columns = dict[str, np.ndarray]
FIRST_SEED = "first seed"


@dataclass(frozen=True)
class Importances:
    """What attention says of each unit, and what gradient and leave-one-out say."""

    reading: Reading
    weights: np.ndarray
    gradient: np.ndarray
    loo: np.ndarray
    norm_held: np.ndarray
    norm_free: np.ndarray
    lengths: np.ndarray

    @classmethod
    def of(cls, model: AttentionModel, batch: Batch) -> Importances:
        """All of them, from one reading."""
        found = gradients(model, batch, free=True)
        reading = found.reading
        loo = leave_one_out(model, reading).change
        assert found.norm_free is not None
        return cls(
            reading=reading,
            weights=_numpy(reading.weights),
            gradient=_numpy(found.times_input),
            loo=_numpy(loo),
            norm_held=_numpy(found.norm_held),
            norm_free=_numpy(found.norm_free),
            lengths=_numpy(reading.mask.sum(1)).astype(int),
        )

    def agreement(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tau-b and p-value of every text, counted where the model is."""
        return kendalls(x, y, self.lengths, count=count_on(self.reading.mask.device))


@final
@dataclass(frozen=True, kw_only=True)
class Importance(AbstractExperiment):
    """Rank agreement of attention, gradient and leave-one-out (JW-1 to JW-3), each beside its null."""

    name: ClassVar[str] = "importance"
    cite: ClassVar[str] = "jain2019attention"
    version: ClassVar[int] = 1

    nulls: int = 20
    shown: int = 50
    texts: str = ""  # ids of further texts to keep whole

    def __post_init__(self) -> None:
        if self.nulls < 1 or self.shown < 0:
            raise Refusal(
                "experiment importance",
                got=f"{self.nulls} draws of the null, {self.shown} texts to show",
                needs="at least 1 draw, and 0 texts or more",
                way_out="20 draws are the default.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """The controls, and the model of the first seed: importances that differ by seed have a ceiling."""
        first = {} if config.seed == 0 else {FIRST_SEED: replace(config, seed=0)}
        return {**controls(config), **first}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model."""
        for each in beside_controls(subject):
            draw = torch.Generator().manual_seed(int(rng.integers(2**63)))
            other = subject.sibling.get(FIRST_SEED) if each is subject else None
            yield from self.ask(each, other, draw)

    def ask(self, subject: Subject, other: Subject | None, rng: torch.Generator) -> Iterator[Row]:
        """The rows of one model; `other` is that of the first seed, if it is another."""
        model = subject.model
        whole = shown(subject, self.shown, self.texts) if subject.name == "trained" else set()
        k = max(10, int(0.1 * subject.texts.lengths.mean()))  # as the published code has it
        for rows in buckets(subject.texts.lengths, TEXTS, tokens=TOKENS):
            batch = subject.texts.batch(rows).to(model.device)
            own = Importances.of(model, batch)
            columns = agreement(own, k) | self._nulls(model, own, rng) | ceilings(own, other, batch)
            for place, row in enumerate(begun(subject, rows, own.reading)):
                yield {
                    **row,
                    "k": k,
                    **{name: float(column[place]) for name, column in columns.items()},
                    **(_vectors(own, place) if rows[place] in whole else dict.fromkeys(VECTORS)),
                }

    def _nulls(self, model: AttentionModel, own: Importances, rng: torch.Generator) -> Columns:
        drawn = orders(own.reading.mask, self.nulls, rng=rng)
        with torch.no_grad():
            weights = own.reading.weights
            gradient = torch.as_tensor(own.gradient, dtype=weights.dtype, device=weights.device)
            by_gradient = _numpy(null_gradient(weights, gradient, drawn))
            by_loo = _numpy(null_leave_one_out(model, own.reading, drawn))
        columns = {}
        for name, null in (("gradient", by_gradient), ("loo", by_loo)):
            tau, p_value = own.agreement(own.weights, null)
            columns[f"null_tau_{name}"] = tau.mean(1)
            columns[f"null_significant_{name}"] = significant(p_value).mean(1)
        return columns


def agreement(own: Importances, k: int) -> Columns:
    """How the rankings of each text agree."""
    columns = {}
    for name, importance in (("gradient", own.gradient), ("loo", own.loo)):
        columns[f"tau_{name}"], columns[f"p_{name}"] = own.agreement(own.weights, importance)
        columns[f"overlap_{name}"] = overlap(own.weights, importance, own.lengths, k)
        columns[f"distance_{name}"] = distance(own.weights, importance, own.lengths, k)
    columns["tau_gradient_loo"], columns["p_gradient_loo"] = own.agreement(own.gradient, own.loo)
    columns["tau_norm_held"] = own.agreement(own.weights, own.norm_held)[0]
    columns["tau_norm_free"] = own.agreement(own.weights, own.norm_free)[0]
    return columns


def ceilings(own: Importances, other: Subject | None, batch: Batch) -> Columns:
    """How well another seed's importances agree with these: no explanation can be asked to agree better."""
    if other is None:
        return dict.fromkeys(("ceiling_gradient", "ceiling_loo"), np.full(len(own.lengths), np.nan))
    theirs = Importances.of(other.model, batch)
    return {
        "ceiling_gradient": own.agreement(own.gradient, theirs.gradient)[0],
        "ceiling_loo": own.agreement(own.loo, theirs.loo)[0],
    }


VECTORS = ("weights", "gradient", "loo")


def _vectors(own: Importances, place: int) -> Row:
    length = own.lengths[place]
    return {name: getattr(own, name)[place, :length].astype(np.float32).tolist() for name in VECTORS}


def _numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().cpu().numpy()
