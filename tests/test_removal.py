"""Removal (SS-3): the exact smallest flip against every subset, first flips against one removal at a time."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attentest.evidence.permutation import orders
from attentest.evidence.removal import first_flip, smallest_flip
from attentest.evidence.removal import smallest as removal
from attentest.evidence.removal.decisions import attended, overtaken, predicted, without
from attentest.evidence.removal.first_flip import first_flips
from attentest.evidence.removal.orders import by_differentiating, in_closed_form, largest_first, rankings
from attentest.experiments.removal.conclude import COLUMNS, RANKINGS
from attentest.experiments.removal.observe import Removal
from attentest.model.subset import selected
from attentest.refusal import Refusal
from tests.removals import MODELS, NOT_AFFINE, every, made, observed
from tests.toys import seeded

NAN = math.nan
unhurried = settings(deadline=None, max_examples=150)


def one_text(weights, values, bias):
    """A text without padding from plain lists; a flat list of values is one logit."""
    values, bias = torch.tensor([values]).double(), torch.tensor(bias).double()
    values, bias = (values[:, :, None], bias.view(1)) if values.ndim == 2 else (values, bias)
    weights = torch.tensor([weights]).double()
    return weights, values, bias, torch.ones(weights.shape, dtype=torch.bool)


def logits_of(weights, values, bias, kept, possible):
    """The logits of what is kept, up to the mass, of one text; one logit is the second of two."""
    summed = sum((weights[t] * (values[t] + bias) for t in kept), np.zeros(len(bias)))
    summed = np.append(0.0, summed) if len(bias) == 1 else np.where(possible, summed, -np.inf)
    return summed


def by_every_subset(weights, values, bias, possible=True):
    """The least number of items whose removal puts another class strictly above; 0 where there is none."""
    items = [t for t, weight in enumerate(weights) if weight > 0]
    own = int(logits_of(weights, values, bias, items, possible).argmax())
    for left in range(len(items) - 1, 0, -1):
        for kept in combinations(items, left):
            logits = logits_of(weights, values, bias, kept, possible)
            if logits.max() > logits[own]:
                return len(items) - left
    return 0


@st.composite
def small_texts(draw):
    """Eighths and small whole numbers: sums are exact, so that ties are ties, and there are many."""
    tokens, classes = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    whole = st.integers(-3, 3).map(float)
    weights = draw(st.lists(st.integers(0, 4), min_size=tokens, max_size=tokens).filter(any))
    values = draw(
        st.lists(st.lists(whole, min_size=classes, max_size=classes), min_size=tokens, max_size=tokens)
    )
    bias = draw(st.lists(whole, min_size=classes, max_size=classes))
    possible = draw(st.lists(st.booleans(), min_size=classes, max_size=classes).filter(any))
    return np.array(weights) / 8, np.array(values), np.array(bias), np.array(possible) | (classes == 1)


@unhurried
@given(small_texts())
def test_the_smallest_flip_is_that_of_every_subset(text):
    weights, values, bias, possible = text
    answers = None if len(bias) == 1 else torch.tensor(possible)[None]
    given = one_text(weights.tolist(), values.tolist(), bias.tolist())
    found = smallest_flip(*given, answers=answers)
    count = int(found.count)
    assert count == by_every_subset(weights, values, bias, possible) and bool(found.defined)
    kept = [t for t in range(len(weights)) if weights[t] > 0 and not found.removed[0, t]]
    assert int(found.removed.sum()) == count and len(kept) == (weights > 0).sum() - count
    if count:
        logits = logits_of(weights, values, bias, kept, possible)
        whole = logits_of(weights, values, bias, range(len(weights)), possible)
        assert kept and logits[int(found.rival)] > logits[whole.argmax()]
    else:
        assert int(found.rival) == -1


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_a_padded_batch_of_real_numbers_against_every_subset(classes):
    rng = seeded(classes)
    lengths = torch.tensor([12, 1, 9, 2, 5, 11])
    mask = torch.arange(12)[None] < lengths[:, None]
    scores = torch.randn(mask.shape, generator=rng).masked_fill(~mask, -math.inf)
    weights, bias = scores.softmax(-1), 1.5 * torch.eye(classes)[0]
    values = torch.randn(*mask.shape, classes, generator=rng).masked_fill(~mask[..., None], NAN)
    found = smallest_flip(weights, values, bias, mask)
    for row, length in enumerate(lengths.tolist()):
        text = [one[row, :length].double().numpy() for one in (weights, values)]
        assert int(found.count[row]) == by_every_subset(*text, bias.double().numpy())
    assert found.count[1] == 0 and found.count.max() > 1, "long texts take more than one"


def test_by_hand():
    # For class 1: 0.4 * 2 + 0.3 * 1 - 0.3 * 1 = 0.8. Without the first token the logit is 0, a tie.
    text = one_text([0.4, 0.3, 0.3], [2.0, 1.0, -1.0], [0.0])
    found = smallest_flip(*text)
    assert found.count.tolist() == [2] and found.removed.tolist() == [[True, True, False]]
    assert found.rival.tolist() == [0]
    # The bias moves with what is left: 0.6 more for each token.
    assert smallest_flip(*one_text([0.4, 0.3, 0.3], [2.0, 1.0, -1.0], [0.6])).count.tolist() == [2]
    assert smallest_flip(*one_text([0.4, 0.3, 0.3], [2.0, 1.0, -1.0], [1.0])).count.tolist() == [0]
    assert smallest_flip(*one_text([0.4, 0.3, 0.3], [2.0, 1.0, -1.0], [-0.5])).count.tolist() == [1]


@pytest.mark.parametrize(
    "values, count, rival",
    [
        ([0.0, 0.0], 0, -1),  # nothing to remove matters
        ([1.0, -1.0], 1, 1),  # a logit of exactly 0 predicts class 0: the second token must go
        ([-1.0, 1.0], 1, 1),
    ],
)
def test_a_logit_of_exactly_zero_predicts_class_0(values, count, rival):
    found = smallest_flip(*one_text([0.5, 0.5], values, [0.0]))
    assert (found.count.tolist(), found.rival.tolist()) == ([count], [rival])
    assert predicted(torch.zeros(1, 1)).tolist() == [0]


def test_tokens_without_weight_never_count_and_one_must_stay():
    # Only a token without weight speaks for the other class.
    assert smallest_flip(*one_text([0.5, 0.5, 0.0], [1.0, 2.0, -9.0], [0.0])).count.tolist() == [0]
    # Without both tokens the bias would decide otherwise; that is no removal here.
    assert smallest_flip(*one_text([0.5, 0.5], [3.0, 3.0], [-1.0])).count.tolist() == [0]
    found = smallest_flip(*one_text([0.0, 0.25, 0.5, 0.25], [5.0, 4.0, 1.0, -1.0], [0.0]))
    assert found.count.tolist() == [2] and found.removed.tolist() == [[False, True, True, False]]


def test_an_impossible_answer_is_no_rival():
    weights, values, bias, mask = one_text([0.5, 0.5], [[3.0, 0.0, 2.0], [1.0, 2.0, 0.0]], [0.0, 0.0, 0.0])
    assert smallest_flip(weights, values, bias, mask).rival.tolist() == [1]
    answers = torch.tensor([[True, False, True]])
    without_rival = smallest_flip(weights, values, bias, mask, answers=answers)
    assert without_rival.count.tolist() == [0] and without_rival.defined.tolist() == [True]
    values[:, :, 1] = NAN
    assert smallest_flip(weights, values, bias, mask, answers=answers).defined.tolist() == [True]


def test_what_is_undefined_is_told():
    weights, values, bias, mask = (
        torch.tensor([[0.5, 0.5]] * 5),
        torch.tensor([[[1.0], [-4.0]]] * 5),
        torch.zeros(1),
        torch.ones(5, 2, dtype=torch.bool),
    )
    weights[1, 0], values[2, 1], weights[3], weights[4, 0] = NAN, math.inf, 0.0, -0.5
    found = smallest_flip(weights, values, bias, mask)
    assert found.defined.tolist() == [True, False, False, False, False]
    assert found.count.tolist() == [1, 0, 0, 0, 0] and not found.removed[1:].any()
    assert smallest_flip(weights, values, torch.tensor([NAN]), mask).defined.any() == torch.tensor(False)


def test_chunks_change_nothing(monkeypatch):
    weights, values, mask = torch.rand(9, 6), torch.randn(9, 6, 3), torch.ones(9, 6, dtype=torch.bool)
    whole = smallest_flip(weights, values, torch.zeros(3), mask)
    monkeypatch.setattr(removal, "CHUNK", 40)
    parts = smallest_flip(weights, values, torch.zeros(3), mask)
    for name in ("count", "removed", "rival", "defined"):
        assert torch.equal(getattr(whole, name), getattr(parts, name))


@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": torch.ones(1, 3)},
        {"values": torch.ones(1, 2)},
        {"bias": torch.ones(2)},
        {"mask": torch.ones(2, 2, dtype=torch.bool)},
        {"answers": torch.ones(1, 1, dtype=torch.bool)},
        {"mask": torch.zeros(1, 2, dtype=torch.bool)},
    ],
)
def test_shapes_that_do_not_fit_are_refused(wrong):
    sound = {
        "weights": torch.ones(1, 2),
        "values": torch.ones(1, 2, 1),
        "bias": torch.ones(1),
        "mask": torch.ones(1, 2, dtype=torch.bool),
    }
    assert smallest_flip(**sound).defined.all()
    with pytest.raises(Refusal, match="the smallest flip"):
        smallest_flip(**{**sound, **wrong})


def all_orders(model, reading, drawn=3):
    items = attended(reading)
    ranked = [largest_first(scores, items)[:, None] for scores in rankings(model, reading).values()]
    return torch.cat([orders(items, drawn, rng=seeded()), *ranked], dim=1)


def one_at_a_time(model, reading, order, text):
    """Remove, renormalise, ask; as the paper tells it. The count and the mass at the first flip."""
    own = int(predicted(model.decide(reading))[text])
    weights = reading.weights[text].clone()
    whole = float(weights.sum())
    for count, unit in enumerate(order[: int(attended(reading)[text].sum())].tolist(), start=1):
        weights[unit] = 0.0
        left = weights.sum()
        given = reading.weights.clone()
        given[text] = weights / left if left > 0 else weights
        if bool(overtaken(model.decide(reading, given)[:, None], torch.full((len(given),), own))[text, 0]):
            return count, 1 - float(left) / whole
    return -1, -1.0


@every
def test_first_flips_are_those_of_one_removal_at_a_time(name, monkeypatch):
    model, reading = made(name)
    order = all_orders(model, reading)
    with torch.no_grad():
        expected = [
            [one_at_a_time(model, reading, order[text, n], text) for n in range(order.shape[1])]
            for text in range(len(order))
        ]
    if name not in NOT_AFFINE:  # the fast road asks nothing
        monkeypatch.setattr(type(model), "decide", None)
    found = first_flips(model, reading, order)
    counts, masses = np.moveaxis(np.array(expected), 2, 0)
    assert found.count.tolist() == counts.tolist() and found.defined.all()
    np.testing.assert_allclose(found.mass.numpy(), masses, atol=1e-6)
    assert (counts > 1).any() and (counts == -1).any(), (
        "some decisions take many removals, and some never flip"
    )


@pytest.mark.parametrize("name", sorted(set(MODELS) - NOT_AFFINE))
def test_both_roads_agree(name):
    model, reading = made(name)
    order = all_orders(model, reading)
    fast, slow = first_flips(model, reading, order), first_flip._by_asking(model, reading, order)
    for field in ("count", "items", "defined"):
        assert torch.equal(getattr(fast, field), getattr(slow, field))
    torch.testing.assert_close(fast.mass, slow.mass)


@every
def test_chunks_change_nothing_but_memory(name, monkeypatch):
    model, reading = made(name)
    order = all_orders(model, reading)
    whole = first_flips(model, reading, order)
    monkeypatch.setattr(first_flip, "CHUNK", 2 * order.numel())
    parts = first_flips(model, reading, order)
    assert torch.equal(whole.count, parts.count) and torch.equal(whole.mass, parts.mass)


def test_asking_stops_at_the_first_flip(monkeypatch):
    model, reading = made("two-layer")
    order = all_orders(model, reading)
    counts = first_flips(model, reading, order).count
    text, which = ((counts > 1) & (counts < 5)).nonzero()[0].tolist()
    part = selected(reading, torch.tensor([text]))
    alone = order[text, which][order[text, which] < part.mask.shape[1]][None, None]
    monkeypatch.setattr(first_flip, "CHUNK", alone.numel())  # one prefix a call
    asked, decide = [], type(model).decide
    monkeypatch.setattr(type(model), "decide", lambda *args: asked.append(args) or decide(*args))
    assert first_flips(model, part, alone).count.tolist() == [[counts[text, which]]]
    assert len(asked) == 1 + counts[text, which] < alone.shape[2], "its own decision, and one a removal"


@every
def test_slopes_in_closed_form_are_those_of_autograd(name):
    model, reading = made(name)
    slow = by_differentiating(model, reading)
    found = rankings(model, reading)
    torch.testing.assert_close(found["gradient"], slow)
    assert not found["gradient"][~reading.mask].any()
    torch.testing.assert_close(found["product"], reading.weights * slow)
    if name not in NOT_AFFINE:
        torch.testing.assert_close(in_closed_form(model, reading), slow)


@pytest.mark.parametrize("name", ["one logit", "classes"])
def test_slopes_are_differences_of_outputs(name):
    model, reading = made(name)
    step = 1e-6
    own = predicted(model.decide(reading))
    slope = in_closed_form(model, reading)
    for unit in range(3):
        moved = reading.weights.clone()
        moved[:, unit] += step
        before, after = (
            torch.softmax(torch.nn.functional.pad(logits, (1, 0)) if logits.shape[1] == 1 else logits, -1)
            for logits in (model.decide(reading), model.decide(reading, moved))
        )
        change = ((after - before) / step).gather(1, own[:, None])[:, 0]
        there = reading.mask[:, unit]
        torch.testing.assert_close(slope[there, unit], change[there], atol=1e-5, rtol=1e-4)


def test_a_product_ranking_is_optimal_where_there_is_no_bias():
    """One logit, no bias: shares in the lead are proportional to the product, so its win is a tautology."""
    model, reading = made("one logit")
    reading.values.add_(reading.bias)  # the same decisions
    reading.bias.zero_()
    found = first_flips(model, reading, all_orders(model, reading, drawn=1))
    smallest = smallest_flip(reading.weights, reading.values, reading.bias, reading.mask).count
    some = smallest > 0
    assert some.sum() > 3 and torch.equal(found.count[some, -1], smallest[some])


@pytest.mark.parametrize("name", ["one logit", "classes", "sparse", "sentences", "affine candidates"])
def test_nothing_beats_the_optimum(name):
    model, reading = made(name)
    found = first_flips(model, reading, all_orders(model, reading, drawn=20))
    exact = smallest_flip(
        reading.weights, reading.values, reading.bias, reading.mask, answers=reading.batch.answers
    )
    flips = found.count > 0
    assert ((found.count >= exact.count[:, None]) | ~flips).all()
    before_the_last = flips & (found.count < found.items[:, None])
    assert (exact.count[:, None] > 0)[before_the_last.any(1)].all(), "what a ranking flips can be flipped"


def test_without_hidden_states_only_the_bias_speaks_and_nothing_flips():
    model, reading = made("classes")
    reading.values.zero_()
    found = first_flips(model, reading, all_orders(model, reading))
    assert (found.count == -1).all() and (found.mass == -1).all() and found.defined.all()


def test_the_empty_remainder_is_the_last_step_and_flips_only_another_class():
    model, reading = made("one logit")
    items = reading.mask.sum(1)
    reading.values.fill_(1.0)
    for bias, ends in ((-0.5, items.tolist()), (0.5, [-1] * len(items))):
        reading.bias.fill_(bias)
        found = first_flips(model, reading, all_orders(model, reading, drawn=1))
        assert found.count.tolist() == [[end] * 4 for end in ends]
        assert smallest_flip(reading.weights, reading.values, reading.bias, reading.mask).count.sum() == 0
    reading.bias.fill_(-0.5)
    torch.testing.assert_close(
        first_flips(model, reading, all_orders(model, reading, drawn=1)).mass,
        torch.ones(len(items), 4).double(),
    )


def test_flips_may_go_on_and_off_and_the_first_one_counts():
    model, reading = made("one logit")
    reading.bias.zero_()
    reading.values.zero_()
    reading.weights[4] = reading.mask[4] / 25
    reading.values[4, :4, 0] = torch.tensor([5.0, -3.0, 9.0, -1.0]).double()
    # For class 1 by 10 / 25; without the first two 8, without three -1, without four nothing: never above.
    order = torch.arange(25).expand(len(reading.mask), 1, -1)
    assert first_flips(model, reading, order).count[4].tolist() == [3]
    reading.values[4, 0, 0] = 1.0  # 6; then 5, 8, -1
    reading.values[4, 1, 0] = -6.0  # 3; then 2, 8, -1: never monotone
    assert first_flips(model, reading, order).count[4].tolist() == [3]
    reading.values[4, 2, 0] = 5.0  # -1: class 0 from the start
    assert first_flips(model, reading, order).count[4].tolist() == [2]


def test_a_text_that_is_not_a_number_is_told_and_leaves_the_others_alone():
    for name in ("one logit", "two-layer"):
        model, reading = made(name)
        whole = first_flips(model, reading, all_orders(model, reading))
        order = all_orders(model, reading)
        reading.hidden[2] = NAN
        if reading.values is not None:
            reading.values[2] = NAN
        found = first_flips(model, reading, order)
        others = [n for n in range(len(order)) if n != 2]
        assert found.defined.tolist() == [n != 2 for n in range(len(order))]
        assert torch.equal(found.count[others], whole.count[others])


def test_orders_that_do_not_fit_are_refused():
    model, reading = made("one logit")
    with pytest.raises(Refusal, match="orders of removal"):
        first_flips(model, reading, all_orders(model, reading)[:2])
    with pytest.raises(Refusal, match="in one order or more"):
        first_flips(model, reading, all_orders(model, reading)[:, :0])


def test_what_is_left_is_renormalised_even_beside_a_weight_of_nearly_one():
    weights = torch.tensor([[1.0, 1e-20, 3e-20]])
    rest = without(weights, torch.tensor([[[True, False, False], [True, True, True]]]))
    torch.testing.assert_close(rest, torch.tensor([[[0.0, 0.25, 0.75], [0.0, 0.0, 0.0]]]))


@every
def test_rows_tell_every_text_and_are_those_of_the_same_draws(name):
    rows = observed(name, Removal())
    assert {"seed", *rows[0]} >= set(COLUMNS) and len(rows) == 3 * 6
    assert {row["subject"] for row in rows} == {"trained", "untrained", "shuffled labels"}
    assert str(rows) == str(observed(name, Removal())) != str(observed(name, Removal(), seed=1))
    for row in rows:
        counts = row["counts_random"]
        assert len(counts) == 5
        assert row["count_random"] == (-1 if min(counts) < 0 else np.mean(counts))
        assert math.isnan(row["smallest"]) == (name in NOT_AFFINE)
        for ranking in RANKINGS:
            count, mass = row[f"count_{ranking}"], row[f"mass_{ranking}"]
            assert (count == -1 and mass == -1) or (1 <= count <= row["items"] and 0 < mass <= 1)
            assert count == -1 or not 0 < count < row["smallest"]


def test_as_published_the_first_random_order_stands_for_all():
    corrected, published = observed("classes", Removal()), observed("classes", Removal(mode="as-published"))
    for one, other in zip(corrected, published, strict=True):
        assert other["counts_random"] == one["counts_random"][:1] == [other["count_random"]]
        assert other["count_attention"] == one["count_attention"]


def test_no_orders_are_refused():
    with pytest.raises(Refusal, match="at least 1"):
        Removal(orders=0)
