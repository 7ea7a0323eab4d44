"""Every experiment by its name, without torch: what it asks, and how its rows become findings."""

from __future__ import annotations

from attentest.experiments.ablation import conclude as ablation
from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.calibration import conclude as calibration
from attentest.experiments.communication import conclude as communication
from attentest.experiments.deception import conclude as deception
from attentest.experiments.description import Conclusion
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.explainers import conclude as explainers
from attentest.experiments.frozen_adversary import conclude as frozen_adversary
from attentest.experiments.guided import conclude as guided
from attentest.experiments.heat_map import conclude as heat_map
from attentest.experiments.importance import conclude as importance
from attentest.experiments.information import conclude as information
from attentest.experiments.information_ablation import conclude as information_ablation
from attentest.experiments.information_sensitivity import conclude as information_sensitivity
from attentest.experiments.log_odds import conclude as log_odds
from attentest.experiments.performance import conclude as performance
from attentest.experiments.permutation import conclude as permutation
from attentest.experiments.removal import conclude as removal
from attentest.experiments.seed_variance import conclude as seed_variance
from attentest.experiments.single_weight import conclude as single_weight
from attentest.experiments.sparsity import conclude as sparsity
from attentest.experiments.trained_adversary import conclude as trained_adversary
from attentest.experiments.uniform_baseline import conclude as uniform_baseline
from attentest.experiments.vectors import conclude as vectors

CONCLUSIONS: dict[str, Conclusion] = {
    "performance": performance.CONCLUSION,
    "importance": importance.CONCLUSION,
    "permutation": permutation.CONCLUSION,
    "adversary": adversary.CONCLUSION,
    "heat-map": heat_map.CONCLUSION,
    "log-odds": log_odds.CONCLUSION,
    "uniform-baseline": uniform_baseline.CONCLUSION,
    "seed-variance": seed_variance.CONCLUSION,
    "guided": guided.CONCLUSION,
    "trained-adversary": trained_adversary.CONCLUSION,
    "single-weight": single_weight.CONCLUSION,
    "removal": removal.CONCLUSION,
    "deception": deception.CONCLUSION,
    "communication": communication.CONCLUSION,
    "dispersion": dispersion.CONCLUSION,
    "sparsity": sparsity.CONCLUSION,
    "frozen-adversary": frozen_adversary.CONCLUSION,
    "information": information.CONCLUSION,
    "information-ablation": information_ablation.CONCLUSION,
    "information-sensitivity": information_sensitivity.CONCLUSION,
    "explainers": explainers.CONCLUSION,
    "ablation": ablation.CONCLUSION,
    "vectors": vectors.CONCLUSION,
    "calibration": calibration.CONCLUSION,
}


def title_and_question(name: str) -> tuple[str, str]:
    """What an experiment is called and what it asks; of one that this version does not know, its name."""
    about = CONCLUSIONS[name].about if name in CONCLUSIONS else None
    return (about.title, about.asks) if about else (name, "")
