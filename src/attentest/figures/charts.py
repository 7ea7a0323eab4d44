"""Every figure of the papers, one function each, from observed rows or findings to a Vega-Lite chart.

Needs the extra `web`. A chart holds counts and densities, not texts, so a page can embed it whole.
"""

from attentest.experiments.calibration.charts import areas_chart, curves_chart, roc_chart
from attentest.figures.chart_communication import communication_curves, communication_models
from attentest.figures.chart_context import ModelPoint, context_scatter
from attentest.figures.chart_curves import epsilon_curve, search_against_exact, tau_by_length
from attentest.figures.chart_diagram import zero_and_renormalise
from attentest.figures.chart_flips import flip_tables
from attentest.figures.chart_frozen import frozen_curves
from attentest.figures.chart_histograms import jsd_histogram, tau_differences, tau_histogram
from attentest.figures.chart_information import (
    ablation_flatness,
    ablation_losses,
    ablation_scores,
    ablation_taus,
    information_curves,
    information_orders,
    sensitivity_taus,
)
from attentest.figures.chart_lanes import inputs_and_states, sparsity_entropies
from attentest.figures.chart_overview import MainNumber, main_numbers
from attentest.figures.chart_plane import adversary_plane
from attentest.figures.chart_points import (
    deception_scores,
    guide_gains,
    guide_scores,
    uniform_losses,
    uniform_scores,
)
from attentest.figures.chart_rank_groups import rank_groups
from attentest.figures.chart_removal import removal_boxes, survival_curves
from attentest.figures.chart_seeds import apart_scatter, apart_violins, beyond_seeds
from attentest.figures.chart_settings import flatness_scatter, tau_boxes
from attentest.figures.chart_single_weight import djs_scatter, negative_gaps
from attentest.figures.chart_sparsity import agreement_by_lambda, entropy_by_realised
from attentest.figures.chart_style import svg_of, to_png, to_svg
from attentest.figures.chart_violins import adversary_violins, permutation_violins

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
