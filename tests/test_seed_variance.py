"""Seed variance (WP-2): what the rows compare, against numpy text by text, and the findings by hand."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.experiments.seed_variance import conclude as seed_variance
from attentest.experiments.seed_variance.observe import SeedVariance
from attentest.experiments.shared.distance_to_base import other_seeds
from attentest.model.config import ModelConfig
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon, total_variation
from tests.observed import concluded, one
from tests.observed_wiegreffe_pinter import apart, observed, seed_variance_rows
from tests.toys import toy_batch, toy_corpus

NAN = math.nan


def reading_of(model, corpus):
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
        return reading, distribution(model.decide(reading)).numpy()


def by_text(rows, subject):
    return rows[rows["subject"] == subject].set_index("id")


@pytest.mark.parametrize(("seed", "expected"), [(0, [1, 2, 3]), (2, [0, 1, 3]), (7, [0, 1, 2])])
def test_the_bases_of_a_study_share_their_siblings(seed, expected):
    found = other_seeds(ModelConfig(seed=seed, hidden=8), 3)
    assert list(found) == [f"seed {number}" for number in expected]
    assert list(found.values()) == [ModelConfig(seed=number, hidden=8) for number in expected]
    siblings = SeedVariance().siblings(ModelConfig())
    assert list(siblings) == [*(f"seed {n}" for n in range(1, 9)), "untrained", "shuffled labels"]


@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")], ids=["two classes", "three"])
def test_rows_are_what_numpy_finds_text_by_text(labels):
    corpus = toy_corpus(labels=labels)
    rows, models = observed(SeedVariance(others=3, nulls=4), corpus)
    base, own = reading_of(models["trained"], corpus)
    compared = {"jsd": {}, "tvd": {}}
    for name in set(models) - {"trained"}:
        theirs, answers = reading_of(models[name], corpus)
        for place, example in enumerate(corpus.test):
            row, length = by_text(rows, name).loc[example.id], len(example.tokens)
            jsd = jensen_shannon(base.weights[place, :length], theirs.weights[place, :length])
            tvd = total_variation(own[place], answers[place])
            assert row["tvd"] == pytest.approx(tvd, abs=1e-6)
            assert row["jsd"] == pytest.approx(jsd if length > 1 else NAN, abs=1e-6, nan_ok=True)
            assert row["base_predicted"] == labels[own[place].argmax()]
            assert row["predicted"] == labels[answers[place].argmax()]
            assert row["base_max_attention"] == pytest.approx(float(base.weights[place].max()))
            assert math.isnan(row["exact"])
            if name.startswith("seed "):
                compared["jsd"].setdefault(example.id, []).append(row["jsd"])
                compared["tvd"].setdefault(example.id, []).append(row["tvd"])
    trained = by_text(rows, "trained")
    for name, values in compared["jsd"].items():
        assert trained.loc[name, "jsd"] == pytest.approx(np.median(values), nan_ok=True)
        assert trained.loc[name, "tvd"] == pytest.approx(np.mean(compared["tvd"][name]))
        assert trained.loc[name, "predicted"] == trained.loc[name, "base_predicted"]


def test_the_adversary_beside_is_the_exact_one_and_no_divergence_is_beyond_the_attainable():
    corpus = toy_corpus()
    rows, models = observed(SeedVariance(others=2, nulls=3), corpus)
    base, _ = reading_of(models["trained"], corpus)
    found = strongest_adversary(base.weights, base.values, base.bias, base.mask, 0.01)
    trained = by_text(rows, "trained")
    for place, example in enumerate(corpus.test):
        expected = float(found.divergence[place]) if len(example.tokens) > 1 else NAN
        assert trained.loc[example.id, "exact"] == pytest.approx(expected, abs=1e-5, nan_ok=True)
    several = trained[trained["length"] > 1]
    assert (several["epsilon"] == 0.01).all()
    for column in ("jsd", "exact", "permuted"):
        assert (several[column] <= several["attainable"] + 1e-6).all() and (several[column] >= 0).all()
    assert several["exact"].min() > 0.01 and several["permuted"].max() > 0.01
    alone = trained[trained["length"] == 1]
    assert alone[["jsd", "exact", "attainable", "permuted"]].isna().all(axis=None)
    assert alone["tvd"].notna().all()


def test_of_several_classes_some_texts_are_solved_and_without_an_affine_decision_none():
    step = SeedVariance(others=1, nulls=1, programmed=2)
    rows, _ = observed(step, toy_corpus(labels=("no", "so", "yes"), lengths=(5, 4, 3, 2)))
    assert by_text(rows, "trained")["exact"].notna().sum() == 2
    rows, _ = observed(step, toy_corpus(query=True))
    trained = by_text(rows, "trained")
    assert trained["exact"].isna().all() and (trained["epsilon"] == 0.05).all()
    assert one(concluded(rows.assign(seed=0), seed_variance.conclude), "adversary-jsd")["excluded"] == 6


def test_the_same_rng_draws_the_same_and_nan_weights_are_counted():
    corpus = toy_corpus()
    (first, _), (second, _) = (observed(SeedVariance(others=1, nulls=2), corpus) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    rows = first.assign(seed=0)
    rows.loc[rows["length"] == 9, ["jsd", "exact"]] = NAN
    found = one(concluded(rows, seed_variance.conclude), "seed-jsd")
    assert (found["n"], found["excluded"]) == (4, 2)
    assert found["why"] == "one token (1); weights or output are not numbers (1)"


def test_findings_by_hand():
    rows = pd.concat(
        [
            apart(
                4,
                jsd=[0.1, 0.2, 0.3, NAN],
                tvd=[0.2, 0.4, 0.0, 0.9],
                exact=[0.4, 0.1, NAN, NAN],
                permuted=[0.05, 0.4, 0.6, NAN],
                attainable=[0.5, 0.5, 0.6, NAN],
                base_predicted=["no", "no", "yes", "yes"],
                base_max_attention=[0.1, 0.3, 0.3, 1.0],
                length=[9, 9, 9, 1],
            ),
            apart(4, subject="untrained", jsd=[0.6, 0.4, 0.2, NAN], tvd=[0.5, 0.3, 0.1, 0.8], permuted=NAN),
            apart(4, subject="seed 1", jsd=0.69, tvd=1.0, permuted=NAN),
        ]
    )
    findings = concluded(rows, seed_variance.conclude)

    def told(measure, group="overall"):
        return tuple(one(findings, measure, group)[["estimate", "null"]])

    assert told("seed-jsd") == pytest.approx((0.2, 0.35))
    assert told("seed-tvd") == pytest.approx((0.2, 0.3)), "of the texts that have a divergence"
    assert told("seed-jsd-excess") == pytest.approx((-0.15, 0.0))
    assert told("adversary-jsd") == pytest.approx((0.25, 0.15)), "beside the seeds of the same texts"
    assert told("adversary-beyond-seeds") == pytest.approx((0.1, 0.0))
    assert told("seed-jsd", "untrained") == pytest.approx((0.4, NAN), nan_ok=True)
    assert told("seed-jsd", "predicted=no") == pytest.approx((0.15, 0.225))
    assert told("seed-jsd", "max attention [0.25, 0.50)") == pytest.approx((0.25, 0.5))
    assert told("seed-jsd", "predicted=no, max attention [0.25, 0.50)") == pytest.approx((0.2, 0.4))
    beyond = one(findings, "adversary-beyond-seeds")
    assert (beyond["n"], beyond["excluded"]) == (2, 2)
    assert beyond["why"] == "no exact adversary, or NaN weights (1); one token (1)"
    assert not findings["group"].str.startswith("seed").any()


def test_rows_of_the_house():
    findings = concluded(seed_variance_rows(), seed_variance.conclude)
    controls = findings[findings["group"].isin(["untrained", "shuffled labels"])]
    assert set(controls["measure"]) == {"seed-jsd", "seed-tvd"} and len(controls) == 4


@pytest.mark.parametrize("wrong", [{"others": 0}, {"nulls": 0}, {"programmed": -1}])
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(Refusal, match="at least 1 other seed and 1 draw"):
        SeedVariance(**wrong)
