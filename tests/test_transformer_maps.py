"""Rollout, flow, value norms and gradient x attention, each against its definition written out."""

from itertools import chain, combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attentest.foreign.editing import watching
from attentest.foreign.maps import KINDS, attention_map, flows, map_of
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.families import FAMILIES, examples, made

HIDDEN = {"bart": ("rollout", "flow"), "t5": ("rollout", "flow")}  # two stacks
HIDDEN |= dict.fromkeys(("deberta-v2", "xlnet"), ("value-norm",))  # by hook


def maps_of(adopted, batch):
    """Every layer's weights of one text, the plain way: the library's own output."""
    laid = adopted.laid(batch)
    kept = []
    with torch.no_grad(), watching(adopted.transformer, lambda call: kept.append(call) and None):
        adopted.transformer(input_ids=laid.ids, attention_mask=laid.present.long(), token_type_ids=laid.types)
    return kept, laid


def check_distribution(shown, mask):
    assert shown.shape == mask.shape and not shown.masked_fill(mask, 0.0).any() and (shown >= 0).all()
    torch.testing.assert_close(shown.sum(1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [None, 1])
def test_every_kind_is_a_distribution_over_words(kind, head):
    adopted, batch = made("bert", double=True, head=head)
    check_distribution(attention_map(adopted, batch, kind), adopted.read(batch).mask)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_shows_every_kind_or_refuses_it_by_name(family):
    adopted, batch = made(family, double=True, pairs=family not in ("bart", "t5"))
    reading = adopted.read(batch)
    for kind in KINDS:
        if kind in HIDDEN.get(family, ()):
            with pytest.raises(Refusal, match=f"{family} model.*kind 'row'"):
                map_of(adopted, reading, kind)
        else:
            check_distribution(map_of(adopted, reading, kind), reading.mask)


def test_the_row_is_what_is_read():
    for head in (None, 0):
        adopted, batch = made("bert", head=head)
        weights = adopted.read(batch).weights
        own = weights if head == 0 else weights.mean(1)
        assert torch.equal(attention_map(adopted, batch, "row"), own / own.sum(1, keepdim=True))


@pytest.mark.parametrize("kind", ["rollout", "flow", "gradient", "value-norm"])
def test_a_map_is_that_of_the_vectors_that_were_read(kind):
    adopted, batch = made("bert", double=True)
    own = adopted.embedding(batch.tokens).detach()
    plain = attention_map(adopted, batch, kind)
    assert torch.equal(map_of(adopted, adopted.read(batch, embeddings=own), kind), plain)
    moved = map_of(adopted, adopted.read(batch, embeddings=own.roll(1, dims=2)), kind)
    assert not torch.allclose(moved, plain, atol=1e-3)


@pytest.mark.parametrize("kind", ["rollout", "flow"])
def test_a_text_has_the_map_it_has_alone(kind):
    """Padding and the marks of longer neighbours are no places that anything flows through."""
    adopted, batch = made("xlnet", double=True)  # which pads on the left
    together = attention_map(adopted, batch, kind)
    split = adopted.split(examples()[2:3])
    alone = attention_map(adopted, split.batch([0]), kind)[0]
    torch.testing.assert_close(together[2, : len(alone)], alone, atol=1e-5, rtol=1e-4)


def test_a_sure_answer_still_has_slopes_and_a_constant_one_is_undefined():
    adopted, batch = made("bert")
    head = adopted.transformer.classifier
    with torch.no_grad():
        reading = adopted.read(batch)
        head.bias.zero_()
        first, second = adopted.decide(reading).topk(2).values.T
        head.weight *= 25 / (first - second).max()
        sure = distribution(adopted.decide(reading)).amax(1) == 1
    assert sure.any(), "in single precision nothing is left beside the answer"
    assert (map_of(adopted, reading, "gradient")[sure].sum(1) - 1).abs().max() < 1e-5
    head.weight.data.zero_()
    constant = attention_map(adopted, batch, "gradient")
    mask = reading.mask
    assert constant[mask].isnan().all() and not constant[~mask].any()


@pytest.mark.parametrize("layer", [-1, 1])
def test_rollout_multiplies_what_each_layer_passes_on(layer):
    adopted, batch = made("bert", double=True, layer=layer, words=False)
    calls, laid = maps_of(adopted, batch)
    for text, length in enumerate(laid.present.sum(1).tolist()):
        arrived = np.eye(length)
        for call in calls[: adopted.layer + 1]:
            one = call.weights[text].mean(0)[:length, :length].numpy()
            arrived = (0.5 * one + 0.5 * np.eye(length)) @ arrived
        wanted = arrived[0, 1 : length - 1]  # without [CLS] and [SEP]
        found = attention_map(adopted, batch, "rollout")[text, : length - 2]
        np.testing.assert_allclose(found, wanted / wanted.sum(), atol=1e-9)


def test_flow_is_the_maximum_flow_of_the_graph():
    networkx = pytest.importorskip("networkx", reason="another way to find it")
    adopted, batch = made("bert", double=True, words=False)
    calls, laid = maps_of(adopted, batch)
    found = attention_map(adopted, batch, "flow")
    for text, length in enumerate(laid.present.sum(1).tolist()[:3]):
        graph = networkx.DiGraph()
        for level, call in enumerate(calls):
            one = 0.5 * call.weights[text].mean(0)[:length, :length].numpy() + 0.5 * np.eye(length)
            for above, below in np.ndindex(length, length):
                graph.add_edge((level + 1, above), (level, below), capacity=one[above, below])
        wanted = np.array(
            [
                networkx.maximum_flow_value(graph, (len(calls), 0), (0, place))
                for place in range(1, length - 1)
            ]
        )
        np.testing.assert_allclose(found[text, : length - 2], wanted / wanted.sum(), atol=1e-4)


def test_flow_through_one_layer_is_its_row():
    one, sinks = np.array([[[0.2, 0.8], [0.5, 0.5]]]), np.arange(2)
    np.testing.assert_allclose(flows(one, 1, sinks), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(flows(one, 0, sinks), [0.2, 0.8], atol=1e-6)


def smallest_cut(layers, source, sink):
    """What must be cut to part the two: of all ways to divide the places between, the narrowest."""
    depth, places, _ = layers.shape
    top, bottom = (depth, source), (0, sink)
    between = [(level, place) for level in range(1, depth) for place in range(places)]
    sides = chain.from_iterable(combinations(between, size) for size in range(len(between) + 1))
    pipes = [
        ((level + 1, above), (level, below), layers[level, above, below])
        for level in range(depth)
        for above in range(places)
        for below in range(places)
    ]
    useful = [p for p in pipes if p[0] in (top, *between) and p[1] in (bottom, *between)]
    return min(
        sum(width for begin, end, width in useful if begin in side and end not in side)
        for side in ({top, *more} for more in sides)
    )


@given(st.integers(2, 3), st.integers(2, 3), st.integers(0, 2**32 - 1))
def test_flow_is_the_smallest_cut(depth, places, seed):
    rng = np.random.default_rng(seed)
    layers = rng.dirichlet(np.full(places, 0.3), size=(depth, places))
    layers[rng.random(layers.shape) < 0.2] = 0.0
    source, sinks = int(rng.integers(places)), rng.permutation(places)[: rng.integers(1, places + 1)]
    wanted = [smallest_cut(layers, source, sink) for sink in sinks]
    np.testing.assert_allclose(flows(layers, source, sinks), wanted, atol=1e-4)


def test_value_norms_weigh_the_row_by_what_it_fetches():
    adopted, batch = made("bert", double=True, words=False)
    calls, _ = maps_of(adopted, batch)
    weighed = (calls[-1].weights[:, :, 0] * calls[-1].values.norm(dim=3)).sum(1)
    found = attention_map(adopted, batch, "value-norm")
    wanted = weighed[0, 1:5]
    torch.testing.assert_close(found[0, :4], wanted / wanted.sum())


def test_gradient_times_attention_follows_finite_differences():
    adopted, batch = made("bert", double=True, head=0)
    found = attention_map(adopted, batch, "gradient")
    with torch.no_grad():
        reading = adopted.read(batch)
        moves = []
        for unit in range(4):
            step = torch.zeros_like(reading.weights)
            step[0, unit] = 1e-6 * reading.weights[0, unit]
            ends = [
                distribution(adopted.decide(reading, reading.weights + s * step))[0].amax() for s in (1, -1)
            ]
            moves.append(abs(float(ends[0] - ends[1])))
    wanted = torch.tensor(moves, dtype=torch.float64)
    torch.testing.assert_close(found[0, :4], wanted / wanted.sum(), atol=1e-6, rtol=1e-4)


def test_a_word_has_what_its_pieces_have():
    words, batch = made("bert", double=True)
    parts, by_piece = made("bert", double=True, words=False)
    for kind in ("row", "rollout", "flow", "value-norm"):
        whole, pieces = attention_map(words, batch, kind)[1], attention_map(parts, by_piece, kind)[1]
        torch.testing.assert_close(whole[0], pieces[:3].sum(), atol=1e-9, rtol=1e-6)
        torch.testing.assert_close(whole[5], pieces[7:9].sum(), atol=1e-9, rtol=1e-6)


def test_an_unknown_kind_is_refused_with_the_list():
    adopted, batch = made("bert")
    with pytest.raises(Refusal, match="row, rollout, flow, value-norm, gradient"):
        attention_map(adopted, batch, "heat")
