"""Every explainer by its name: what each says of the units of all texts, for one and the same answer.

Those that `names.py` calls signed also say in which direction a unit matters: positive is for the predicted
class. Attention has no direction, so it is compared with magnitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import torch

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.captum import captum_kernel_shap, captum_lime
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.lime import lime
from attentest.evidence.importances.presence import PerUnit
from attentest.evidence.importances.shapley import shapley_values
from attentest.model.seam import Model, Reading
from attentest.refusal import look_up


@final
@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much each explainer may ask of a text."""

    steps: int = 32
    permutations: int = 10
    samples: int = 200


class Explainer(Protocol):
    """From a reading to a number for every unit."""

    def __call__(self, model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
        """0 on padding; NaN where it is not defined."""
        ...


def attention_of(reading: Reading) -> PerUnit:
    """The attention of a reading as one ranking: of heads together, their mean."""
    weights = reading.weights.detach()
    return weights if weights.ndim == 2 else weights.mean(1)


def explain(
    model: Model,
    reading: Reading,
    *,
    rng: torch.Generator,
    effort: Effort | None = None,
    names: Sequence[str] = (),
) -> dict[str, PerUnit]:
    """What every explainer of our own says, or those of these `names`; Captum's are asked by name only."""
    asked = {name: look_up(name, EXPLAINERS | BY_CAPTUM, "explainer") for name in names or EXPLAINERS}
    effort = effort or Effort()
    return {name: says(model, reading, rng=rng, effort=effort) for name, says in asked.items()}


def _gradient(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return gradients(model, reading.batch).times_input


def _left_out(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return leave_one_out(model, reading).change


def _integrated(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return integrated_gradients(model, reading, steps=effort.steps)


def _shapley(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return shapley_values(model, reading, permutations=effort.permutations, rng=rng)


def _lime(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return lime(model, reading, samples=effort.samples, rng=rng)


def _captum_lime(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return captum_lime(model, reading, samples=effort.samples, rng=rng)


def _captum_shap(model: Model, reading: Reading, *, rng: torch.Generator, effort: Effort) -> PerUnit:
    return captum_kernel_shap(model, reading, samples=effort.samples, rng=rng)


EXPLAINERS: dict[str, Explainer] = {
    "gradient": _gradient,
    "leave-one-out": _left_out,
    "integrated-gradients": _integrated,
    "shapley": _shapley,
    "lime": _lime,
}
BY_CAPTUM: dict[str, Explainer] = {"captum-lime": _captum_lime, "captum-kernel-shap": _captum_shap}
