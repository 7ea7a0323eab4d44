"""What every conclude must keep."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from attentest.experiments.cards import CARDS, card
from attentest.statistics.record import seed_estimates, to_frame
from tests.observed import concluded


def check_it_says_the_same_again_in_any_order_and_leaves_the_rows_alone(conclude, rows, found):
    shuffled = rows.sample(frac=1, random_state=1)
    before = shuffled.copy(deep=True)
    pd.testing.assert_frame_equal(to_frame(found), concluded(shuffled, conclude), check_exact=True)
    pd.testing.assert_frame_equal(shuffled, before)


def check_every_measure_has_a_card(conclude, rows, found):
    for finding in found:
        assert f"{finding.experiment}/{finding.measure.partition('@')[0]}" in CARDS
        low, high = card(finding.experiment, finding.measure).range
        assert low <= finding.estimate <= high


def check_there_is_no_news_without_trained_models(conclude, rows, found):
    assert conclude(rows[rows["subject"] == "none"], mode="corrected", rng=np.random.default_rng(0)) == []


def check_intervals_and_seeds_say_the_same_as_the_estimate(conclude, rows, findings):
    for found in findings:
        own = seed_estimates(found.by_seed)
        if not found.measure.startswith(OF_NO_SEED):
            assert len(own) == found.seeds
            assert (
                not own or found.measure.startswith(LARGEST) or found.estimate == pytest.approx(np.mean(own))
            )
        assert (found.interval == "none") == math.isnan(found.error) == math.isnan(found.low)
        if found.interval != "none":
            reach = found.error * stats.t.ppf(0.975, found.freedom)
            bounds = found.estimate - reach, found.estimate + reach
            assert (found.low, found.high) == pytest.approx(bounds, rel=1e-6, abs=1e-9)


OF_NO_SEED = ("sign-p",)  # a test over seeds: one has nothing to say


LARGEST = ("mcnemar-p",)  # not the mean over seeds, the largest p-value of any


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
