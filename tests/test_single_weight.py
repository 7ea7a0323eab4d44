"""Single weights (SS-1, SS-2): the item on top beside one at random, against one decision at a time."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest.evidence.removal.decisions import attended, in_double, predicted
from attentest.evidence.removal.orders import rankings
from attentest.evidence.removal.single import any_other, any_place, exchanged, single_removals, topmost
from attentest.experiments.single_weight.conclude import COLUMNS, RANKINGS
from attentest.experiments.single_weight.observe import SingleWeight
from attentest.model.networks.decoder import distribution
from attentest.statistics.comparison import jensen_shannon
from tests.removals import MODELS, every, made, observed
from tests.toys import seeded


def all_double(model, reading):
    """Both in double precision: in single, the last bit depends on the processor."""
    return model.double(), replace(
        reading,
        **{name: each.double() for name, each in vars(reading).items() if is_real(each)},
    )


def is_real(each):
    return isinstance(each, torch.Tensor) and each.is_floating_point()


def one_at_a_time(model, reading, text, unit):
    """The divergence of the output and whether the decision is another one, in numpy."""
    given = reading.weights.clone()
    given[text, unit] = 0.0
    given[text] /= given[text].sum()
    with torch.no_grad():
        before, after = (distribution(model.decide(reading, w).double()) for w in (reading.weights, given))
        own = int(predicted(model.decide(reading))[text])
    before, after = before[text].numpy(), after[text].numpy()
    return jensen_shannon(before, after), after.max() > after[own]


@every
def test_removals_are_those_of_one_decision_at_a_time(name):
    model, reading = all_double(*made(name))
    items = attended(reading)
    for scores in rankings(model, reading).values():
        on_top = topmost(scores, items)
        drawn = any_other(items, on_top, rng=seeded())
        found = single_removals(model, reading, on_top, drawn)
        assert found.defined.tolist() == (items.sum(1) > 1).tolist()
        for text in found.defined.nonzero().squeeze(1).tolist():
            kept = scores[text][items[text]]
            assert scores[text, on_top[text]] == kept.max()
            for which, unit in enumerate((int(on_top[text]), int(drawn[text]))):
                divergence, flips = one_at_a_time(model, reading, text, unit)
                assert float(found.divergence[text, which]) == pytest.approx(divergence, abs=1e-12)
                assert bool(found.flips[text, which]) == flips
                assert found.weights[text, which] == reading.weights[text, unit]


def test_a_flip_needs_a_rival_strictly_above():
    model, reading = made("one logit")
    reading.bias.zero_()
    reading.values.zero_()
    reading.weights[3, :2] = 0.5
    reading.values[3, :2, 0] = torch.tensor([2.0, 0.0]).double()
    top, other = torch.zeros(len(reading.mask), dtype=torch.int64), torch.ones(len(reading.mask)).long()
    assert single_removals(model, reading, top, other).flips[3].tolist() == [False, False], "0 is a tie"
    reading.values[3, 1, 0] = -1e-9
    assert single_removals(model, reading, top, other).flips[3].tolist() == [True, False]


def test_the_other_item_is_drawn_evenly_from_all_but_the_top():
    items = torch.tensor([[True, True, False, True, True]]).expand(4000, -1)
    drawn = any_other(items, torch.full((4000,), 3), rng=seeded())
    counts = torch.bincount(drawn, minlength=5)
    assert counts[[2, 3]].tolist() == [0, 0] and (counts[[0, 1, 4]] - 4000 / 3).abs().max() < 130


def test_the_published_draw_takes_a_rank_for_a_place():
    mask = torch.arange(6)[None] < torch.tensor([4, 1, 2]).repeat_interleave(2000)[:, None]
    drawn = any_place(mask, rng=seeded()).view(3, -1)
    counts = torch.bincount(drawn[0], minlength=4)
    assert counts[0] == 0 and (counts[1:] - 2000 / 3).abs().max() < 100, "the first place never, the top too"
    assert drawn[1].max() == 0 and (drawn[2] == 1).all()


@every
def test_the_null_moves_hidden_states_beneath_the_weights(name):
    model, reading = made(name)
    moved = exchanged(reading, rng=seeded())
    assert moved.weights is reading.weights and not torch.equal(moved.hidden, reading.hidden)
    for text, length in enumerate(reading.mask.sum(1).tolist()):
        before, after = (
            {tuple(state) for state in one.hidden[text, :length].tolist()} for one in (reading, moved)
        )
        assert before == after
    torch.testing.assert_close(moved.hidden[~reading.mask], reading.hidden[~reading.mask])
    if reading.values is not None:
        with torch.no_grad():
            expected = moved.hidden.double() @ model.decoder.dense.weight.T.double()
        torch.testing.assert_close(moved.values[reading.mask], expected[reading.mask], atol=1e-5, rtol=1e-4)


@every
def test_rows_tell_every_text_and_one_item_is_not_a_number(name):
    rows = observed(name, SingleWeight())
    assert {"seed", *rows[0]} >= set(COLUMNS) and len(rows) == 3 * 6
    assert str(rows) == str(observed(name, SingleWeight())) != str(observed(name, SingleWeight(), seed=1))
    alone = [row for row in rows if row["items"] == 1]
    assert alone
    for row in rows:
        for ranking in RANKINGS:
            measured = [row[key] for key in row if key.endswith(f"_{ranking}") and key != "max_attention"]
            assert len(measured) == 12
            assert np.isnan(measured).all() == np.isnan(measured).any() == (row["items"] == 1)
        if row["items"] > 1:
            assert row["gap_attention"] >= 0
            assert row["null_gap_attention"] == row["gap_attention"], "the null removes the same weights"
            assert row["djs_product"] == row["js_top_product"] - row["js_random_product"]


def test_as_published_the_random_item_may_be_the_one_on_top():
    rows = [row for seed in range(6) for row in observed("classes", SingleWeight(mode="as-published"), seed)]
    same = [row for row in rows if row["js_top_attention"] == row["js_random_attention"] > 0]
    assert same and all(row["djs_attention"] == row["gap_attention"] == 0 for row in same)
    corrected = [row for seed in range(6) for row in observed("classes", SingleWeight(), seed)]
    assert not any(row["gap_attention"] == 0 for row in corrected)


def test_the_decisive_word_alone_flips_what_it_decided():
    """Attention on the one item that speaks for the class: removing it flips, removing another does not."""
    model, reading = made("one logit")
    reading.bias.zero_()
    reading.values.fill_(-1.0)
    reading.values[:, 1] = 9.0
    reading.weights.copy_(reading.mask / reading.mask.sum(1, keepdim=True) * 0.5)
    reading.weights[:, 1] += 0.5
    long = reading.mask.sum(1) > 2
    items = attended(reading)
    for scores in rankings(model, reading).values():
        on_top = topmost(scores, items)
        found = single_removals(model, reading, on_top, any_other(items, on_top, rng=seeded()))
        assert (on_top[long] == 1).all() and found.flips[long].tolist() == [[True, False]] * int(long.sum())


def test_in_double_only_where_the_decision_is_affine():
    for name in MODELS:
        _, reading = made(name)
        assert (reading.weights.dtype == torch.float64) == (reading.values is not None)
        assert in_double(reading).weights.dtype == reading.weights.dtype
