"""What each experiment observes: rows for every text and model, beside its nulls, whatever the input."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.bench.plan import spelled
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.experiments.adversary import conclude as adversary
from attentest.experiments.adversary.observe import CURVE, PUBLISHED, Adversary, under_swapped
from attentest.experiments.contract import Subject
from attentest.experiments.heat_map import conclude as heat_map
from attentest.experiments.heat_map.observe import HeatMap
from attentest.experiments.importance import conclude as importance
from attentest.experiments.importance.observe import Importance
from attentest.refusal import Refusal
from attentest.statistics.comparison import jensen_shannon, kendall
from tests.observing import in_memory, observed
from tests.toys import toy_batch, toy_corpus

QUICK = {"steps": 20, "searched": 4, "matched": 3, "programmed": 2, "shown": 2}


def trained(rows):
    return rows[rows["subject"] == "trained"].set_index("id")


def test_importance_compares_what_the_evidence_says():
    corpus = toy_corpus()
    rows, model = observed(Importance(shown=2, texts="test-3"), corpus)
    assert set(rows["subject"]) == {"trained", "untrained", "shuffled labels"}
    assert len(rows) == 3 * len(corpus.test)
    found = gradients(model, toy_batch(model, corpus))
    loo = leave_one_out(model, found.reading).change
    for row, (example, length) in enumerate(
        zip(corpus.test, found.reading.mask.sum(1).tolist(), strict=True)
    ):
        said = trained(rows).loc[example.id]
        weights = found.reading.weights[row, :length]
        for name, values in (("gradient", found.times_input), ("loo", loo)):
            tau, p_value = kendall(weights, values[row, :length])
            assert said[f"tau_{name}"] == pytest.approx(tau, abs=1e-6, nan_ok=True)
            assert said[f"p_{name}"] == pytest.approx(p_value, abs=1e-6, nan_ok=True)
    whole = trained(rows)[trained(rows)["weights"].notna()]
    assert "test-3" in whole.index and len(whole) == 3
    assert len(whole.loc["test-3", "loo"]) == whole.loc["test-3", "length"]


def test_one_token_and_a_model_without_a_ranking_are_counted_not_averaged():
    rows, _ = observed(Importance(), toy_corpus(), projection="uniform")
    findings = importance.conclude(rows.assign(seed=0), mode="corrected", rng=np.random.default_rng(0))
    of = {(f.measure, f.group): f for f in findings}
    tau = of["tau-gradient", "overall"]
    assert math.isnan(tau.estimate) and tau.excluded == len(toy_corpus().test) and "one token" in tau.why


def test_the_same_draws_for_the_same_rng():
    for step in (Importance(nulls=3), Adversary(**QUICK)):
        one, other = (observed(step, toy_corpus())[0] for _ in range(2))
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("encoder", ["bilstm", "average"])
def test_the_adversary_is_never_behind_what_was_searched(encoder):
    corpus = toy_corpus(lengths=(5, 1, 9, 2, 4, 12, 7, 3))
    step = Adversary(**{**QUICK, "steps": 60, "searched": 8, "matched": 8})
    rows, _ = observed(step, corpus, encoder=encoder)
    said = trained(rows)
    alone = said["length"] == 1
    assert said.loc[alone, [f"exact@{e:g}" for e in CURVE]].isna().all(axis=None)
    for epsilon in PUBLISHED:
        for name in ("last", "best", "unpaired", "permuted", "capped"):
            assert (said[f"{name}@{epsilon:g}"] <= said[f"exact@{epsilon:g}"] + 1e-6)[~alone].all()
        assert (said[f"exact@{epsilon:g}"] <= said["attainable"] + 1e-9)[~alone].all()
    curve = said.loc[~alone, [f"exact@{e:g}" for e in CURVE]].to_numpy()
    assert (np.diff(curve, axis=1) >= -1e-9).all()
    assert said["proved"].all() and (said["epsilon"] == 0.01).all()


def test_the_adversary_of_borrowed_weights_is_the_optimum_against_them():
    corpus = toy_corpus(lengths=(5, 9, 5, 12))
    rows, model = observed(Adversary(**QUICK), corpus)
    said = trained(rows)
    assert said["swapped@0.01"].notna().tolist() == [True, True, True, False], "the longest has no partner"
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
        lent = reading.weights.clone()
        lent[0], lent[2], lent[3] = reading.weights[2], reading.weights[0], float("nan")
        found = under_swapped(reading, lent)["swapped@0.01"]
        best = strongest_adversary(lent[:1], reading.values[:1], reading.bias, reading.mask[:1], 0.01)
    assert float(found[0]) == pytest.approx(float(best.divergence[0])) and math.isnan(found[3])
    assert said.loc["test-0", "swapped@0.01"] == pytest.approx(float(found[0])), "it has one partner"


def test_vectors_are_kept_of_the_texts_shown():
    rows, _ = observed(Adversary(**QUICK), toy_corpus())
    whole = trained(rows)[trained(rows)["exact_weights"].notna()]
    assert len(whole) == QUICK["shown"]
    for _, row in whole.iterrows():
        assert len(row["weights"]) == len(row["exact_weights"]) == row["length"]
        assert sum(row["exact_weights"]) == pytest.approx(1.0, abs=1e-5)
        if row["length"] > 1:
            assert float(jensen_shannon(row["weights"], row["exact_weights"])) == pytest.approx(
                row["exact@0.01"], abs=1e-4
            )


def test_texts_that_are_shown_are_among_those_searched():
    corpus = toy_corpus(lengths=(5, 1, 9, 2, 4, 12, 7, 3))
    rows, _ = observed(Adversary(**{**QUICK, "searched": 5, "matched": 3, "shown": 2}), corpus)
    said = trained(rows)[trained(rows)["length"] > 1]
    there = {
        name: set(said.index[said[column].notna()])
        for name, column in (("searched", "best@0.01"), ("matched", "capped@0.01"), ("shown", "weights"))
    }
    assert there["shown"] <= there["matched"] <= there["searched"] < set(said.index)
    assert set(said.index[said["search_weights"].notna()]) == there["shown"]
    for _, row in said[said["weights"].notna()].iterrows():
        assert float(jensen_shannon(row["weights"], row["search_weights"])) == pytest.approx(
            row["best@0.01"], abs=1e-4
        )
    unsearched, _ = observed(Adversary(**{**QUICK, "searched": 0, "shown": 2}), corpus)
    assert trained(unsearched)["weights"].notna().sum() == 2 and unsearched["search_weights"].isna().all()


def test_a_two_layer_decoder_is_searched_and_its_optimum_unknown():
    corpus = toy_corpus(query=True, labels=("no", "yes", "maybe"))
    rows, _ = observed(Adversary(**QUICK), corpus)
    said = trained(rows)
    assert said["exact@0.05"].isna().all() and not said["proved"].any() and (said["epsilon"] == 0.05).all()
    assert said["best@0.05"].notna().any()
    findings = adversary.conclude(rows.assign(seed=0), mode="corrected", rng=np.random.default_rng(0))
    of = {(f.measure, f.group): f for f in findings}
    assert of["emax-jsd-exact@0.05", "overall"].excluded == len(corpus.test)
    assert of["emax-jsd-best@0.05", "overall"].n > 0


def test_several_classes_with_an_affine_decision_have_a_bound():
    corpus = toy_corpus(query=True, labels=("no", "yes", "maybe"), candidates=True)
    rows, _ = observed(Adversary(**QUICK), corpus, decoder="affine")
    said = trained(rows)
    solved = said["exact@0.05"].notna()
    assert 0 < solved.sum() <= QUICK["programmed"] and not said["proved"].any()
    assert (said["exact@0.05"] <= said["bound@0.05"] + 1e-6)[solved].all()


def test_constant_attention_moves_anywhere_and_nan_weights_are_counted():
    corpus = toy_corpus()
    rows, _ = observed(Adversary(**QUICK), corpus, projection="uniform")
    assert trained(rows)["exact@0.01"].notna().sum() == sum(len(e.tokens) > 1 for e in corpus.test)
    step = Adversary(**QUICK)
    held = in_memory(corpus, step)
    for parameter in held.models["trained"].attention.parameters():
        parameter.data.fill_(math.nan)
    rows = pd.DataFrame(
        step.observe(Subject(corpus, held.models["trained"].config, held), np.random.default_rng(0))
    )
    assert trained(rows)["exact@0.01"].isna().all()
    findings = adversary.conclude(rows.assign(seed=0), mode="corrected", rng=np.random.default_rng(0))
    overall = next(f for f in findings if (f.measure, f.group) == ("emax-jsd-exact@0.01", "overall"))
    assert overall.excluded == len(corpus.test) and overall.why


def test_nan_weights_do_not_stop_importance():
    corpus, step = toy_corpus(), Importance(nulls=2)
    held = in_memory(corpus, step)
    for parameter in held.models["trained"].attention.parameters():
        parameter.data.fill_(math.nan)
    rows = pd.DataFrame(
        step.observe(Subject(corpus, held.models["trained"].config, held), np.random.default_rng(0))
    )
    assert trained(rows)[["tau_gradient", "tau_loo"]].isna().all(axis=None)


def test_a_picture_of_one_text():
    corpus = toy_corpus()
    step = HeatMap(texts="toy:test-2 toy:train-0 other:test-1 toy:nowhere", permutations=5)
    rows, _ = observed(step, corpus)
    assert list(rows["id"]) == ["test-2", "train-0"]
    row = rows.iloc[0]
    assert row["tokens"] == list(corpus.test[2].tokens)
    assert row["exact_change"] <= 0.01 + 1e-6 and row["search_jsd"] <= row["exact_jsd"] + 1e-6
    found = heat_map.conclude(rows.assign(seed=0), mode="corrected", rng=np.random.default_rng(0))
    assert {f.group for f in found} == {"test-2", "train-0"}
    assert heat_map.conclude(pd.DataFrame(), mode="corrected", rng=np.random.default_rng(0)) == []


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Importance(nulls=0), "at least 1 draw"),
        (lambda: Importance(shown=-1), "0 texts or more"),
        (lambda: Adversary(steps=0), "at least 1"),
        (lambda: Adversary(candidates=0), "at least 1"),
        (lambda: Adversary(searched=-1), "0 or more"),
        (lambda: HeatMap(permutations=0), "at least 1"),
    ],
)
def test_numbers_that_cannot_be_are_refused(make, says):
    with pytest.raises(Refusal, match=says):
        make()


def test_importance_asks_for_further_ones_of_the_catalogue_and_changes_nothing_else():
    corpus = toy_corpus(lengths=(5, 1, 3, 4))
    plain, model = observed(Importance(nulls=2, shown=2), corpus)
    step = Importance(nulls=2, shown=2, also="integrated-gradients lime")
    more, _ = observed(step, corpus)
    pd.testing.assert_frame_equal(more[[*plain.columns]], plain)
    assert {*more.columns} - {*plain.columns} == {
        f"{what}{name}"
        for what in ("tau_", "p_", "overlap_", "distance_", "")
        for name in ("integrated-gradients", "lime")
    }
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
        expected = integrated_gradients(model, reading, steps=32).abs().numpy()
    own = more[more["subject"] == "trained"].set_index("id").loc[[each.id for each in corpus.test]]
    whole = [place for place, values in enumerate(own["integrated-gradients"]) if values is not None]
    assert len(whole) == 2
    for place in whole:
        values = own["integrated-gradients"].iloc[place]
        assert values == pytest.approx(expected[place, : len(values)].tolist(), rel=1e-4)
    lengths = reading.mask.sum(1).tolist()
    taus = [kendall(reading.weights[row, :n], expected[row, :n])[0] for row, n in enumerate(lengths)]
    assert own["tau_integrated-gradients"].tolist() == pytest.approx(taus, nan_ok=True)
    assert spelled(step)["parameters"]["also"] == step.also
    assert "also" not in spelled(Importance())["parameters"]


@pytest.mark.parametrize("also", ["gradient", "limes"])
def test_importance_refuses_what_is_no_further_importance(also):
    with pytest.raises(Refusal, match=also):
        Importance(also=also)
