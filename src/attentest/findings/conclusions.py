"""Every experiment's conclusion by the experiment's name: from rows to findings, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
import pandas as pd

from attentest.experiments.calibration import conclude as calibration
from attentest.findings import (
    ablation,
    adversary,
    communication,
    deception,
    dispersion,
    explainers,
    frozen_adversary,
    guided,
    heat_map,
    importance,
    information,
    information_ablation,
    information_sensitivity,
    log_odds,
    performance,
    permutation,
    removal,
    seed_variance,
    single_weight,
    sparsity,
    trained_adversary,
    uniform_baseline,
    vectors,
)
from attentest.findings.record import Finding


@runtime_checkable
class Conclude(Protocol):
    """From the rows of all seeds (column `seed`) to findings."""

    def __call__(self, rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
        """Deterministic for an `rng`, blind to the order of rows."""
        ...


@final
@dataclass(frozen=True)
class Conclusion:
    """A conclude function and its version, which changes when its findings would."""

    conclude: Conclude
    version: int


CONCLUSIONS: dict[str, Conclusion] = {
    "performance": Conclusion(performance.conclude, version=2),
    "importance": Conclusion(importance.conclude, version=3),
    "permutation": Conclusion(permutation.conclude, version=3),
    "adversary": Conclusion(adversary.conclude, version=4),
    "heat-map": Conclusion(heat_map.conclude, version=2),
    "log-odds": Conclusion(log_odds.conclude, version=2),
    "uniform-baseline": Conclusion(uniform_baseline.conclude, version=2),
    "seed-variance": Conclusion(seed_variance.conclude, version=2),
    "guided": Conclusion(guided.conclude, version=2),
    "trained-adversary": Conclusion(trained_adversary.conclude, version=3),
    "single-weight": Conclusion(single_weight.conclude, version=2),
    "removal": Conclusion(removal.conclude, version=2),
    "deception": Conclusion(deception.conclude, version=2),
    "communication": Conclusion(communication.conclude, version=2),
    "dispersion": Conclusion(dispersion.conclude, version=3),
    "sparsity": Conclusion(sparsity.conclude, version=3),
    "frozen-adversary": Conclusion(frozen_adversary.conclude, version=3),
    "information": Conclusion(information.conclude, version=3),
    "information-ablation": Conclusion(information_ablation.conclude, version=3),
    "information-sensitivity": Conclusion(information_sensitivity.conclude, version=2),
    "explainers": Conclusion(explainers.conclude, version=2),
    "ablation": Conclusion(ablation.conclude, version=2),
    "vectors": Conclusion(vectors.conclude, version=2),
    "calibration": Conclusion(calibration.conclude, version=1),
}
