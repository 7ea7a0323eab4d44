"""Rollout, flow, value norms and gradient x attention, each against its definition written out."""

import numpy as np
import pytest
import torch

from attentest.model.decoder import distribution
from attentest.model.transformer_editing import watching
from attentest.model.transformer_maps import KINDS, _flows, attention_map
from attentest.refusal import Refusal
from tests.families import made

networkx = pytest.importorskip("networkx", reason="the oracle of flows")


def maps_of(adopted, batch):
    """Every layer's weights of one text, the plain way: the library's own output."""
    laid = adopted.laid(batch)
    kept = []
    with torch.no_grad(), watching(adopted.transformer, lambda call: kept.append(call) and None):
        adopted.transformer(input_ids=laid.ids, attention_mask=laid.present.long(), token_type_ids=laid.types)
    return kept, laid


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("head", [None, 1])
def test_every_kind_is_a_distribution_over_words(kind, head):
    adopted, batch = made("bert", double=True, head=head)
    shown = attention_map(adopted, batch, kind)
    mask = adopted.read(batch).mask
    assert shown.shape == mask.shape and not shown.masked_fill(mask, 0.0).any() and (shown >= 0).all()
    torch.testing.assert_close(shown.sum(1), torch.ones(4, dtype=torch.float64))


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
    one = np.array([[[0.2, 0.8], [0.5, 0.5]]])
    np.testing.assert_allclose(_flows(one, 1), [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(_flows(one, 0), [0.2, 0.8], atol=1e-6)


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


@pytest.mark.parametrize(("family", "kind"), [("bart", "rollout"), ("t5", "flow"), ("xlnet", "value-norm")])
def test_what_a_family_cannot_show_is_refused_by_name(family, kind):
    adopted, batch = made(family)
    with pytest.raises(Refusal, match=f"{family} model.*kind 'row'"):
        attention_map(adopted, batch, kind)


def test_an_unknown_kind_is_refused_with_the_list():
    adopted, batch = made("bert")
    with pytest.raises(Refusal, match="row, rollout, flow, value-norm, gradient"):
        attention_map(adopted, batch, "heat")
