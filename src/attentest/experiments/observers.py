"""Every experiment by its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from attentest.experiments.ablation.observe import Ablation
from attentest.experiments.adversary.observe import Adversary
from attentest.experiments.calibration.observe import Calibration
from attentest.experiments.communication.observe import Communication
from attentest.experiments.contract import AbstractExperiment
from attentest.experiments.deception.observe import Deception
from attentest.experiments.dispersion.observe import Dispersion
from attentest.experiments.explainers.observe import Explainers
from attentest.experiments.frozen_adversary.observe import FrozenAdversary
from attentest.experiments.guided.observe import Guided
from attentest.experiments.heat_map.observe import HeatMap
from attentest.experiments.importance.observe import Importance
from attentest.experiments.information.observe import Information
from attentest.experiments.information_ablation.observe import InformationAblation
from attentest.experiments.information_sensitivity.observe import InformationSensitivity
from attentest.experiments.log_odds.observe import LogOdds
from attentest.experiments.performance.observe import Performance
from attentest.experiments.permutation.observe import Permutation
from attentest.experiments.removal.observe import Removal
from attentest.experiments.seed_variance.observe import SeedVariance
from attentest.experiments.single_weight.observe import SingleWeight
from attentest.experiments.sparsity.observe import Sparsity
from attentest.experiments.trained_adversary.observe import TrainedAdversary
from attentest.experiments.uniform_baseline.observe import UniformBaseline
from attentest.experiments.vectors.observe import Vectors
from attentest.refusal import Refusal, look_up

EXPERIMENTS: dict[str, type[AbstractExperiment]] = {
    "performance": Performance,
    "importance": Importance,
    "permutation": Permutation,
    "adversary": Adversary,
    "heat-map": HeatMap,
    "log-odds": LogOdds,
    "uniform-baseline": UniformBaseline,
    "seed-variance": SeedVariance,
    "guided": Guided,
    "trained-adversary": TrainedAdversary,
    "single-weight": SingleWeight,
    "removal": Removal,
    "deception": Deception,
    "communication": Communication,
    "dispersion": Dispersion,
    "sparsity": Sparsity,
    "frozen-adversary": FrozenAdversary,
    "information": Information,
    "information-ablation": InformationAblation,
    "information-sensitivity": InformationSensitivity,
    "explainers": Explainers,
    "ablation": Ablation,
    "vectors": Vectors,
    "calibration": Calibration,
}


def experiment(name: str, mode: str, parameters: Mapping[str, Any]) -> AbstractExperiment:
    """The experiment as a study configures it; an unknown parameter or one of the wrong type is refused."""
    kind = look_up(name, EXPERIMENTS, "experiment")
    look_up(mode, dict.fromkeys(("corrected", "as-published")), f"mode of experiment {name!r}:")
    known = {field.name: field for field in fields(kind) if field.name != "mode"}
    for parameter, value in parameters.items():
        field = look_up(parameter, known, f"parameter of experiment {name!r}:")
        if type(value) is not type(field.default) and not (
            isinstance(field.default, float) and type(value) is int
        ):
            raise Refusal(
                f"experiment {name!r}, parameter {parameter!r}",
                got=repr(value),
                needs=f"a value like {field.default!r}",
                way_out="Mend the study's parameters.",
            )
    return kind(mode=mode, **parameters)  # type: ignore[arg-type]
