"""ERASER's measures: by hand, on models that can be worked out on paper, and against the long way."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from attentest.evidence.importances.faithfulness import (
    BINS,
    Faithfulness,
    faithfulness,
    on_top,
    random_scores,
    top_counts,
)
from attentest.evidence.importances.presence import explained
from attentest.statistics.plausibility import (
    average_precision,
    iou_f1,
    plausibility,
    shuffled_plausibility,
    spans,
)
from tests.by_hand import by_hand
from tests.toys import in_double, read, seeded, toy_corpus, toy_model

LABELS = ("no", "yes", "maybe")


@pytest.mark.parametrize("encoder", ["bilstm", "average", "cnn"])
def test_words_are_deleted_and_the_rest_is_read_again(encoder):
    corpus = toy_corpus(labels=LABELS, lengths=(5, 1, 9, 2, 40))
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = read(model, corpus)
    scores = torch.rand(len(reading.mask), 2, reading.mask.shape[1], generator=seeded()).double()
    found, about = faithfulness(model, reading, scores), explained(model, reading)
    for row, example in enumerate(corpus.test):
        length = len(example.tokens)
        if length == 1:
            assert found.comprehensiveness[row].isnan().all() and found.sufficiency[row].isnan().all()
            continue
        for ranking, (number, share) in itertools.product(range(2), enumerate(BINS)):
            order = sorted(range(length), key=lambda at: -float(scores[row, ranking, at]))
            top = set(order[: max(1, math.floor(share * length / 100))])
            for kept, measured in (
                ([at not in top for at in range(length)], found.comprehensiveness),
                ([at in top for at in range(length)], found.sufficiency),
            ):
                said = by_hand(model, corpus, example, kept, hierarchical=False)[about.predicted[row]]
                expected = float((about.probability[row] - said).detach())
                assert float(measured[row, ranking, number]) == pytest.approx(expected, abs=1e-9)


def test_bins_are_shares_in_whole_numbers_and_never_empty():
    lengths = torch.tensor([1, 2, 9, 19, 100, 700])
    expected = [[1] * 5, [1] * 5, [1, 1, 1, 1, 4], [1, 1, 1, 3, 9], [1, 5, 10, 20, 50], [7, 35, 70, 140, 350]]
    assert top_counts(lengths).tolist() == expected


def test_of_equals_the_first_is_on_top_and_padding_never():
    mask = torch.arange(4) < torch.tensor([[4], [2]])
    top = on_top(torch.tensor([[[0.5, 0.5, 0.1, 0.5]], [[-3.0, -2.0, 9.0, 9.0]]]), mask)
    assert top[0, 0, -1].tolist() == [True, True, False, False]
    assert top[1, 0, 0].tolist() == [False, True, False, False]


@given(seed=st.integers(0, 30))
def test_only_the_order_of_scores_counts(seed):
    corpus = toy_corpus(lengths=(9, 3))
    model = in_double(toy_model(corpus, encoder="average"))
    reading = read(model, corpus)
    scores = torch.rand(2, 3, 9, generator=seeded(seed)).double()
    one, other = (faithfulness(model, reading, each) for each in (scores, scores.exp() * 5 - 3))
    torch.testing.assert_close(one.comprehensiveness, other.comprehensiveness, atol=0, rtol=0)
    torch.testing.assert_close(one.sufficiency, other.sufficiency, atol=0, rtol=0)


def test_a_ranking_turned_round_exchanges_the_halves():
    """Of a text of two units, deleting one is leaving the other alone."""
    corpus = toy_corpus(lengths=(2, 2, 2))
    model = in_double(toy_model(corpus))
    reading = read(model, corpus)
    scores = torch.tensor([[1.0, 2.0]]).expand(3, 1, 2)
    one, other = faithfulness(model, reading, scores), faithfulness(model, reading, -scores)
    torch.testing.assert_close(one.comprehensiveness, other.sufficiency)
    torch.testing.assert_close(one.sufficiency, other.comprehensiveness)


def test_on_a_mean_of_values_the_best_ranking_can_be_worked_out():
    """Uniform attention over words on their own: by what each says for the class, nothing scores better."""
    corpus = toy_corpus(lengths=(8, 6))
    model = in_double(toy_model(corpus, encoder="identity", projection="uniform"))
    reading = read(model, corpus)
    sign = torch.where(explained(model, reading).predicted == 1, 1.0, -1.0)[:, None]
    best = (reading.values[..., 0] * sign).detach()
    drawn = random_scores(reading.mask, 50, rng=seeded()).double()
    found = faithfulness(model, reading, torch.cat([best[:, None], -best[:, None], drawn], dim=1))
    for measured, at_best, at_worst in (
        (found.comprehensiveness, "amax", "amin"),
        (found.sufficiency, "amin", "amax"),
    ):
        torch.testing.assert_close(measured[:, 0], getattr(measured, at_best)(1))
        torch.testing.assert_close(measured[:, 1], getattr(measured, at_worst)(1))


def test_both_readings_of_the_area_over_the_curve():
    bins = torch.arange(5.0).expand(2, 1, 5)
    found = Faithfulness(bins, bins + 1, torch.tensor([0.6, 0.0]))
    assert [each.tolist() for each in found.aopc()] == [[[2.0], [2.0]], [[3.0], [3.0]]]
    without, alone = found.aopc(with_none=True)
    torch.testing.assert_close(without, torch.full((2, 1), 10 / 6))
    torch.testing.assert_close(alone, torch.tensor([[15.6 / 6], [15 / 6]]))


def test_a_ranking_with_a_nan_is_not_a_ranking():
    corpus = toy_corpus(lengths=(4, 3))
    model = toy_model(corpus)
    reading = read(model, corpus)
    scores = torch.ones(2, 2, 4)
    scores[0, 1, 2] = scores[1, 0, 3] = float("nan")  # the second is on padding
    found = faithfulness(model, reading, scores)
    assert found.aopc()[0].isnan().tolist() == [[False, True], [False, False]]


def test_random_scores_are_orders_of_the_units():
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    drawn = random_scores(mask, 400, rng=seeded())
    assert (drawn[0].sort(1).values == torch.arange(5.0)).all()
    assert (drawn[1, :, :3].sort(1).values == torch.arange(3.0)).all()
    first = torch.bincount(drawn[0].argmax(1), minlength=5)
    assert first.min() > 50


marks = st.lists(st.booleans(), min_size=2, max_size=12).filter(lambda m: 0 < sum(m) < len(m))


@given(rationale=marks, data=st.data())
def test_average_precision_is_that_of_scikit_learn(rationale, data):
    few = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0])  # ties, too
    scores = np.array(data.draw(st.lists(few, min_size=len(rationale), max_size=len(rationale))))
    found = average_precision(scores, np.array(rationale))
    assert found == pytest.approx(average_precision_score(rationale, scores))


@given(rationale=marks)
def test_a_ranking_by_the_rationale_finds_all_of_it(rationale):
    marked = np.array(rationale)
    assert plausibility(marked.astype(float), marked) == pytest.approx((1.0, 1.0, 1.0))


def test_plausibility_by_hand():
    rationale = np.array([0, 1, 1, 0, 0, 1, 0], dtype=bool)
    found = plausibility(np.array([0.1, 0.9, 0.2, 0.8, 0.0, 0.7, 0.3]), rationale)
    assert found.token_f1 == pytest.approx(2 / 3)
    # Found are [1], [3] and [5]: the first is half of a span of two, the last is one, the middle is none.
    assert found.iou_f1 == pytest.approx(2 * (2 / 3) * 1.0 / (2 / 3 + 1))
    assert found.auprc == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_spans_and_how_they_overlap():
    assert spans(np.array([1, 1, 0, 1, 0, 0, 1], dtype=bool)) == [(0, 2), (3, 4), (6, 7)]
    assert iou_f1([(0, 2)], [(0, 4)]) == 1.0, "half of the union is enough"
    assert iou_f1([(0, 2)], [(0, 5)]) == 0.0
    assert iou_f1([(0, 2), (8, 9)], [(0, 2)]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "scores, rationale",
    [([1.0, 2.0], [False, False]), ([1.0, 2.0], [True, True]), ([1.0, math.nan], [True, False])],
)
def test_nothing_is_said_where_nothing_could_be_wrong(scores, rationale):
    assert np.isnan(plausibility(np.array(scores), np.array(rationale))).all()
    drawn = shuffled_plausibility(
        np.array(scores), np.array(rationale), draws=3, rng=np.random.default_rng(0)
    )
    assert np.isnan(drawn).all()


def test_shuffled_scores_find_what_chance_finds():
    rationale = np.arange(20) < 5
    null = shuffled_plausibility(np.arange(20.0), rationale, draws=2000, rng=np.random.default_rng(0))
    assert null.token_f1 == pytest.approx(5 / 20, abs=0.01)
    harmonic = np.sum(1 / np.arange(1, 21))
    # The mean of average precision over all orders, in closed form.
    expected = (4 / 19) * (1 - harmonic / 20) + harmonic / 20
    assert null.auprc == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("ties", [False, True])
def test_the_null_of_many_draws_at_once_is_that_of_one_after_the_other(ties):
    scores, rationale = np.random.default_rng(3).random(30), np.arange(30) % 7 < 2
    scores = scores.round(1) if ties else scores
    drawn = np.random.default_rng(5).permuted(np.tile(scores, (40, 1)), axis=1)
    wanted = np.mean([plausibility(each, rationale) for each in drawn], axis=0)
    found = shuffled_plausibility(scores, rationale, draws=40, rng=np.random.default_rng(5))
    np.testing.assert_allclose(found, wanted, atol=1e-12)
