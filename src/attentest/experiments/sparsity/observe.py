"""Does sparser attention make importance sparser, and does it come to agree with it?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import torch

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.names import IN_ROWS
from attentest.experiments.contract import AbstractExperiment, Row, Subject
from attentest.experiments.dispersion.observe import NullDraws, agreements, entropy
from attentest.experiments.shared.common_columns import common_columns
from attentest.experiments.shared.controls import controls
from attentest.experiments.sparsity import ABOUT
from attentest.experiments.sparsity.conclude import LAMBDA, SOFTMAX, TWIN
from attentest.model.batch import buckets
from attentest.model.config import ModelConfig
from attentest.model.networks.projection import Projection
from attentest.model.reader import TEXTS, TOKENS
from attentest.refusal import Refusal


@final
@dataclass(frozen=True, kw_only=True)
class Sparsity(AbstractExperiment):
    """The same model trained with sparser and sparser attention, sparsegen(lambda) (ME-2, ME-3).

    Scores have a free scale, so lambda is a temperature that a training may undo: each row also says how
    sparse attention really was. Every model of the sweep has an untrained twin, which shows what the
    projection brings about by itself.
    """

    name: ClassVar[str] = ABOUT.name
    cite: ClassVar[str] = ABOUT.cite
    version: ClassVar[int] = 2

    lambdas: str = "-1000 -100 -10 -3 -1 -0.3 0 0.3 0.6 0.8 0.9"
    nulls: int = 20

    def __post_init__(self) -> None:
        sweep(self.lambdas)
        if self.nulls < 1:
            raise Refusal(
                "experiment sparsity",
                got=f"{self.nulls} draws of the null",
                needs="at least 1",
                way_out="20 are the default.",
            )

    def siblings(self, config: ModelConfig) -> dict[str, ModelConfig]:
        """Softmax and the sweep, as far as the subject is not one of them; their twins; the controls."""
        alone = replace(config, guide=None, start_from=None, reset=())
        others = {
            name: replace(alone, projection=projection)
            for name, projection in _projections(self.lambdas).items()
            if not _alike(projection, config.projection)
        }
        twins = {TWIN + name: replace(other, epochs=0) for name, other in others.items()}
        return {**others, **twins, **controls(config)}

    def observe(self, subject: Subject, rng: np.random.Generator) -> Iterator[Row]:
        """One row a text and model.

        `subject` is `trained`, `softmax`, `lambda X`, each of these after `untrained ` for a twin, or a
        control; `lambda` is the number of its projection, 0 for sparsemax, NaN for what is no sparsegen.
        """
        for each in (subject, *subject.sibling.values()):
            yield from self._ask(each, torch.Generator().manual_seed(int(rng.integers(2**63))))

    def _ask(self, subject: Subject, rng: torch.Generator) -> Iterator[Row]:
        model, number = subject.model, lambda_of(subject.config.projection)
        nulls = NullDraws.of(subject, self.nulls)
        for rows in buckets(subject.texts.lengths, TEXTS, tokens=TOKENS):
            found = gradients(model, subject.texts.batch(rows).to(model.device), free=True)
            reading = found.reading
            assert found.norm_free is not None
            given = nulls.given(reading, rows, rng)
            loo = leave_one_out(model, reading, given=given)
            assert loo.under is not None
            importances = dict(zip(IN_ROWS, (found.norm_free, loo.change), strict=True))
            columns = {
                "entropy_attention": entropy(reading.weights, reading.mask),
                **{f"entropy_{name}": entropy(each, reading.mask) for name, each in importances.items()},
                **agreements(reading, importances),
                **nulls.columns(reading, given, {"loo": loo.under}),
            }
            for place, row in enumerate(common_columns(subject, rows, reading)):
                numbers = {name: column[place].item() for name, column in columns.items()}
                yield {**row, "lambda": number, **numbers}


def lambda_of(projection: str) -> float:
    """The number of a sparsegen, which sparsemax is for 0; NaN for any other projection."""
    parsed = Projection.parse(projection)
    if parsed.name == "sparsemax":
        return 0.0
    return math.nan if parsed.name != "sparsegen" or parsed.parameter is None else parsed.parameter


def sweep(written: str) -> list[float]:
    """The lambdas of a sweep, the least sparse first; what is no such list is refused."""
    try:
        found = sorted(float(word) + 0.0 for word in written.split())  # there is no lambda of -0
    except ValueError:
        found = []
    alike = len({f"{number:g}" for number in found}) < len(found)
    if len(found) < 2 or alike or not all(-math.inf < number < 1 for number in found):
        raise Refusal(
            "experiment sparsity, parameter 'lambdas'",
            got=repr(written),
            needs="at least two different numbers below 1, separated by spaces",
            way_out='Write for example "-10 -1 0 0.5".',
        )
    return found


def _projections(lambdas: str) -> dict[str, str]:
    """Softmax, and the sweep by name; 0 goes by its own name, so that it is trained once wherever asked."""
    swept = {number: f"sparsegen({number:g})" if number else "sparsemax" for number in sweep(lambdas)}
    return {SOFTMAX: "softmax"} | {f"{LAMBDA}{number:g}": name for number, name in swept.items()}


def _alike(one: str, other: str) -> bool:
    return one == other or lambda_of(one) == lambda_of(other)
