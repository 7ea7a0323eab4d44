"""Every figure of the papers, one function each, from observed rows to a Vega-Lite chart.

Needs the extra `web`. A chart holds counts and densities, not texts, so a page can embed it whole.
"""

from attentest.figures.chart_curves import epsilon_curve, search_against_exact, tau_by_length
from attentest.figures.chart_histograms import jsd_histogram, tau_differences, tau_histogram
from attentest.figures.chart_overview import MainNumber, main_numbers
from attentest.figures.chart_style import to_png, to_svg
from attentest.figures.chart_violins import adversary_violins, permutation_violins

__all__ = [
    "MainNumber",
    "adversary_violins",
    "epsilon_curve",
    "jsd_histogram",
    "main_numbers",
    "permutation_violins",
    "search_against_exact",
    "tau_by_length",
    "tau_differences",
    "tau_histogram",
    "to_png",
    "to_svg",
]
