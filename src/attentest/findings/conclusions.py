"""Every experiment's conclusion by the experiment's name: from rows to findings, without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pandas as pd

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


@dataclass(frozen=True)
class Conclusion:
    """A conclude function and its version, which changes when its findings would."""

    conclude: Conclude
    version: int


CONCLUSIONS: dict[str, Conclusion] = {
    "performance": Conclusion(performance.conclude, version=1),
    "importance": Conclusion(importance.conclude, version=2),
    "permutation": Conclusion(permutation.conclude, version=2),
    "adversary": Conclusion(adversary.conclude, version=3),
    "heat-map": Conclusion(heat_map.conclude, version=1),
    "log-odds": Conclusion(log_odds.conclude, version=1),
    "uniform-baseline": Conclusion(uniform_baseline.conclude, version=1),
    "seed-variance": Conclusion(seed_variance.conclude, version=1),
    "guided": Conclusion(guided.conclude, version=1),
    "trained-adversary": Conclusion(trained_adversary.conclude, version=2),
    "single-weight": Conclusion(single_weight.conclude, version=1),
    "removal": Conclusion(removal.conclude, version=1),
    "deception": Conclusion(deception.conclude, version=1),
    "communication": Conclusion(communication.conclude, version=1),
    "dispersion": Conclusion(dispersion.conclude, version=2),
    "sparsity": Conclusion(sparsity.conclude, version=2),
    "frozen-adversary": Conclusion(frozen_adversary.conclude, version=2),
    "information": Conclusion(information.conclude, version=2),
    "information-ablation": Conclusion(information_ablation.conclude, version=2),
    "information-sensitivity": Conclusion(information_sensitivity.conclude, version=1),
    "explainers": Conclusion(explainers.conclude, version=1),
    "ablation": Conclusion(ablation.conclude, version=1),
    "vectors": Conclusion(vectors.conclude, version=1),
}
