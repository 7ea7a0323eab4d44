"""Every figure of the papers, one function each, from observed rows or findings to a Vega-Lite chart.

Needs the extra `web`. A chart holds counts and densities, not texts, so a page can embed it whole.
"""

from attentest.figures.chart_curves import epsilon_curve, search_against_exact, tau_by_length
from attentest.figures.chart_diagram import zero_and_renormalise
from attentest.figures.chart_flips import flip_tables
from attentest.figures.chart_histograms import jsd_histogram, tau_differences, tau_histogram
from attentest.figures.chart_overview import MainNumber, main_numbers
from attentest.figures.chart_plane import adversary_plane
from attentest.figures.chart_points import (
    deception_scores,
    guide_gains,
    guide_scores,
    uniform_losses,
    uniform_scores,
)
from attentest.figures.chart_removal import removal_boxes, survival_curves
from attentest.figures.chart_seeds import apart_scatter, apart_violins, beyond_seeds
from attentest.figures.chart_single_weight import djs_scatter, negative_gaps
from attentest.figures.chart_style import to_png, to_svg
from attentest.figures.chart_violins import adversary_violins, permutation_violins

__all__ = [
    "MainNumber",
    "adversary_plane",
    "adversary_violins",
    "apart_scatter",
    "apart_violins",
    "beyond_seeds",
    "deception_scores",
    "djs_scatter",
    "epsilon_curve",
    "flip_tables",
    "guide_gains",
    "guide_scores",
    "jsd_histogram",
    "main_numbers",
    "negative_gaps",
    "permutation_violins",
    "removal_boxes",
    "search_against_exact",
    "survival_curves",
    "tau_by_length",
    "tau_differences",
    "tau_histogram",
    "to_png",
    "to_svg",
    "uniform_losses",
    "uniform_scores",
    "zero_and_renormalise",
]
