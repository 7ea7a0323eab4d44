"""Every figure of the papers, one function each, from observed rows or findings to a Vega-Lite chart.

Needs the extra `web`. A chart holds counts and densities, not texts, so a page can embed it whole.
"""

from attentest.charts.context import ModelPoint, context_scatter
from attentest.charts.curves import epsilon_curve, search_against_exact, tau_by_length
from attentest.charts.diagram import zero_and_renormalise
from attentest.charts.flips import flip_tables
from attentest.charts.histograms import jsd_histogram, tau_differences, tau_histogram
from attentest.charts.information import (
    ablation_flatness,
    ablation_losses,
    ablation_scores,
    ablation_taus,
    information_curves,
    information_orders,
    sensitivity_taus,
)
from attentest.charts.lanes import inputs_and_states, sparsity_entropies
from attentest.charts.overview import MainNumber, main_numbers
from attentest.charts.plane import adversary_plane
from attentest.charts.points import (
    deception_scores,
    guide_gains,
    guide_scores,
    uniform_losses,
    uniform_scores,
)
from attentest.charts.rank_groups import rank_groups
from attentest.charts.settings import flatness_scatter, tau_boxes
from attentest.charts.sparsity import agreement_by_lambda, entropy_by_realised
from attentest.charts.style import svg_of, to_png, to_svg
from attentest.charts.violins import adversary_violins, permutation_violins
from attentest.experiments.calibration.charts import areas_chart, curves_chart, roc_chart
from attentest.experiments.communication.charts import communication_curves, communication_models
from attentest.experiments.frozen_adversary.charts import frozen_curves
from attentest.experiments.removal.charts import removal_boxes, survival_curves
from attentest.experiments.seed_variance.charts import apart_scatter, apart_violins, beyond_seeds
from attentest.experiments.single_weight.charts import djs_scatter, negative_gaps

__all__ = [
    "MainNumber",
    "ModelPoint",
    "ablation_flatness",
    "ablation_losses",
    "ablation_scores",
    "ablation_taus",
    "adversary_plane",
    "adversary_violins",
    "agreement_by_lambda",
    "apart_scatter",
    "apart_violins",
    "areas_chart",
    "beyond_seeds",
    "communication_curves",
    "communication_models",
    "context_scatter",
    "curves_chart",
    "deception_scores",
    "djs_scatter",
    "entropy_by_realised",
    "epsilon_curve",
    "flatness_scatter",
    "flip_tables",
    "frozen_curves",
    "guide_gains",
    "guide_scores",
    "information_curves",
    "information_orders",
    "inputs_and_states",
    "jsd_histogram",
    "main_numbers",
    "negative_gaps",
    "permutation_violins",
    "rank_groups",
    "removal_boxes",
    "roc_chart",
    "search_against_exact",
    "sensitivity_taus",
    "sparsity_entropies",
    "survival_curves",
    "svg_of",
    "tau_boxes",
    "tau_by_length",
    "tau_differences",
    "tau_histogram",
    "to_png",
    "to_svg",
    "uniform_losses",
    "uniform_scores",
    "zero_and_renormalise",
]
