"""Findings of the adversary experiment, worked by hand; the house rules are in test_findings."""

import math

import pandas as pd
import pytest

from attentest.experiments.adversary import conclude as adversary
from attentest.refusal import Refusal
from tests.observed import adversary_rows, adversary_texts, concluded, one

NAN = math.nan
at_both = pytest.mark.parametrize("at", ["@0.01", "@0.05"])


def found(*tables):
    return concluded(pd.concat(tables), adversary.conclude)


def told(finding, *names):
    return tuple(finding[name] for name in names)


@at_both
def test_the_optimum_beside_shuffled_weights_by_hand(at):
    rows = adversary_texts(
        5,
        length=[9, 9, 9, 9, 1],
        **{
            "attainable": [0.64, 0.65, 0.5, 0.6, NAN],
            f"exact{at}": [0.64, 0.6, 0.1, NAN, NAN],
            f"shuffled{at}": [0.62, 0.61, 0.2, 0.9, NAN],
            f"bound{at}": [0.64, 0.63, 0.1, NAN, NAN],
        },
    )
    findings = found(rows)
    expected = {
        "emax-jsd-exact": (1.34 / 3, 1.43 / 3),
        "emax-jsd-exact-share": (1 / 3, 2 / 3),  # 0.6 itself is not above it
        "emax-jsd-exact-ratio": ((1 + 0.6 / 0.65 + 0.2) / 3, (0.62 / 0.64 + 0.61 / 0.65 + 0.4) / 3),
        "emax-jsd-exact-excess": (-0.03, 0.0),
        "bound-gap": (0.01, 0.0),
    }
    for measure, pair in expected.items():
        finding = one(findings, measure + at)
        assert told(finding, "estimate", "null") == pytest.approx(pair), measure
    exact = one(findings, f"emax-jsd-exact{at}")
    assert told(exact, "n", "excluded") == (3, 2)
    assert exact["why"] == "no exact optimum: the decision is not affine (1); one token (1)"


@at_both
def test_searches_and_what_they_miss_by_hand(at):
    rows = adversary_texts(
        4,
        **{
            f"exact{at}": [0.65, 0.6, 0.5, NAN],
            f"last{at}": [0.5, 0.65, NAN, 0.3],
            f"best{at}": [0.6, NAN, NAN, 0.4],
            f"unpaired{at}": [0.62, NAN, NAN, NAN],
            f"permuted{at}": [0.2, 0.3, 0.4, 0.5],
            f"capped{at}": [0.3, 0.4, 0.5, 0.6],
        },
    )
    findings = found(rows)
    expected = {
        "emax-jsd-last": (1.45 / 3, 3),
        "emax-jsd-last-share": (1 / 3, 3),
        "emax-jsd-best": (0.5, 2),
        "emax-jsd-best-share": (0.0, 2),
        "emax-jsd-unpaired": (0.62, 1),
        "emax-jsd-unpaired-share": (1.0, 1),
        "emax-jsd-permuted": (0.35, 4),
        "emax-jsd-capped": (0.45, 4),
    }
    for measure, pair in expected.items():
        finding = one(findings, measure + at)
        assert told(finding, "estimate", "n") == pytest.approx(pair) and math.isnan(finding["null"]), measure
    assert told(one(findings, f"emax-jsd-best{at}"), "excluded", "why") == (2, "not searched")
    shortfall = one(findings, f"search-shortfall{at}")
    assert told(shortfall, "estimate", "null", "n") == pytest.approx((-0.01, 0.0, 2))
    assert told(shortfall, "excluded", "why") == (2, "no exact optimum or not searched")


def test_the_curve_is_told_overall_only():
    values = {f"exact@{epsilon:g}": epsilon for epsilon in (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)}
    findings = found(adversary_texts(3, **values), adversary_texts(3, 0, "untrained"))
    for name, value in values.items():
        assert one(findings, f"emax-jsd-{name}")["estimate"] == pytest.approx(value)
    for epsilon in ("0.001", "0.005", "0.02", "0.1"):
        curve = findings[findings["measure"] == f"emax-jsd-exact@{epsilon}"]
        assert curve["group"].tolist() == ["overall"] and curve["null"].isna().all()


def test_groups_and_which_measures_they_have():
    rows = adversary_texts(
        4,
        predicted=["a", "b", "a", "b"],
        label=["c", "c", "c", "d"],
        max_attention=[0.1, 0.25, 0.3, 1.0],
        **{"exact@0.01": [0.1, 0.2, 0.3, 0.4]},
    )
    control = adversary_texts(4, 0, "shuffled labels", **{"exact@0.01": 0.6})
    findings = found(rows, control)
    exact = findings[findings["measure"] == "emax-jsd-exact@0.01"].set_index("group")
    assert exact["estimate"].to_dict() == pytest.approx(
        {
            "overall": 0.25,
            "shuffled labels": 0.6,
            "predicted=a": 0.2,
            "predicted=b": 0.3,
            "gold=c": 0.2,
            "gold=d": 0.4,
            "max attention [0.00, 0.25)": 0.1,
            "max attention [0.25, 0.50)": 0.25,
            "max attention [0.75, 1.00]": 0.4,
        }
    )
    binned = set(findings[findings["group"].str.startswith("max")]["measure"])
    assert binned == {f"emax-jsd-{kind}@{epsilon}" for kind in ("exact", "last") for epsilon in (0.01, 0.05)}
    by_class = findings[findings["group"] == "gold=d"]["measure"]
    assert set(by_class) == set(findings[findings["group"] == "shuffled labels"]["measure"])


@pytest.mark.parametrize("seeds", [1, 3])
def test_nothing_crashes_where_nothing_was_searched_and_one_class_is_predicted(seeds):
    nothing = dict.fromkeys([name for name in adversary.NUMBERS if not name.startswith("exact")], NAN)
    findings = found(*(adversary_texts(3, seed, **nothing) for seed in range(seeds)))
    unpaired = one(findings, "emax-jsd-unpaired@0.05")
    assert told(unpaired, "n", "seeds", "excluded", "why") == (0, 0, 3 * seeds, "not searched")
    exact = one(findings, "emax-jsd-exact@0.05", "predicted=yes")
    assert told(exact, "estimate", "n", "seeds") == (0.0, 3 * seeds, seeds) and math.isnan(exact["null"])
    assert math.isnan(one(findings, "emax-jsd-exact-ratio@0.05")["estimate"])


@pytest.mark.parametrize("column", ["exact@0.02", "unpaired@0.05", "attainable", "max_attention", "label"])
def test_a_missing_column_is_refused(column):
    with pytest.raises(Refusal, match=f"no column {column}"):
        found(adversary_texts(3).drop(columns=column))


def test_shown_texts_may_carry_their_vectors():
    rows = adversary_texts(3, proved=True, epsilon=0.01)
    shown = rows.assign(exact_weights=None, search_weights=None)
    shown["weights"] = [[0.5, 0.5]] * 3
    pd.testing.assert_frame_equal(found(shown), found(rows))


def test_a_permutation_is_a_capped_attention_too():
    rows = adversary_rows()
    rows["permuted@0.01"], rows["capped@0.01"] = 0.4, 0.3
    found = concluded(rows, adversary.conclude)
    assert one(found, "emax-jsd-capped@0.01")["estimate"] == pytest.approx(0.4)


def test_where_nothing_is_proven_the_best_search_stands_for_the_optimum():
    rows = adversary_rows()
    rows["exact@0.01"], rows["best@0.01"] = 0.3, 0.5
    for column in ("last@0.01", "unpaired@0.01"):
        rows[column] = 0.1
    assert one(concluded(rows.assign(proved=False), adversary.conclude), "emax-jsd-exact@0.01")[
        "estimate"
    ] == pytest.approx(0.5)
    assert one(concluded(rows.assign(proved=True), adversary.conclude), "emax-jsd-exact@0.01")[
        "estimate"
    ] == pytest.approx(0.3)
