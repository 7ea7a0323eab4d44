"""Information by rank of attention: what is observed, what is concluded, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.corpus.catalogue import load_corpus
from attentest.evidence.information.ranked import ranked
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.information import conclude as information
from attentest.experiments.information.cards import CARDS as INFORMATION_CARDS
from attentest.experiments.information.conclude import ABSENT, LISTS, NO_ORDER, NOT_A_NUMBER, SHORT
from attentest.experiments.information.observe import Information
from attentest.experiments.shared.by_rank import FEW_RANKS, SMALL, TOO_SMALL
from attentest.model.training.train import train
from attentest.refusal import Refusal
from attentest.statistics.comparison import mutual_information, normalised_entropy
from attentest.statistics.of_models import Measured, Number, of_models
from attentest.store.tables import from_parquet, to_parquet
from tests.observed import concluded, one
from tests.observed_information import information_rows, information_texts, left_out
from tests.observed_wiegreffe_pinter import observed
from tests.toys import toy_batch, toy_corpus, toy_model

QUICK = {"clusters": "8 6 4", "nulls": 20, "restarts": 2}
LENGTHS = (*(5 + number % 6 for number in range(70)), 1, 2)


def seen(lengths=LENGTHS, labels=("no", "yes"), query=False, **settings):
    corpus = toy_corpus(lengths=lengths, labels=labels, query=query)
    parameters = {
        **QUICK,
        **{name: settings.pop(name) for name in list(settings) if hasattr(Information, name)},
    }
    return observed(Information(**parameters), corpus, **settings)


def told(step, corpus, model):
    """The rows of an experiment on these models."""
    siblings = step.siblings(model("trained").config)
    models = {name: model(name) for name in ("trained", *siblings)}
    subject = Subject(corpus, models["trained"].config, InMemory(models, siblings))
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0)))


def trained(rows):
    return rows[rows["subject"] == "trained"]


# What is observed


def test_units_are_ranked_by_attention_and_ties_by_place():
    corpus = toy_corpus()
    model = toy_model(corpus)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    weights = reading.weights.clone()
    weights[2, :4] = torch.tensor([0.3, 0.4, 0.0, 0.3])
    weights[2, 4:] = 0.0
    found = ranked(replace(reading, weights=weights), 3)
    assert found.vectors.shape[:2] == (len(corpus.test), 3)
    assert (found.vectors[2] == reading.hidden[2, [1, 0, 3]]).all()
    for row, length in enumerate(reading.mask.sum(1).tolist()):
        own = weights[row, :length].sort(descending=True).values
        assert (found.weights[row, :length] == own).all() and found.weights[row, length:].isnan().all()


@pytest.mark.parametrize(
    "settings",
    [{}, {"labels": ("a", "b", "c")}, {"query": True}, {"encoder": "average"}, {"projection": "sparsemax"}],
    ids=["binary", "classes", "query", "token-wise", "sparse"],
)
def test_rows_hold_what_the_measures_need(settings):
    rows, models = seen(**settings)
    assert len(rows) == 3 * len(LENGTHS) and set(rows["subject"]) == {
        "trained",
        "untrained",
        "shuffled labels",
    }
    for name, own in rows.groupby("subject"):
        assert own[["k", "clusters", "small_clusters", "flags", "nulls"]].drop_duplicates().shape[0] == 1
        k = own["k"].iloc[0]
        kept = own["output"] >= 0
        assert (kept == (own["length"] >= k)).all() and 1 <= k <= 5
        for column in LISTS:
            assert own.loc[~kept, column].isna().all()
            assert own.loc[kept, column].map(len).eq(k).all()
        symbols = np.stack(own.loc[kept, "symbols"].tolist())
        assert symbols.min() >= 0 and symbols.max() < own["clusters"].iloc[0]
        assert len(models[name].labels) == 2 or set(own.loc[kept, "output"]) <= set(range(3))


def test_rows_tell_the_models_own_attention():
    rows, models = seen()
    corpus = toy_corpus(lengths=LENGTHS)
    with torch.no_grad():
        reading = models["trained"].read(toy_batch(models["trained"], corpus))
    for place, row in enumerate(trained(rows).itertuples()):
        weights = reading.weights[place, : row.length].numpy()
        assert row.id == corpus.test[place].id
        assert row.entropy == pytest.approx(normalised_entropy(weights), abs=1e-6, nan_ok=True)
        if row.output >= 0:
            assert row.attention == pytest.approx(np.sort(weights)[::-1][: row.k], abs=1e-6)


def test_many_classes_are_their_own_symbols_whatever_they_are_called():
    rows, models = seen(labels=("a", "b", "c"))
    kept = trained(rows)[trained(rows)["output"] >= 0]
    assert (kept["output"].map(dict(enumerate(models["trained"].labels))) == kept["predicted"]).all()


def test_the_same_draws_give_the_same_rows_and_they_survive_the_store():
    rows, again = seen()[0], seen()[0]
    stored = to_parquet(rows.to_dict("records"))
    assert stored == to_parquet(again.to_dict("records"))
    found, kept = (
        concluded(some.assign(seed=0), information.conclude) for some in (rows, from_parquet(stored))
    )
    pd.testing.assert_frame_equal(found, kept)


def test_noise_is_drawn_only_when_asked_for():
    quiet, noisy = (seen(projection="gumbel-softmax(0.8)", noise=noise)[0] for noise in (False, True))
    assert trained(noisy)["max_attention"].mean() > 1.2 * trained(quiet)["max_attention"].mean()


def test_few_ranks_and_small_clusters_are_flagged():
    rows, _ = seen(lengths=(2,) * 40)
    assert (rows["k"] == 2).all() and rows["flags"].str.contains(FEW_RANKS).all()
    crowded, _ = seen(lengths=(5,) * 9, clusters="9")
    assert crowded["flags"].str.contains(TOO_SMALL).all() and (crowded["small_clusters"] == 1).all()
    tolerated, _ = seen(lengths=(5,) * 9, clusters="9", singletons=1.0)
    assert (tolerated["flags"] == SMALL).all()


def test_a_model_whose_attention_is_no_number_is_left_out():
    def broken(name):
        model = toy_model(corpus)
        if name == "trained":
            with torch.no_grad():
                model.attention.to_score.weight.fill_(math.nan)
        return model

    corpus, step = toy_corpus(lengths=LENGTHS), Information(**QUICK)
    rows = told(step, corpus, broken)
    assert (trained(rows)["output"] == -1).all() and (trained(rows)["k"] == 0).all()
    findings = concluded(rows.assign(seed=0), information.conclude)
    assert findings[findings["measure"] == "tau"]["group"].tolist() == ["untrained", "shuffled labels"]


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"clusters": "many"}, "'many'"),
        ({"clusters": "50 1"}, "at least 2"),
        ({"nulls": 19}, "19"),
        ({"sample": 100}, "200"),
        ({"outputs": 1}, "outputs"),
        ({"restarts": 0}, "restarts"),
        ({"neighbours": 0}, "neighbours"),
        ({"percentile": 101.0}, "percentile 101"),
        ({"singletons": -0.1}, "singletons -0.1"),
        ({"least": -1.0}, "least -1"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, said):
    with pytest.raises(Refusal, match=said):
        Information(**parameters)


def test_fewer_texts_than_clusters_are_refused():
    with pytest.raises(Refusal, match="6 texts that are long enough for 10 clusters"):
        seen(lengths=(5,) * 6, clusters="20 10")


# What is concluded


def test_information_at_each_rank_beside_its_floor():
    rows = information_texts(400)
    found = concluded(rows, information.conclude)
    symbols, output = np.stack(rows["symbols"].tolist()), rows["output"].to_numpy()
    for rank, weight in ((1, 0.4), (2, 0.2), (3, 0.1)):
        own = one(found, f"mi@{rank}")
        assert own["estimate"] == pytest.approx(mutual_information(symbols[:, rank - 1], output))
        assert own["null"] == pytest.approx(9 / 800, rel=0.4)
        assert (own["interval"], own["n"], own["seeds"]) == ("none", 400, 1) and math.isnan(own["low"])
        corrected = one(found, f"mi-corrected@{rank}")
        assert (
            corrected["interval"] == "instances"
            and corrected["low"] < corrected["estimate"] < corrected["high"]
        )
        assert one(found, f"attention@{rank}")["estimate"] == pytest.approx(weight)
        assert one(found, f"attention@{rank}")["null"] == pytest.approx(1 / 12)
    assert one(found, "output-entropy")["estimate"] == pytest.approx(one(found, "mi@1")["estimate"])
    assert one(found, "mi@1")["estimate"] > one(found, "mi@2")["estimate"] > one(found, "mi@3")["estimate"]


def test_tau_points_up_down_or_nowhere_and_luck_is_told():
    up = concluded(information_texts(300, faithful=np.linspace(1, 0, 8)), information.conclude)
    down = concluded(information_texts(300, faithful=np.linspace(0, 1, 8)), information.conclude)
    for measure in ("tau", "tau-joint", "tau-above-floor", "tau-knn", "tau-scipy"):
        assert one(up, measure)["estimate"] == pytest.approx(1) and one(down, measure)[
            "estimate"
        ] == pytest.approx(-1)
    assert one(up, "tau-p")["estimate"] == pytest.approx(1 / 21) and one(down, "tau-p")["estimate"] == 1
    assert one(up, "tau-joint-p")["null"] == 0.5
    assert abs(one(up, "tau")["null"]) < 0.45 and 0.5 < one(up, "tau-null-95")["estimate"] < 1


def test_a_floor_that_has_an_order_of_its_own_is_taken_off():
    """States tell nothing here, and the lower ranks spread over more clusters: plain tau is all bias."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = information_texts(300, seed, faithful=np.zeros(8))
        spread = [rng.integers(0, 2 + 5 * rank, len(rows)) for rank in range(8)]
        found.append(concluded(rows.assign(symbols=list(np.stack(spread, axis=1))), information.conclude))
    assert all(one(each, "tau")["estimate"] < -0.5 for each in found)
    assert all(one(each, "tau-of-floor")["estimate"] == pytest.approx(-1) for each in found)
    above = [one(each, "tau-above-floor")["estimate"] for each in found]
    assert min(above) < 0 < max(above) and abs(np.mean(above)) < 0.3
    assert np.mean([one(each, "tau-above-floor-p")["estimate"] for each in found]) == pytest.approx(
        0.5, abs=0.25
    )


def test_a_token_of_any_rank_is_what_dealt_tokens_tell():
    found = concluded(information_texts(300, faithful=(0.9, 0.5, 0.1)), information.conclude)
    nulls = [one(found, f"mi-joint@{rank}")["null"] for rank in (1, 2, 3)]
    assert max(nulls) - min(nulls) < 0.1
    assert one(found, "mi-joint@3")["estimate"] < np.mean(nulls) < one(found, "mi-joint@1")["estimate"]


def test_several_seeds_have_an_interval_over_seeds():
    rows = pd.concat(
        [information_texts(200, seed, faithful=(0.9 - seed / 10, 0.4, 0.2)) for seed in range(4)]
    )
    found = concluded(rows, information.conclude)
    alone = [concluded(own, information.conclude) for _, own in rows.groupby("seed")]
    for measure in ("mi@1", "mi-corrected@1", "tau", "mi-knn@2"):
        values = [one(each, measure)["estimate"] for each in alone]
        overall = one(found, measure)
        assert overall["estimate"] == pytest.approx(np.mean(values))
        assert overall["seed_std"] == pytest.approx(np.std(values, ddof=1))
        assert (overall["interval"], overall["seeds"], overall["n"]) == ("seeds", 4, 800)
        error = np.std(values, ddof=1) / 2
        assert (overall["error"], overall["freedom"]) == (pytest.approx(error), 3)
        reach = 3.182446 * error
        expected = np.mean(values) - reach, np.mean(values) + reach
        assert (overall["low"], overall["high"]) == pytest.approx(expected, rel=1e-6)


def test_texts_that_are_left_out_are_counted_with_their_reasons():
    rows = information_texts(50)
    rows.loc[:2, "length"] = 2
    found = concluded(left_out(rows, slice(5)), information.conclude)
    tau = one(found, "tau")
    assert (tau["n"], tau["excluded"]) == (45, 5)
    assert tau["why"] == f"{NOT_A_NUMBER} (2); {SHORT} (3)"


def test_a_model_that_says_one_thing_or_attends_to_all_alike_has_no_order():
    silent = information_texts(50, seed=0, output=2)
    flat = information_texts(50, seed=1).assign(attention=[np.full(3, 0.1, dtype=np.float32)] * 50)
    found = concluded(pd.concat([silent, flat, information_texts(50, seed=2)]), information.conclude)
    for measure in ("tau", "tau-p", "mi@1", "output-entropy"):
        own = one(found, measure)
        assert (own["seeds"], own["n"], own["excluded"], own["why"]) == (1, 50, 100, NO_ORDER)
    assert one(found, "ranks")["seeds"] == 3
    nothing = one(concluded(silent, information.conclude), "tau")
    assert math.isnan(nothing["estimate"]) and nothing["excluded"] == 50


def test_seeds_may_have_other_numbers_of_ranks():
    found = concluded(
        pd.concat([information_texts(50, 0), information_texts(50, 1, faithful=(1, 0.8, 0.4, 0))]),
        information.conclude,
    )
    assert one(found, "ranks")["estimate"] == 3.5
    last = one(found, "mi@4")
    assert (last["seeds"], last["n"], last["excluded"], last["why"]) == (1, 50, 50, ABSENT)


def test_one_rank_has_information_but_no_order():
    found = concluded(information_texts(50, faithful=(1.0,)).assign(flags=FEW_RANKS), information.conclude)
    assert math.isnan(one(found, "tau")["estimate"]) and one(found, "flagged")["estimate"] == 1


def test_flatness_is_told_of_all_texts():
    found = concluded(information_rows(), information.conclude)
    flat = one(found, "attention-entropy")
    assert (
        flat["estimate"] == pytest.approx(0.7)
        and flat["null"] == 1
        and flat["interval"] == "seeds, instances"
    )
    assert (flat["n"], flat["excluded"]) == (118, 2)
    assert one(found, "max-attention")["null"] == pytest.approx(
        (54 / 12 + 1 + 1 / 2 + 1 / 3 + 1 / 3) / 59, rel=0.05
    )


def test_every_measure_has_a_card_and_lies_in_its_range():
    findings = information.conclude(information_rows(), mode="corrected", rng=np.random.default_rng(0))
    named = {f"information/{found.measure.partition('@')[0]}" for found in findings}
    assert named == set(INFORMATION_CARDS)
    for found in findings:
        low, high = INFORMATION_CARDS[f"information/{found.measure.partition('@')[0]}"].range
        assert low <= found.estimate <= high, found.measure
    assert {found.group for found in findings} == {"overall", "untrained", "shuffled labels"}


def test_findings_are_the_same_in_any_order_of_rows():
    rows = information_rows()
    shuffled = rows.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(
        concluded(rows, information.conclude), concluded(shuffled, information.conclude)
    )
    assert information.conclude(rows[rows["subject"] == "none"], mode="m", rng=np.random.default_rng(0)) == []


def test_models_without_a_number_are_left_out_of_it():
    models = [
        Measured(numbers={"a": Number(1.0, 0.0)}, texts=10, undefined="no value"),
        Measured(
            numbers={"a": Number(math.nan, 0.0), "b": Number(2.0, 0.5, 0.1)}, texts=20, undefined="no value"
        ),
    ]
    a, b = of_models(models, absent="no measure", experiment="e", group="g", mode="m")
    assert (a.estimate, a.n, a.seeds, a.excluded, a.why, a.interval) == (1.0, 10, 1, 20, "no value", "none")
    assert (b.estimate, b.null, b.n, b.excluded, b.why, b.interval) == (
        2.0,
        0.5,
        20,
        10,
        "no measure",
        "instances",
    )
    assert (b.low, b.high) == pytest.approx((2 - 0.196, 2 + 0.196), abs=1e-4)
    assert (b.error, b.freedom, b.by_seed) == (0.1, math.inf, "[2.0]")


# Where the truth is known


def test_where_one_word_decides_the_rank_that_holds_it_tells_most(planted):
    """Check 10: attention finds the planted word, and the information is at the first rank."""
    corpus = replace(planted, test=load_corpus("planted-keyword").test)
    model = train(corpus, encoder="average", vectors="random(1.0)", embedding=32, hidden=32, epochs=15)
    step = Information(clusters="10", nulls=20, restarts=3)
    others = toy_model(corpus, encoder="average")
    rows = told(step, corpus, lambda name: model if name == "trained" else others)
    found = concluded(rows.assign(seed=0), information.conclude)
    ranks = int(one(found, "ranks")["estimate"])
    for estimate in ("mi", "mi-knn", "mi-corrected"):
        first, *rest = (one(found, f"{estimate}@{rank}")["estimate"] for rank in range(1, ranks + 1))
        assert first > 5 * max(rest), estimate
    assert one(found, "mi-knn@1")["estimate"] == pytest.approx(
        one(found, "mi-corrected@1")["estimate"], rel=0.1
    )
    for measure in ("tau", "tau-joint", "tau-above-floor", "tau-knn"):
        own, luck = one(found, measure)["estimate"], one(found, "tau-null-95")["estimate"]
        assert own > max(luck, one(found, measure, "untrained")["estimate"]), measure
    assert one(found, "tau-p")["estimate"] == pytest.approx(1 / 21)
