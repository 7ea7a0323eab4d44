"""The uniform baseline (WP-1): its models, its rows, and what the difference is made of."""

import math

import numpy as np
import pandas as pd
import pytest

from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared.variants import Contest, seed_difference
from attentest.experiments.uniform_baseline import conclude as uniform_baseline
from attentest.experiments.uniform_baseline.observe import UniformBaseline
from attentest.model.config import ModelConfig
from tests.observed import concluded, one
from tests.observed_wiegreffe_pinter import answers, observed, uniform_baseline_rows
from tests.toys import toy_corpus


def found(*tables):
    return concluded(pd.concat(tables), uniform_baseline.conclude)


def test_the_sibling_differs_in_its_weights_alone():
    config = ModelConfig(projection="sparsemax", hidden=8, seed=3, guide="x", start_from="y")
    siblings = UniformBaseline().siblings(config)
    assert list(siblings) == ["uniform", "untrained", "shuffled labels"]
    assert siblings["uniform"].spelled() == {"hidden": 8, "seed": 3, "projection": "uniform"}


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")], ids=["sigmoid", "softmax"])
def test_rows_tell_every_model_of_every_text(labels):
    corpus = toy_corpus(labels=labels)
    rows, models = observed(UniformBaseline(), corpus)
    assert set(rows["subject"]) == {"trained", "uniform", "untrained", "shuffled labels"}
    assert all(sorted(part["id"]) == sorted(e.id for e in corpus.test) for _, part in rows.groupby("subject"))
    uniform = rows[rows["subject"] == "uniform"]
    np.testing.assert_allclose(uniform["max_attention"], 1 / uniform["length"], rtol=1e-6)
    assert [labels[number] for number in rows["gold"]] == rows["label"].tolist()
    for row in rows.itertuples():
        assert len(row.probabilities) == len(labels) and sum(row.probabilities) == pytest.approx(1)
        assert row.predicted == labels[int(np.argmax(row.probabilities))]
    findings = concluded(rows.assign(seed=0), uniform_baseline.conclude)
    assert set(findings["group"]) == {"overall", "trained", "uniform", "untrained", "shuffled labels"}
    assert models["uniform"].projection.name == "uniform"


def test_what_is_lost_by_hand():
    rows = [
        answers(20, seed, subject, right)
        for seed, subject, right in (
            (0, "trained", 1.0),
            (1, "trained", 0.8),
            (2, "trained", 0.7),
            (0, "uniform", 0.9),
            (1, "uniform", 0.9),
            (2, "uniform", 0.6),
        )
    ]
    findings = found(*rows)
    lost = one(findings, "accuracy-lost")
    assert lost["estimate"] == pytest.approx((0.1 - 0.1 + 0.1) / 3)
    assert lost["seed_std"] == pytest.approx(np.std([0.1, -0.1, 0.1], ddof=1))
    assert lost["null"] == pytest.approx((0.2 + 0.3 + 0.1) / 3), (
        "what two seeds of the trained model differ by"
    )
    assert (lost["n"], lost["seeds"], lost["excluded"], lost["interval"]) == (60, 3, 0, "seeds, instances")
    assert lost["low"] <= lost["estimate"] <= lost["high"]
    for measure in performance.MEASURES:
        trained, uniform = (one(findings, measure, group)["estimate"] for group in ("trained", "uniform"))
        assert one(findings, f"{measure}-lost")["estimate"] == pytest.approx(trained - uniform)


def test_the_difference_is_paired():
    """Two models with the same answers differ by nothing in every draw, however few texts there are."""
    rows = [
        answers(12, seed, subject, 0.6 + 0.1 * seed) for seed in (0, 1) for subject in ("trained", "uniform")
    ]
    lost = one(found(*rows), "f1-lost")
    assert (lost["estimate"], lost["low"], lost["high"]) == (0, 0, 0)
    assert one(found(*rows), "f1", "trained")["high"] > one(found(*rows), "f1", "trained")["low"]


def test_texts_are_matched_by_id_and_answers_that_are_no_numbers_excluded():
    trained, uniform = answers(10, subject="trained", right=0.8), answers(10, subject="uniform", right=0.5)
    uniform.at[9, "probabilities"] = [math.nan, math.nan]
    lost = one(found(trained, uniform.iloc[::-1].iloc[:8]), "accuracy-lost")
    # The last eight texts: the trained model has six right of the seven that are numbers.
    assert lost["estimate"] == pytest.approx(6 / 7 - 3 / 7)
    assert (lost["n"], lost["excluded"], lost["why"]) == (7, 1, "the output is not a number")
    assert math.isnan(lost["null"]), "one seed has none to differ from"


def test_a_score_that_is_undefined_leaves_its_seed_out():
    alike = [answers(6, 0, subject, label="yes", gold=1) for subject in ("trained", "uniform")]
    lost = one(found(*alike), "auc-lost")
    assert math.isnan(lost["estimate"]) and lost["excluded"] == 6
    assert lost["why"] == "all gold labels alike: nothing to rank"


def test_the_best_rival_is_chosen_seed_by_seed(rng):
    rights = {"a": (0.9, 0.6), "b": (0.8, 0.5), "c": (0.5, 0.7)}
    rows = pd.concat([answers(10, s, name, right[s]) for name, right in rights.items() for s in (0, 1)])
    contest = Contest(experiment="e", rows=rows, mode="corrected", rng=rng)
    (finding,) = contest.beyond("accuracy", "a", ("b", "c"), name="m", group="g", null=0.0)
    assert finding.estimate == pytest.approx((0.1 - 0.1) / 2)
    assert contest.beyond("accuracy", "a", ("nobody",), name="m", group="g", null=0.0) == []


def test_seed_differences():
    assert seed_difference([0.1, 0.4, 0.2]) == pytest.approx(0.2)
    assert math.isnan(seed_difference([0.1])) and math.isnan(seed_difference([]))


def test_rows_of_the_house():
    findings = concluded(uniform_baseline_rows(), uniform_baseline.conclude)
    assert set(findings["measure"]) == {m + lost for m in performance.MEASURES for lost in ("", "-lost")}
