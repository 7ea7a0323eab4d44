"""Every function that draws a figure, from wherever it is: one import for the tests of figures."""

from attentest.charts.context import ModelPoint, context_scatter
from attentest.charts.diagram import zero_and_renormalise
from attentest.charts.overview import MainNumber, main_numbers
from attentest.charts.rank_groups import rank_groups
from attentest.charts.settings import flatness_scatter, tau_boxes
from attentest.charts.style import svg_of, to_png, to_svg
from attentest.experiments.adversary.charts import (
    adversary_violins,
    epsilon_curve,
    jsd_histogram,
    search_against_exact,
)
from attentest.experiments.calibration.charts import areas_chart, curves_chart, roc_chart
from attentest.experiments.communication.charts import communication_curves, communication_models
from attentest.experiments.deception.charts import deception_scores
from attentest.experiments.dispersion.charts import inputs_and_states
from attentest.experiments.frozen_adversary.charts import frozen_curves
from attentest.experiments.guided.charts import guide_gains, guide_scores
from attentest.experiments.importance.charts import tau_by_length, tau_differences, tau_histogram
from attentest.experiments.information.charts import information_curves, information_orders
from attentest.experiments.information_ablation.charts import (
    ablation_flatness,
    ablation_losses,
    ablation_scores,
    ablation_taus,
)
from attentest.experiments.information_sensitivity.charts import sensitivity_taus
from attentest.experiments.permutation.charts import permutation_violins
from attentest.experiments.removal.charts import removal_boxes, survival_curves
from attentest.experiments.seed_variance.charts import apart_scatter, apart_violins, beyond_seeds
from attentest.experiments.single_weight.charts import djs_scatter, flip_tables, negative_gaps
from attentest.experiments.sparsity.charts import agreement_by_lambda, entropy_by_realised, sparsity_entropies
from attentest.experiments.trained_adversary.charts import adversary_plane
from attentest.experiments.uniform_baseline.charts import uniform_losses, uniform_scores
