"""Findings of removal and single weights, worked by hand; the house rules are in test_findings."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from attentest.experiments.cards import card
from attentest.experiments.removal import conclude as removal
from attentest.experiments.removal.conclude import weighted_median
from attentest.experiments.single_weight import conclude as single_weight
from attentest.experiments.single_weight.conclude import mcnemar
from attentest.refusal import Refusal
from attentest.statistics.interval import interval_of_statistic
from attentest.statistics.record import to_frame
from tests.observed import concluded, one
from tests.observed_removals import removal_rows, removal_texts, single_weight_rows, single_weight_texts

NAN = math.nan


def removed(*tables, mode="corrected"):
    return to_frame(removal.conclude(pd.concat(tables), mode=mode, rng=np.random.default_rng(0)))


def singly(*tables):
    return concluded(pd.concat(tables), single_weight.conclude)


def told(finding, *names):
    return tuple(finding[name] for name in names)


def four(**columns):
    """Texts of ten items: the third never flips by attention, the last has one item."""
    return removal_texts(
        4,
        items=[10, 10, 10, 1],
        smallest=[1.0, 2.0, 1.0, 0.0],
        count_random=[5.0, 7.0, 9.0, 1.0],
        counts_random=[[4.0, 6.0], [7.0, 7.0], [8.0, 10.0], [1.0, 1.0]],
        count_attention=[2.0, 4.0, -1.0, 1.0],
        mass_attention=[0.5, 0.7, -1.0, 1.0],
        count_gradient=[1.0, 3.0, 1.0, 1.0],
        count_product=[1.0, 2.0, 1.0, 1.0],
        **columns,
    )


def test_rankings_are_compared_on_the_texts_that_all_of_them_flip():
    found = removed(four())
    expected = {"random": 0.6, "attention": 0.3, "gradient": 0.2, "product": 0.15}
    for ranking, fraction in expected.items():
        level = one(found, f"fraction-{ranking}")
        assert told(level, "estimate", "null") == pytest.approx((fraction, 0.6)), ranking
        assert told(level, "n", "excluded") == (2, 2)
        assert level["why"] == f"{removal.NEVER} (1); {removal.ONE_ITEM} (1)"
    assert one(found, "mass-attention")["estimate"] == pytest.approx(0.6)
    assert one(found, "median-mass-attention")["estimate"] == pytest.approx(0.6)


def test_as_published_each_ranking_drops_its_own_and_one_item_counts():
    found = removed(four(), mode="as-published")
    assert told(one(found, "fraction-attention"), "estimate", "n", "excluded") == (
        pytest.approx((0.2 + 0.4 + 1) / 3),
        3,
        1,
    )
    assert one(found, "fraction-attention")["why"] == removal.NEVER_ITSELF
    gradient = one(found, "fraction-gradient")
    assert told(gradient, "estimate", "n") == (pytest.approx((0.1 + 0.3 + 0.1 + 1) / 4), 4)
    assert set(found["mode"]) == {"as-published"}


def test_what_never_flips_is_counted_and_survives():
    found = removed(four())
    assert told(one(found, "never-flips-attention"), "estimate", "null", "n") == (
        pytest.approx(1 / 3),
        0.0,
        3,
    )
    # Random orders of the three texts: 4 and 6, 7 and 7, 8 and 10 of ten items.
    alive = {0.1: 1.0, 0.25: 1.0, 0.5: 2.5 / 3, 0.75: 1 / 3}
    for share, left in alive.items():
        assert one(found, f"unflipped-random@{share:g}")["estimate"] == pytest.approx(left)
    attention = {0.1: 1.0, 0.25: 2 / 3, 0.5: 1 / 3, 0.75: 1 / 3}
    for share, left in attention.items():
        finding = one(found, f"unflipped-attention@{share:g}")
        assert told(finding, "estimate", "null") == pytest.approx((left, alive[share]))
    partly = removed(removal_texts(1, count_random=[-1.0], counts_random=[[3.0, -1.0, 5.0, 9.0]]))
    assert one(partly, "never-flips-random")["estimate"] == 0.25
    assert told(one(partly, "fraction-attention"), "n", "excluded") == (0, 1)


def test_a_tenth_of_the_items_is_a_tenth():
    items = np.array([10, 30, 70, 110])
    for more, unflipped in ((0, 0.0), (1, 1.0)):  # of all four texts
        found = removed(removal_texts(4, items=items, count_attention=items / 10 + more))
        level = one(found, "unflipped-attention@0.1")
        assert told(level, "estimate", "n") == (unflipped, 4)


def test_the_distance_from_the_optimum():
    found = removed(four())
    assert told(one(found, "excess-attention"), "estimate", "null") == pytest.approx((1.5, 4.5))
    assert told(one(found, "ratio-attention"), "estimate", "null") == pytest.approx((2.0, 4.25))
    hit = {"random": 0.0, "attention": 0.0, "gradient": 2 / 3, "product": 1.0}
    for ranking, share in hit.items():
        assert told(one(found, f"at-optimum-{ranking}"), "estimate", "n") == (pytest.approx(share), 3)
    assert told(one(found, "smallest-fraction"), "estimate", "null") == pytest.approx((0.4 / 3, 0.2))
    assert told(one(found, "unflippable"), "estimate", "n", "excluded") == (0.0, 3, 1)


def test_where_there_is_no_optimum_it_is_said_why():
    found = removed(removal_texts(3, smallest=[NAN, 0.0, 1.0], count_attention=[2.0, -1.0, 1.0]))
    level = one(found, "at-optimum-attention")
    assert told(level, "estimate", "n", "excluded") == (1.0, 1, 2)
    assert level["why"] == f"{removal.NOT_AFFINE} (1); {removal.NO_FLIP} (1)"
    assert told(one(found, "unflippable"), "estimate", "n") == (0.5, 2)


def test_differences_are_paired_and_stand_beside_states_that_changed_places():
    found = removed(
        four(
            null_count_attention=[3.0, 3.0, 3.0, 1.0],
            null_count_random=[4.0, 5.0, 4.0, 1.0],
            null_count_gradient=[3.0, -1.0, 3.0, 1.0],
        )
    )
    difference = one(found, "fraction-attention-minus-random")
    # Its null has the first text alone: in the second the gradient never flips.
    assert told(difference, "estimate", "null", "n") == (pytest.approx(-0.3), pytest.approx(-0.1), 2)
    excess = one(found, "fraction-attention-minus-random-excess")
    assert told(excess, "estimate", "null", "n") == (pytest.approx(-0.2), 0.0, 1)
    assert one(found, "fraction-gradient-minus-attention")["estimate"] == pytest.approx(-0.1)
    assert one(found, "mass-attention-minus-random")["estimate"] == pytest.approx(0.4)


def test_texts_without_numbers_are_excluded_and_said_to_be():
    holes = {name: [NAN, 2.0, 2.0] for name in removal.MEASURED}
    found = removed(removal_texts(3, **holes, counts_random=[[NAN, NAN], [2.0, 2.0], [2.0, 2.0]]))
    for measure in ("fraction-product", "never-flips-random", "unflipped-random@0.5", "at-optimum-random"):
        assert told(one(found, measure), "n", "excluded", "why") == (2, 1, removal.UNDEFINED)


def test_groups_of_removal():
    rows = removal_rows()
    found = removed(rows)
    classes = {"predicted=no", "predicted=yes"}
    assert set(found["group"]) == {"overall", "untrained", "shuffled labels", *classes}
    by_class = set(found[found["group"].isin(classes)]["measure"])
    assert {"fraction-product", "never-flips-attention", "fraction-product-minus-attention"} < by_class
    assert not any(name.startswith(("median", "unflipped", "at-optimum")) for name in by_class)
    kept, alone = (
        removed(some).query("group == 'overall'")[["measure", "estimate", "n", "null"]].reset_index(drop=True)
        for some in (rows, rows[rows["subject"] == "trained"])
    )
    pd.testing.assert_frame_equal(kept, alone)


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9])
def test_a_weighted_median_is_the_median_of_the_repeated_sample(n):
    rng = np.random.default_rng(n)
    sample = rng.integers(0, 5, n).astype(float)
    weights = rng.integers(0, 4, (50, n)).astype(float)
    weights[weights.sum(1) == 0] = 1.0
    expected = [np.median(np.repeat(sample, row.astype(int))) for row in weights]
    np.testing.assert_array_equal(weighted_median(sample, weights), expected)


def test_a_median_has_its_own_interval_and_its_mean_over_seeds():
    rng = np.random.default_rng(0)
    counts = [rng.integers(1, 10, 50).astype(float) for _ in range(2)]
    found = removed(*(removal_texts(50, seed, count_attention=of) for seed, of in enumerate(counts)))
    median, mean = (one(found, f"{prefix}fraction-attention") for prefix in ("median-", ""))
    assert median["estimate"] == pytest.approx(np.mean([np.median(of) / 10 for of in counts]))
    assert mean["estimate"] == pytest.approx(np.mean(counts) / 10)
    assert told(median, "n", "seeds", "excluded", "interval") == told(
        mean, "n", "seeds", "excluded", "interval"
    )
    assert math.isnan(median["std"]) and median["null"] == pytest.approx(0.2)
    ids = [np.arange(50)] * 2
    expected = interval_of_statistic([of / 10 for of in counts], ids, weighted_median, rng=rng)
    assert told(median, "error") == pytest.approx([expected.error], rel=0.1), "up to the draws"
    assert told(median, "low", "high") == pytest.approx(expected[:2], rel=0.2)
    assert json.loads(median["by_seed"]) == pytest.approx([np.median(of) / 10 for of in counts])


def test_the_four_cells_in_percent():
    rows = single_weight_texts(
        5,
        items=[9, 9, 9, 9, 1],
        top_flips_attention=[1.0, 1.0, 0.0, 0.0, NAN],
        random_flips_attention=[1.0, 0.0, 0.0, 0.0, NAN],
        null_top_flips_attention=[0.0, 1.0, 0.0, 1.0, NAN],
        null_random_flips_attention=[0.0, 0.0, 0.0, 1.0, NAN],
    )
    found = singly(rows)
    expected = {
        "both-flip": (25, 25),
        "only-top-flips": (25, 25),
        "only-random-flips": (0, 0),
        "neither-flips": (50, 50),
    }
    for cell, pair in expected.items():
        finding = one(found, f"{cell}-attention")
        assert told(finding, "estimate", "null") == pytest.approx(pair)
        assert told(finding, "n", "excluded", "why") == (4, 1, single_weight.ONE_ITEM)
    share = one(found, "discordant-top-attention")
    assert told(share, "estimate", "null", "n", "excluded") == (1.0, 0.5, 1, 0)
    none = singly(single_weight_texts(3, top_flips_attention=0.0, random_flips_attention=0.0))
    assert "discordant-top-attention" not in set(none["measure"]), "nothing flips, so nothing is discordant"


def test_mcnemar_is_the_binomial_test_of_discordant_pairs():
    assert mcnemar(0, 0) == 1.0 == mcnemar(3, 3)
    assert mcnemar(8, 1) == mcnemar(1, 8) == pytest.approx(2 * (1 + 9) / 2**9)
    assert mcnemar(87, 13) == pytest.approx(stats.binomtest(87, 100).pvalue)


def test_every_seed_is_tested_by_itself_and_the_largest_p_told():
    def seed(number, tops, others):
        flips = np.zeros((2, 20))
        flips[0, :tops] = flips[1, tops : tops + others] = 1
        return single_weight_texts(20, number, top_flips_product=flips[0], random_flips_product=flips[1])

    found = singly(seed(0, 10, 0), seed(1, 8, 1))
    p = one(found, "mcnemar-p-product")
    assert p["estimate"] == max(mcnemar(8, 1), mcnemar(10, 0)) == mcnemar(8, 1)
    assert told(p, "n", "seeds", "interval", "null") == (19, 2, "none", 0.5)
    assert p["seed_std"] == pytest.approx(np.std([mcnemar(10, 0), mcnemar(8, 1)], ddof=1))
    assert one(found, "mcnemar-p-attention")["estimate"] == 1.0


def test_divergences_by_weight_gap():
    rows = single_weight_texts(
        6,
        gap_attention=[0.0, 0.05, 0.1, 0.45, 0.8, 1.0],
        djs_attention=[-0.02, 0.04, 0.1, 0.2, 0.3, 0.1],
        null_djs_attention=[0.0, 0.0, -0.1, 0.1, 0.1, 0.1],
    )
    found = singly(rows)
    djs = found[found["measure"] == "djs-attention"].set_index("group")
    assert djs["estimate"].to_dict() == pytest.approx(
        {
            "overall": 0.12,
            "predicted=yes": 0.12,
            "weight gap [0.00, 0.10)": 0.01,
            "weight gap [0.10, 0.20)": 0.1,
            "weight gap [0.40, 0.60)": 0.2,
            "weight gap [0.80, 1.00]": 0.2,
        }
    )
    assert told(one(found, "djs-attention"), "null") == pytest.approx((0.2 / 6,))
    assert told(one(found, "djs-attention-excess"), "estimate", "null") == pytest.approx((0.52 / 6, 0.0))
    assert told(one(found, "negative-djs-attention"), "estimate", "null") == pytest.approx((1 / 6, 1 / 6))
    assert one(found, "negative-djs-attention", "weight gap [0.00, 0.10)")["estimate"] == 0.5
    assert not found[found["group"].str.startswith("weight")]["measure"].str.contains("gradient").any()


def test_rounding_is_not_a_negative_difference():
    found = singly(single_weight_texts(2, djs_attention=[-1e-17, -1e-9]))
    assert one(found, "negative-djs-attention")["estimate"] == 0.5


def test_groups_of_single_weights():
    found = singly(single_weight_rows())
    for group in ("overall", "untrained", "shuffled labels"):
        assert {"mcnemar-p-attention", "djs-attention", "neither-flips-gradient"} <= set(
            found[found["group"] == group]["measure"]
        )


@pytest.mark.parametrize(
    "conclude, make, column",
    [
        (removal.conclude, removal_rows, "counts_random"),
        (removal.conclude, removal_rows, "null_count_product"),
        (single_weight.conclude, single_weight_rows, "gap_attention"),
        (single_weight.conclude, single_weight_rows, "null_djs_gradient"),
    ],
)
def test_a_missing_column_is_refused(conclude, make, column):
    with pytest.raises(Refusal, match=f"no column {column}"):
        concluded(make().drop(columns=column), conclude)


def test_the_products_card_says_that_it_wins_by_construction():
    for measure in ("fraction-product", "mass-product", "at-optimum-product"):
        assert "near to a tautology" in card("removal", measure).formula
    assert "tautology" not in card("removal", "fraction-attention").formula
