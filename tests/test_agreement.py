"""The three-way rule: its size and power by simulation, and the rule of the first edition as a mutant."""

import math

import numpy as np
import pytest
from scipy import stats

from attentest.compare.equivalence import (
    half_width,
    is_different,
    is_equivalent,
    margin_of,
    probability_of_agreeing,
    verdict,
)
from attentest.experiments.cards import CARDS
from attentest.statistics.moderated import Deviation, moderated

MARGIN, HALF_DIGIT = 0.15, 0.005
PRIOR = (0.04, 2.0, 12)  # about that of tau
MANY = 20_000


def simulated(rng, sigma, seeds, off=0.0):
    """Differences of a mean over seeds and one more run that is off by so much, and the seeds' deviations."""
    runs = rng.normal(0, 1, (MANY, seeds + 1)) * np.reshape(sigma, (-1, 1))
    ours = runs[:, 1:]
    return ours.mean(axis=1) - runs[:, 0] - off, ours.std(axis=1, ddof=1)


def three_way(difference, spread, seeds, prior=None):
    own = np.array([moderated(s, seeds, prior) for s in spread])
    rule = (difference, own[:, 0], own[:, 1], seeds)
    return is_equivalent(*rule, MARGIN, HALF_DIGIT), is_different(*rule, MARGIN)


def first_edition(difference, spread, seeds, prior=None):
    """Agrees unless shown to differ."""
    allowed = stats.t.ppf(0.975, seeds - 1) * spread * math.sqrt(1 + 1 / seeds) + HALF_DIGIT
    agrees = np.abs(difference) <= allowed
    return agrees, ~agrees


def without_the_spread(difference, spread, seeds, prior=None):
    """As if our mean and the published number were exact."""
    return np.abs(difference) + HALF_DIGIT < MARGIN, np.abs(difference) > MARGIN


def drawn_sigma(rng):
    s0, d0, _ = PRIOR
    return np.sqrt(d0 * s0**2 / rng.chisquare(d0, MANY))


def check_equal_means_seldom_differ(rule, rng):
    for seeds in (3, 5, 10):
        for sigma in (0.02, 0.06, 0.5):
            agrees, differs = rule(*simulated(rng, sigma, seeds), seeds)
            assert differs.mean() <= 0.055 and not (agrees & differs).any()
        _, differs = rule(*simulated(rng, drawn_sigma(rng), seeds), seeds, PRIOR)
        assert differs.mean() <= 0.055


def check_three_deviations_off_seldom_agrees(rule, rng):
    for seeds in (3, 5):
        agrees, _ = rule(*simulated(rng, 0.06, seeds, off=3 * 0.06), seeds)
        assert agrees.mean() <= 0.055
        agrees, _ = rule(*simulated(rng, drawn_sigma(rng), seeds, off=0.18), seeds, PRIOR)
        assert agrees.mean() <= 0.055


def check_a_constant_agrees_with_no_tau(rule, rng):
    """Nothing is measured: 0.0 is printed beside tau of 0.3, whatever the deviation over seeds is."""
    for seeds in (3, 5):
        difference, spread = simulated(rng, drawn_sigma(rng), seeds, off=-0.3)
        agrees, _ = rule(difference, spread, seeds, PRIOR)
        assert agrees.mean() < 0.01


CHECKS = (
    check_equal_means_seldom_differ,
    check_three_deviations_off_seldom_agrees,
    check_a_constant_agrees_with_no_tau,
)


@pytest.mark.parametrize("check", CHECKS)
def test_the_rule_has_its_size_and_its_power(check, rng):
    check(three_way, rng)


@pytest.mark.parametrize(
    ("mutant", "fails"),
    [(first_edition, {1, 2}), (without_the_spread, {0, 1, 2})],
)
def test_other_rules_fail(mutant, fails, rng):
    for place, check in enumerate(CHECKS):
        if place in fails:
            with pytest.raises(AssertionError):
                check(mutant, rng)
        else:
            check(mutant, rng)


def test_numbers_that_are_far_apart_differ_and_equal_ones_agree_where_seeds_are_alike(rng):
    _, differs = three_way(*simulated(rng, 0.03, 5, off=0.3), 5)
    assert differs.mean() > 0.99
    agrees, _ = three_way(*simulated(rng, 0.02, 5), 5)
    assert agrees.mean() > 0.9


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("prior", [PRIOR, (0.06, 6.0, 12), (0.05, math.inf, 12)])
def test_the_printed_probability_is_how_often_equal_means_agree(rng, seeds, prior):
    """Calibrated on average and where it is small or large, if the prior is true."""
    s0, d0, _ = prior
    sigma = np.full(MANY, s0) if math.isinf(d0) else np.sqrt(d0 * s0**2 / rng.chisquare(d0, MANY))
    difference, spread = simulated(rng, sigma, seeds)
    own = np.array([moderated(s, seeds, prior) for s in spread])
    agrees = is_equivalent(difference, own[:, 0], own[:, 1], seeds, MARGIN, HALF_DIGIT)
    p = probability_of_agreeing(own[:, 0], own[:, 1], seeds, MARGIN, HALF_DIGIT)
    for low, high in ((0.0, 1.01), (0.0, 0.3), (0.3, 0.8), (0.8, 1.01)):
        some = (p >= low) & (p < high)
        if some.sum() > 200:
            error = math.sqrt(max(p[some].mean() * (1 - p[some].mean()), 1e-3) / some.sum())
            assert abs(agrees[some].mean() - p[some].mean()) < 4 * error


def test_the_probability_at_its_ends():
    assert probability_of_agreeing(0.0, 4.0, 5, MARGIN, HALF_DIGIT) == 1
    assert probability_of_agreeing(0.2, 4.0, 5, MARGIN, HALF_DIGIT) == 0
    assert probability_of_agreeing(0.01, 4.0, 5, None, HALF_DIGIT) == 0
    many = probability_of_agreeing(0.05, math.inf, 5, MARGIN, HALF_DIGIT)
    room = 0.145 / (0.05 * math.sqrt(1.2)) - stats.norm.ppf(0.95)
    assert many == pytest.approx(2 * stats.norm.cdf(room) - 1)


def test_the_interval_is_that_of_one_more_run():
    for seeds in range(2, 12):
        expected = stats.t.ppf(0.975, seeds - 1) * 0.02 * math.sqrt(1 + 1 / seeds)
        assert half_width(0.02, seeds - 1, seeds, 0.95) == pytest.approx(expected)


def test_without_a_margin_a_number_can_only_differ():
    sure, wide = Deviation(0.001, 4.0), Deviation(0.5, 4.0)
    assert verdict(0.0, sure, 5, None, HALF_DIGIT) == "cannot tell"
    assert verdict(0.1, sure, 5, None, HALF_DIGIT) == "differs"
    assert verdict(0.1, wide, 5, None, HALF_DIGIT) == "cannot tell"
    assert verdict(0.004, Deviation(0.0, 4.0), 5, None, HALF_DIGIT) == "cannot tell", "it may be rounding"


@pytest.mark.parametrize(
    ("statistic", "margin"),
    [
        ("importance/tau-gradient", 0.15),
        ("heat-map/tau-gradient", 0.15),
        ("dispersion/tau-hidden-loo", 0.15),
        ("information-ablation/tau-lost", 0.15),
        ("sparsity/kendall-lambda-entropy-gradient", 0.15),
        ("importance/tau-loo-significant", 0.15),
        ("performance/accuracy", 0.03),
        ("uniform-baseline/f1", 0.03),
        ("performance/auc", 0.03),
        ("frozen-adversary/accuracy-change", 0.03),
        ("trained-adversary/attention-jsd", None),
        ("trained-adversary/output-tvd-halved", None),
        ("dispersion/entropy-influence", None),
        ("single-weight/only-top-flips-attention", None),
        ("heat-map/median-output-change", None),
        ("information/tau-p", None),
        ("information/tau-null-95", None),
    ],
)
def test_margins_are_of_kinds_of_measures(statistic, margin):
    assert statistic in CARDS and margin_of(statistic) == margin
