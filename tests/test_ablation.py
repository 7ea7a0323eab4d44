"""Weights that attention did not choose: each row is one decision, and the findings are their means."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attentest.evidence.ablation import moved, moved_by_uniform, shares
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.experiments.ablation.conclude import EXPLAINED, ONE_UNIT, conclude
from attentest.experiments.ablation.observe import Ablation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import total_variation
from tests.observed import concluded, one
from tests.observed_ablation import ablated_rows, ablated_texts
from tests.observing import observed
from tests.toys import toy_batch, toy_corpus, toy_model

FINDINGS = ("uniform-output-change", "uniform-flips", "permuted-output-change", "permuted-flips")


def asked(model, example_batch, weights):
    """The distribution of one text under weights, decided alone."""
    with torch.no_grad():
        return distribution(model.decide(model.read(example_batch), weights[None]))[0].double().numpy()


# --- the model's answers


@pytest.mark.parametrize("query", [False, True], ids=["affine", "two-layer"])
def test_a_move_is_the_distance_of_two_decisions(query):
    corpus = toy_corpus(query=query)
    model = toy_model(corpus)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    drawn = torch.rand(reading.weights.shape, generator=torch.Generator().manual_seed(1)) * reading.mask
    found = moved(model, reading, drawn / drawn.sum(1, keepdim=True))
    for row in range(len(reading.mask)):
        batch, size = toy_batch(model, corpus, [row]), int(reading.mask[row].sum())
        weights = drawn[row, :size] / drawn[row].sum()
        own, other = (asked(model, batch, w) for w in (reading.weights[row, :size], weights))
        assert other.argmax() == found.likeliest[row]
        if size == 1:
            assert found.change[row].isnan()
        else:
            assert float(found.change[row]) == pytest.approx(float(total_variation(own, other)), abs=1e-6)


def test_nothing_moves_under_the_own_weights_nor_a_uniform_model_under_uniform_ones():
    corpus = toy_corpus(lengths=(5, 3, 9))
    model = toy_model(corpus, projection="uniform")
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    assert moved(model, reading, reading.weights).change.abs().max() == 0
    assert moved_by_uniform(model, reading).change.abs().max() < 1e-6


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6))
def test_importances_become_shares_of_their_sum(values):
    padded = torch.tensor([[*values, 3.0]])
    mask = torch.tensor([[True] * len(values) + [False]])
    found = shares(padded, mask)[0]
    sizes = np.abs(np.float32(values))
    if sizes.sum() == 0:
        assert found[mask[0]].isnan().all()
    else:
        assert found[-1] == 0 and found[:-1].numpy() == pytest.approx(sizes / sizes.sum(), abs=1e-6)


# --- the rows


def marked_corpus():
    """Some texts with marked words, and one of one word."""
    corpus = toy_corpus(lengths=(5, 1, 9, 2, 4, 6))
    marks = {0: (1, 3), 3: (0,)}
    test = [replace(e, rationale=marks.get(n)) for n, e in enumerate(corpus.test)]
    return replace(corpus, test=tuple(test))


@pytest.fixture(scope="module")
def seen():
    corpus = marked_corpus()
    rows, model = observed(Ablation(shown=6), corpus)
    return rows, model, corpus


def test_every_model_is_asked_about_every_text(seen):
    rows, _, corpus = seen
    assert rows.groupby("subject").size().to_dict() == dict.fromkeys(
        ("trained", "untrained", "shuffled labels"), len(corpus.test)
    )
    alone = rows["length"] == 1
    assert rows.loc[alone, "uniform_change"].isna().all() and rows.loc[~alone, "uniform_change"].notna().all()
    assert rows.loc[alone, "permuted_predicted"].isna().all()


def test_each_number_is_one_decision_under_the_weights_it_names(seen):
    rows, model, corpus = seen
    trained = rows[rows["subject"] == "trained"].set_index("id")
    for number, example in enumerate(corpus.test):
        row, batch = trained.loc[example.id], toy_batch(model, corpus, [number])
        size = row["length"]
        with torch.no_grad():
            reading = model.read(batch)
        kept = torch.tensor(row["permuted_weights"])
        assert sorted(row["permuted_weights"]) == pytest.approx(sorted(reading.weights[0].tolist()), abs=1e-6)
        if size == 1:
            continue
        found = gradients(model, batch)
        marks = torch.zeros(size)
        marks[list(example.rationale or ())] = 1.0
        weights = {
            "uniform": torch.full((size,), 1 / size),
            "permuted": kept,
            "gradient": found.times_input[0] / found.times_input.sum(),
            "loo": (change := leave_one_out(model, reading).change[0]) / change.sum(),
            "rationale": marks / marks.sum(),
        }
        own = asked(model, batch, reading.weights[0])
        for name, given_ in weights.items():
            if given_.isnan().any():
                assert pd.isna(row[f"{name}_change"]) and pd.isna(row[f"{name}_predicted"])
                continue
            other = asked(model, batch, given_)
            assert row[f"{name}_change"] == pytest.approx(float(total_variation(own, other)), abs=1e-5), name
            assert row[f"{name}_predicted"] == corpus.labels[other.argmax()]


def test_only_texts_kept_whole_have_more_than_two_decisions():
    corpus = marked_corpus()
    rows, _ = observed(Ablation(shown=2, texts=corpus.test[2].id), corpus)
    whole = rows[rows["permuted_weights"].notna()]
    assert set(whole["subject"]) == {"trained"} and corpus.test[2].id in set(whole["id"])
    assert len(whole) == 3
    others = rows[rows["permuted_weights"].isna()]
    assert others[[f"{name}_change" for name in EXPLAINED]].isna().all(axis=None)
    assert others[[f"{name}_predicted" for name in EXPLAINED]].isna().all(axis=None)


def test_where_sentences_are_weighed_marked_words_are_not_asked():
    corpus = marked_corpus()
    rows, _ = observed(Ablation(shown=6), corpus, encoder="han-bigru")
    assert rows["rationale_change"].isna().all()


def test_the_same_draws_for_the_same_rng():
    first, again = (observed(Ablation(shown=2), toy_corpus())[0] for _ in range(2))
    pd.testing.assert_frame_equal(first, again)


def test_a_number_of_texts_that_is_none_is_refused():
    with pytest.raises(Refusal, match="-1 texts"):
        Ablation(shown=-1)


# --- the findings


def test_findings_are_means_beside_the_untrained_models():
    rows = pd.concat(
        [
            ablated_texts(4, uniform_change=[0.1, 0.3, math.nan, 0.2], permuted_change=0.5).assign(
                uniform_predicted=["yes", "no", None, "yes"], permuted_predicted="no"
            ),
            ablated_texts(4, subject="untrained", uniform_change=0.05),
            ablated_texts(4, subject="shuffled labels", uniform_change=0.2),
        ],
        ignore_index=True,
    )
    findings = concluded(rows, conclude)
    change, flips = (one(findings, f"uniform-{name}") for name in ("output-change", "flips"))
    assert change["estimate"] == pytest.approx(0.2) and change["null"] == pytest.approx(0.05)
    assert (change["n"], change["excluded"], change["why"]) == (3, 1, ONE_UNIT)
    assert flips["estimate"] == pytest.approx(1 / 3) and flips["null"] == 0
    assert one(findings, "permuted-flips")["estimate"] == 1
    shuffled, untrained = (
        one(findings, "uniform-output-change", of) for of in ("shuffled labels", "untrained")
    )
    assert shuffled["estimate"] == pytest.approx(0.2) and shuffled["null"] == pytest.approx(0.05)
    assert untrained["estimate"] == pytest.approx(0.05) and math.isnan(untrained["null"])


def test_predictions_have_their_own_means():
    findings = concluded(ablated_rows(), conclude)
    assert set(findings["measure"]) == set(FINDINGS)
    groups = {"overall", "predicted=no", "predicted=yes", "untrained", "shuffled labels"}
    assert set(findings["group"]) == groups and (findings["experiment"] == "ablation").all()
    assert concluded(ablated_rows().query("subject == 'untrained'"), conclude).empty
