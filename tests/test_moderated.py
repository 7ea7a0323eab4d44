"""The moderated deviation: fitted priors, the committed table, and what few cells may not say."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import polygamma

from attentest.statistics.moderated import (
    INPUTS,
    LEAST_CELLS,
    TABLE,
    by_priors,
    fit_prior,
    inverse_trigamma,
    moderated,
    prior_table,
)
from attentest.studies.seed_deviations import load_seed_deviations, table_version

ROOT = Path(__file__).parents[1]


def deviations(rng, s0, d0, seeds, cells):
    """Sample deviations of cells whose true variances come from the prior."""
    variances = np.full(cells, s0**2) if math.isinf(d0) else d0 * s0**2 / rng.chisquare(d0, cells)
    return np.sqrt(variances * rng.chisquare(seeds - 1, cells) / (seeds - 1))


@pytest.mark.parametrize("value", [1e-6, 0.01, 0.5, 1.0, 5.0, 100.0, 1e6])
def test_the_inverse_of_trigamma_is_one(value):
    assert polygamma(1, inverse_trigamma(value)) == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize(("s0", "d0"), [(0.06, 4.0), (0.01, 1.5), (0.3, 12.0)])
def test_the_fit_finds_the_prior_that_made_the_deviations(rng, s0, d0, seeds):
    found = fit_prior(deviations(rng, s0, d0, seeds, 20_000).tolist(), [seeds] * 20_000)
    assert found[0] == pytest.approx(s0, rel=0.03)
    assert found[1] == pytest.approx(d0, rel=0.15)


def test_the_fit_takes_cells_of_unequal_numbers_of_seeds(rng):
    parts = [deviations(rng, 0.06, 4.0, seeds, 10_000) for seeds in (3, 10)]
    s0, d0 = fit_prior(np.concatenate(parts).tolist(), [3] * 10_000 + [10] * 10_000)
    assert s0 == pytest.approx(0.06, rel=0.03) and d0 == pytest.approx(4.0, rel=0.15)


def test_deviations_that_vary_no_more_than_chance_have_infinite_freedom():
    even = np.sqrt(stats.chi2.ppf((np.arange(40) + 0.5) / 40, 4) / 4) * 0.05
    s0, d0 = fit_prior(even.tolist(), [5] * 40)
    assert math.isinf(d0) and s0 == pytest.approx(0.05, rel=0.05)
    assert moderated(0.2, 5, (s0, d0, 40)) == (s0, math.inf)


def test_a_deviation_of_zero_does_not_break_the_fit():
    s0, d0 = fit_prior([0.0, *np.linspace(0.02, 0.2, 30)], [5] * 31)
    assert math.isfinite(d0) and 0 < s0 < 0.2


def test_moderation_is_the_weighted_mean_of_variances():
    value, freedom = moderated(0.10, 5, (0.04, 3.0, 20))
    assert value == pytest.approx(math.sqrt((3 * 0.04**2 + 4 * 0.10**2) / 7)) and freedom == 7
    assert moderated(0.10, 5, None) == (0.10, 4)
    assert 0.04 < value < 0.10, "between the prior and the cell's own"


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_an_error_over_the_moderated_deviation_follows_t(rng, seeds):
    prior, cells = (0.05, 3.0, 50), 20_000
    variances = prior[1] * prior[0] ** 2 / rng.chisquare(prior[1], cells)
    runs = rng.normal(0, np.sqrt(variances)[:, None], (cells, seeds))
    own = [moderated(s, seeds, prior) for s in runs.std(axis=1, ddof=1)]
    ratio = runs.mean(axis=1) / np.array([one.value for one in own]) * math.sqrt(seeds)
    assert stats.kstest(ratio, "t", args=(own[0].freedom,)).statistic < 0.0136  # the 0.1 % point
    plain = runs.mean(axis=1) / runs.std(axis=1, ddof=1) * math.sqrt(seeds)
    assert stats.kstest(plain, "t", args=(own[0].freedom,)).statistic > 0.0136


# --- the table


def inputs(cells, seeds=5, statistic="a/b", start=0, deviation=lambda cell: 0.01 * (1 + cell % 7)):
    rows = [
        ("study", f"{statistic}{seeds}{start + cell}", statistic, group, seeds, deviation(cell))
        for cell in range(cells)
        for group in ("overall", "predicted=x")
    ]
    return pd.DataFrame(rows, columns=list(INPUTS))


def test_fewer_than_ten_cells_give_no_prior_however_many_classes_they_have():
    assert prior_table(inputs(LEAST_CELLS - 1), 1).empty
    [row] = prior_table(inputs(LEAST_CELLS), 1).to_dict("records")
    assert tuple(row) == TABLE and (row["measure"], row["cells"]) == ("a/b", 10)


def test_the_cells_with_the_most_seeds_are_used_if_they_are_enough():
    many = inputs(50, seeds=3, deviation=lambda cell: 0.1 * (1 + cell % 7))
    [row] = prior_table(pd.concat([many, inputs(12)]), 1).to_dict("records")
    assert row["cells"] == 12 and row["s0"] < 0.06
    [row] = prior_table(pd.concat([many, inputs(9)]), 1).to_dict("records")
    assert row["cells"] == 59


def test_a_measure_that_mostly_never_varies_has_no_prior():
    assert prior_table(inputs(20, deviation=lambda cell: 0.01 * (cell % 2)), 1).empty


def script():
    spec = importlib.util.spec_from_file_location("seed_deviations", ROOT / "docs" / "seed_deviations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_table_is_what_the_script_makes_of_the_committed_inputs():
    made = script().fitted()
    pd.testing.assert_frame_equal(pd.read_csv(script().FITTED), made)
    assert table_version() == script().VERSION
    found = load_seed_deviations()
    assert list(found) == made["measure"].tolist() and all(one.cells >= LEAST_CELLS for one in found.values())
    for measure in ("importance/tau-gradient", "importance/tau-loo", "performance/f1"):
        assert found[measure].cells == 12, "five seeds of Jain & Wallace's study go before three of vectors"


def test_inputs_that_are_in_the_results_are_what_the_results_say():
    module = script()
    committed = pd.read_csv(module.GATHERED)
    made = module.gathered("vectors", module.findings(str(ROOT / "results" / "vectors.parquet")))
    own = committed[committed["study"] == "vectors"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, made, check_dtype=False)
    assert set(committed.columns) == set(INPUTS) and (committed["seeds"] >= 2).all()


def test_claims_of_two_models_use_the_moderated_deviation():
    """Two seeds that agree by luck decide nothing where many cells say how far seeds lie apart."""
    priors = {"importance/tau-gradient": (0.04, 4.0, 12)}
    found = by_priors(priors)("importance/tau-gradient", 0.0, 2)
    assert found == moderated(0.0, 2, priors["importance/tau-gradient"]) and found.value > 0.03
    assert by_priors(priors)("importance/tau-loo", 0.01, 3) == (0.01, 2.0)
