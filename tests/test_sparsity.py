"""The sweep over sparsity (ME-2, ME-3): its models, rows the long way, correlations against scipy."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attentest.bench.plan import Planner
from attentest.bench.work import do
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.experiments.observers import experiment
from attentest.experiments.sparsity import conclude as sparsity
from attentest.experiments.sparsity.cards import CARDS as SPARSITY_CARDS
from attentest.experiments.sparsity.conclude import Sweep, of_means
from attentest.experiments.sparsity.observe import Sparsity, lambda_of, sweep
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall, normalised_entropy
from attentest.store.tables import from_parquet
from tests.observed import concluded, one
from tests.observed_meister import observed, sparsity_rows, sparsity_texts
from tests.toys import toy_batch, toy_corpus

NAN = math.nan
QUICK = {"lambdas": "-10 0 0.6", "nulls": 3}


def test_the_sweep_is_trained_once_whoever_asks_for_it():
    step = Sparsity(**QUICK)
    softmax = step.siblings(ModelConfig(seed=1, hidden=8, epochs=4))
    names = ["lambda -10", "lambda 0", "lambda 0.6"]
    twins = [f"untrained {name}" for name in names]
    assert list(softmax) == [*names, *twins, "untrained", "shuffled labels"]
    assert softmax["lambda 0"] == ModelConfig(seed=1, hidden=8, epochs=4, projection="sparsemax")
    assert softmax["lambda 0.6"].projection == "sparsegen(0.6)"
    assert softmax["untrained lambda 0.6"] == ModelConfig(
        seed=1, hidden=8, epochs=0, projection="sparsegen(0.6)"
    )
    for same in ("sparsemax", "sparsegen(0)"):
        sparse = step.siblings(ModelConfig(projection=same))
        assert "lambda 0" not in sparse and {"softmax", "untrained softmax"} <= set(sparse)
    assert len(Sparsity().siblings(ModelConfig())) == 2 * 11 + 2


@pytest.mark.parametrize(
    ("projection", "number"),
    [("sparsemax", 0.0), ("sparsegen(-3)", -3.0), ("softmax", NAN), ("uniform", NAN), ("entmax15", NAN)],
)
def test_lambda_is_that_of_a_sparsegen(projection, number):
    assert lambda_of(projection) == pytest.approx(number, nan_ok=True)


@pytest.mark.parametrize("wrong", ["", "0.5", "0 1", "0 nan", "0 -0.0", "0 a", "-inf 0"])
def test_a_sweep_that_is_none_is_refused(wrong):
    with pytest.raises(Refusal, match="at least two different numbers below 1"):
        Sparsity(lambdas=wrong)
    assert sweep("0.3 -1 0") == [-1.0, 0.0, 0.3]


def test_no_draws_are_refused():
    with pytest.raises(Refusal, match="0 draws of the null"):
        Sparsity(nulls=0)


@pytest.mark.parametrize(
    "settings",
    [{"hidden": 5}, {"encoder": "transformer", "attention": "dot", "hidden": 6}],
    ids=["bilstm", "transformer"],
)
def test_rows_say_what_the_evidence_says(settings):
    corpus = toy_corpus(lengths=(7, 1, 9, 2, 5))
    rows, models = observed(Sparsity(**QUICK), corpus, **settings)
    assert {"seed", *rows.columns} >= set(sparsity.COLUMNS)
    assert set(rows["subject"]) == set(models) and (rows.groupby("subject").size() == 5).all()
    for name in ("trained", "lambda 0.6", "untrained lambda -10"):
        model, told = models[name], rows[rows["subject"] == name].set_index("id")
        found = gradients(model, toy_batch(model, corpus), free=True)
        importances = {"gradient": found.norm_free, "loo": leave_one_out(model, found.reading).change}
        for row, example in enumerate(corpus.test):
            said, length = told.loc[example.id], len(example.tokens)
            weights = found.reading.weights[row, :length].double().numpy()
            kept = weights > 0
            assert said["support"] == kept.sum()
            assert said["lambda"] == pytest.approx(lambda_of(model.config.projection), nan_ok=True)
            expected = normalised_entropy(weights) if length > 1 else NAN
            assert said["entropy_attention"] == pytest.approx(expected, abs=1e-5, nan_ok=True)
            for importance, values in importances.items():
                values = values[row, :length].double().numpy()
                spread = normalised_entropy(values / values.sum()) if length > 1 else NAN
                assert said[f"entropy_{importance}"] == pytest.approx(spread, abs=1e-5, nan_ok=True)
                for where, some in (("", slice(None)), ("_support", kept)):
                    tau, _ = kendall(weights[some], values[some])
                    assert said[f"tau_{importance}{where}"] == pytest.approx(tau, abs=1e-9, nan_ok=True)


def test_lambda_is_a_temperature():
    """Models that differ in nothing else: the larger lambda, the fewer tokens have weight."""
    corpus = toy_corpus(lengths=(9, 10, 8))
    rows, _ = observed(Sparsity(**QUICK), corpus, encoder="average", vectors="random(3.0)")
    support = [rows.loc[rows["subject"] == f"lambda {number}", "support"] for number in ("-10", "0", "0.6")]
    for wider, narrower in itertools.pairwise(support):
        assert (wider.to_numpy() >= narrower.to_numpy()).all() and wider.sum() > narrower.sum()
    trained = rows[rows["subject"] == "trained"]
    assert (trained["support"] == trained["length"]).all(), "a softmax weighs every token"


def dead_decoder(model):
    model.decoder.dense.weight.data.zero_()


def peaked(model):
    model.attention.to_score.weight.data.mul_(1e4)


def spoilt(spoil, corpus, **settings):
    return observed(Sparsity(**QUICK), corpus, spoil, hidden=5, **settings)[0].assign(seed=0)


def test_importance_that_is_zero_everywhere_is_counted():
    rows = spoilt(dead_decoder, toy_corpus())
    found = concluded(rows, sparsity.conclude)
    for measure in ("entropy-gradient", "entropy-loo"):
        said = one(found, measure)
        assert math.isnan(said["estimate"]) and (said["n"], said["excluded"]) == (0, 6)
        assert said["why"] == "importance zero everywhere or not a number (5); one token (1)"
    swept = one(found, "kendall-lambda-entropy-gradient", "sweep")
    assert math.isnan(swept["estimate"]) and swept["excluded"] == 6
    assert swept["why"] == "no model of the sweep has a value"


def test_attention_on_one_token_has_no_rank_on_its_support():
    rows = spoilt(peaked, toy_corpus(), projection="sparsemax")
    trained = rows[rows["subject"] == "trained"]
    assert (trained["support"] == 1).all()
    assert trained.loc[trained["length"] > 1, "entropy_attention"].eq(0).all()
    found = concluded(rows, sparsity.conclude)
    said = one(found, "tau-gradient-on-support")
    assert (said["n"], said["excluded"]) == (0, 6)
    assert said["why"] == "one token (1); one token with weight (5)"
    assert one(found, "tau-gradient")["n"] > 0, "over all tokens there is still a first"


def test_texts_of_one_token_and_one_predicted_class_crash_nothing():
    rows = spoilt(dead_decoder, toy_corpus(lengths=(1, 1, 1)))
    assert rows["predicted"].nunique() == 1
    found = concluded(rows, sparsity.conclude)
    assert found["estimate"].isna().all() and (found["why"] != "").all() and (found["n"] == 0).all()


def test_means_stand_beside_the_untrained_twin():
    rows = pd.concat(
        [
            sparsity_texts(
                2,
                entropy_gradient=[0.2, 0.4],
                tau_loo=[0.5, 0.7],
                tau_loo_held=[0.5, 0.7],
                swapped_tau_loo=0.05,
                permuted_tau_loo=0.1,
            ),
            sparsity_texts(2, subject="lambda 0.6", number=0.6, entropy_gradient=0.8, support=[3, 6]),
            sparsity_texts(2, subject="untrained lambda 0.6", number=0.6, entropy_gradient=0.6, support=12),
            sparsity_texts(2, subject="untrained", entropy_gradient=0.9),
            sparsity_texts(2, subject="shuffled labels", entropy_gradient=0.7),
        ]
    )
    found = concluded(rows, sparsity.conclude)

    def told(measure, group="overall"):
        return tuple(one(found, measure, group)[["estimate", "null"]])

    assert told("entropy-gradient") == pytest.approx((0.3, 0.9))
    assert told("entropy-gradient", "lambda 0.6") == pytest.approx((0.8, 0.6))
    assert told("support-share", "lambda 0.6") == pytest.approx((0.375, 1.0))
    assert told("tau-loo") == pytest.approx((0.6, NAN), nan_ok=True)
    assert told("tau-loo-held") == pytest.approx((0.6, 0.1))
    assert told("tau-loo-excess") == pytest.approx((0.5, 0))
    assert told("entropy-gradient", "shuffled labels") == pytest.approx((0.7, 0.9))
    assert told("entropy-gradient", "untrained") == pytest.approx((0.9, NAN), nan_ok=True)
    assert set(found["group"]) == {"overall", "lambda 0.6", "untrained", "shuffled labels", "sweep"}


def swept(prefix, seed, outcomes, **columns):
    tables = [
        sparsity_texts(2, seed, f"{prefix}lambda {number:g}", number, entropy_gradient=value, **columns)
        for number, value in outcomes.items()
    ]
    return pd.concat(tables)


def test_correlations_are_within_a_seed_and_then_over_seeds():
    falling, mixed = {-10.0: 0.9, 0.0: 0.5, 0.6: 0.1}, {-10.0: 0.5, 0.0: 0.9, 0.6: 0.1}
    rows = pd.concat(
        [
            sparsity_texts(2, 0),
            sparsity_texts(2, 1),
            swept("", 0, falling),
            swept("", 1, mixed),
            swept("untrained ", 0, {-10.0: 0.1, 0.0: 0.2, 0.6: 0.3}),
        ]
    )
    found = concluded(rows, sparsity.conclude)
    tau = one(found, "kendall-lambda-entropy-gradient", "sweep")
    assert tau["estimate"] == pytest.approx((-1 - 1 / 3) / 2) and tau["null"] == 1.0
    assert (tau["n"], tau["seeds"], tau["excluded"]) == (4, 2, 0)
    assert json.loads(tau["by_seed"]) == pytest.approx([-1, -1 / 3])
    assert (tau["error"], tau["freedom"]) == pytest.approx((1 / 3, 1))
    level = one(found, "kendall-support-entropy-gradient", "sweep")
    assert math.isnan(level["estimate"]) and level["why"] == sparsity.NO_ORDER


def test_a_model_of_the_sweep_without_values_is_no_point():
    outcomes = {-10.0: 0.9, 0.0: [0.5, NAN], 0.6: NAN}
    rows = pd.concat([sparsity_texts(2), swept("", 0, outcomes)])
    tau = one(concluded(rows, sparsity.conclude), "kendall-lambda-entropy-gradient", "sweep")
    assert tau["estimate"] == -1.0 and (tau["n"], tau["excluded"]) == (2, 0)


means = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=4, max_size=4)


@given(st.lists(means, min_size=2, max_size=5), st.lists(means, min_size=2, max_size=5))
def test_correlations_of_means_are_scipys(across, up):
    n = min(len(across), len(up))
    sample = Sweep(np.arange(n), np.array(across[:n]), np.array(up[:n]))
    weights = np.array([[1.0] * n, [2.0] + [1.0] * (n - 1)])
    found = of_means(sparsity.kendall)(sample, weights)
    for draw, own in zip(found, weights, strict=True):
        x, y = (own @ side / own.sum() for side in (sample.sparser, sample.outcome))
        defined = np.ptp(x) > 0 and np.ptp(y) > 0
        expected = stats.kendalltau(x, y)[0] if defined else NAN
        assert draw == pytest.approx(expected, nan_ok=True, abs=1e-9)


def test_every_measure_has_a_card_and_every_card_a_measure():
    found = concluded(sparsity_rows(), sparsity.conclude)
    assert {f"sparsity/{measure}" for measure in found["measure"]} == set(SPARSITY_CARDS)
    for finding in found.itertuples():
        low, high = SPARSITY_CARDS[f"sparsity/{finding.measure}"].range
        assert low <= finding.estimate <= high


@pytest.mark.usefixtures("few_planted")
def test_a_whole_run_from_cells(store):
    planner = Planner(store)
    corpus = planner.corpus("planted-keyword")
    step = experiment("sparsity", "corrected", {"lambdas": "0 0.6", "nulls": 2})
    config, where = planner.resolve(
        ModelConfig(encoder="average", hidden=8, embedding=8, epochs=2, batch_size=64), corpus
    )
    cell = planner.observation(step, config, corpus, where)
    for key, missing in planner.missing([cell]).items():
        store.plan(missing)
        do(key, store, "cpu")
    rows = from_parquet(store.read(cell.key, "rows.parquet")).assign(seed=0)
    assert set(rows["subject"]) == {
        *("trained", "lambda 0", "lambda 0.6", "untrained lambda 0", "untrained lambda 0.6"),
        *("untrained", "shuffled labels"),
    }
    found = concluded(rows, sparsity.conclude)
    assert np.isfinite(one(found, "kendall-lambda-entropy-gradient", "sweep")["estimate"])
