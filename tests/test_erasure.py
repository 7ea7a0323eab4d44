"""Leave-one-out (JW-2): every fast road equals reading again, and reading again equals deleting by hand."""

import dataclasses
import itertools
from itertools import product

import numpy as np
import pytest
import torch

from attentest.evidence.erasure import leave_one_out as erasure
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.model.batch import IndexedSplit
from attentest.model.catalogue import ENCODERS
from attentest.model.networks.attention import ATTENTIONS, LAST_STATE
from attentest.model.networks.decoder import distribution
from attentest.model.networks.log_odds import LOG_ODDS
from attentest.model.networks.projection import Projection
from attentest.refusal import Refusal
from tests.grids import covering
from tests.toys import LENGTHS, in_double, toy_batch, toy_corpus, toy_model

PROJECTIONS = (
    "softmax",
    "sparsemax",
    "entmax15",
    "sparsegen(0.4)",
    "gumbel-softmax(0.8)",
    "tempered-softmax(0.8)",
    "uniform",
    "stored",
)
ROAD = {
    "average": "token-wise",
    "mlp": "token-wise",
    "identity": "token-wise",
    "cnn": "convolutional",
    "cnn-wen": "convolutional",
    "conv": "convolutional",
    "bilstm": "recurrent",
    "bigru": "recurrent",
    "transformer": "whole",
    "han-bigru": "whole",
    "han-conv": "whole",
    "han-identity": "whole",
}
FAST = [encoder for encoder, road in ROAD.items() if road != "whole"]
LABELS = ("no", "yes", "maybe")


def read(model, corpus, rows=None):
    with torch.no_grad():
        return model.read(toy_batch(model, corpus, rows))


def assert_the_roads_meet(model, reading, road):
    fast, whole = leave_one_out(model, reading), leave_one_out(model, reading, road="whole")
    assert (fast.road, whole.road) == (road, "whole")
    torch.testing.assert_close(fast.change, whole.change, atol=1e-5, rtol=0, equal_nan=True)
    return fast.change


def guide_for(examples):
    """Random weights; the third text's rest on one token, so that without it nothing is left."""
    rng = np.random.default_rng(1)
    guide = {e.id: rng.dirichlet(np.ones(len(e.tokens))).astype("float32") for e in examples}
    third = examples[2]
    guide[third.id] = np.eye(len(third.tokens), dtype="float32")[4]
    return guide


SCORED = [name for name in ATTENTIONS if name != LAST_STATE]
DECODERS = ("sigmoid", "softmax", "two-layer", "affine")  # the last two take a query


@pytest.mark.parametrize("point", covering([*product(FAST, SCORED, DECODERS, PROJECTIONS)]), ids="-".join)
def test_every_fast_road_equals_reading_again(point):
    encoder, attention, decoder, projection = point
    check_a_fast_road(encoder, attention, decoder, [projection])


@pytest.mark.slow
@pytest.mark.parametrize("point", [*product(FAST, SCORED, DECODERS)], ids="-".join)
def test_every_fast_road_equals_reading_again_under_every_projection(point):
    check_a_fast_road(*point, PROJECTIONS)


def check_a_fast_road(encoder, attention, decoder, projections):
    query, labels = decoder in ("two-layer", "affine"), LABELS[:2] if decoder == "sigmoid" else LABELS
    corpus = toy_corpus(query=query, labels=labels, candidates=query, lengths=(5, 1, 8, 2, 4))
    model = toy_model(corpus, encoder=encoder, attention=attention, decoder=decoder)
    model.guide = guide_for(corpus.test)
    for projection in projections:
        model.projection = Projection.parse(projection)
        reading = read(model, corpus)
        change = assert_the_roads_meet(model, reading, ROAD[encoder])
        assert (change[~reading.mask] == 0).all()
        undefined = (reading.mask.sum(1) == 1)[:, None] & reading.mask
        if projection == "stored":
            undefined[2, 4] = True
        assert torch.equal(change.isnan(), undefined)
        assert change.nan_to_num().max() > 1e-4, "nothing moved, so nothing was compared"


def without(example, unit, hierarchical):
    """The example with one unit deleted; its sentences begin where they then do."""
    ends = [*example.sentences[1:], len(example.tokens)]
    sentences = [example.tokens[b:e] for b, e in zip(example.sentences, ends, strict=True)]
    parts = sentences if hierarchical else [(token,) for token in example.tokens]
    rest = parts[:unit] + parts[unit + 1 :]
    starts = tuple(np.cumsum([0, *map(len, rest[:-1])]).tolist()) if hierarchical else None
    tokens = tuple(token for part in rest for token in part)
    return dataclasses.replace(example, id=f"{example.id}-{unit}", tokens=tokens, sentences=starts)


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_reading_again_equals_deleting_by_hand(encoder, query):
    hierarchical = encoder.startswith("han-")
    if query and hierarchical:
        return
    corpus = toy_corpus(query=query, labels=LABELS, candidates=query)
    model = toy_model(corpus, encoder=encoder)
    reading = read(model, corpus)
    found = leave_one_out(model, reading, road="whole").change
    with torch.no_grad():
        own = distribution(model.decide(reading))
        for row, example in enumerate(corpus.test):
            units = int(reading.mask[row].sum())
            assert units == (len(example.sentences) if hierarchical else len(example.tokens))
            for unit in range(units) if units > 1 else ():
                shorter = IndexedSplit(
                    [without(example, unit, hierarchical)], model.vocabulary, corpus.labels
                )
                other = distribution(model.decide(model.read(shorter.batch([0]))))[0]
                expected = 0.5 * (other - own[row]).abs().sum()
                assert float(found[row, unit]) == pytest.approx(float(expected), abs=1e-6)


def test_every_encoder_takes_its_road():
    assert set(ROAD) == set(ENCODERS)
    for encoder, road in ROAD.items():
        corpus = toy_corpus()
        model = toy_model(corpus, encoder=encoder)
        assert leave_one_out(model, read(model, corpus)).road == road


def test_a_mean_of_values_can_be_worked_out_on_paper():
    """Uniform attention over tokens read on their own: without t, the logit is the mean of the others."""
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="identity", projection="uniform")
    reading = read(model, corpus, [0])
    values, bias = reading.values[0, :, 0], float(reading.bias.detach())
    for left in range(5):
        others = torch.cat([values[:left], values[left + 1 :]]).mean() + bias
        expected = abs(float(torch.sigmoid(others) - torch.sigmoid(values.mean() + bias)))
        assert float(leave_one_out(model, reading).change[0, left]) == pytest.approx(expected, abs=1e-6)


def spread(model, reading, corpus, gap):
    """Scale the scores so that in some text the first is `gap` above the second."""
    two = reading.scores[0, reading.mask[0]].topk(2).values
    with torch.no_grad():
        model.attention.to_score.weight *= gap / float(two[0] - two[1])
    return read(model, corpus)


@pytest.mark.parametrize("gap", [21.0, 200.0])
@pytest.mark.parametrize("encoder", FAST)
def test_a_token_that_holds_all_attention_leaves_the_others_theirs(encoder, gap):
    corpus = toy_corpus(lengths=(5, 1, 6, 2))
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = spread(model, read(model, corpus), corpus, gap)
    expected = leave_one_out(model, reading, road="whole").change
    single = model.to(torch.float32)
    reading = read(single, corpus)
    assert 1 - float(reading.weights[0].double().max()) < 1e-8
    if gap < 100:  # beyond, scores are so large that single precision itself reads them differently each time
        assert_the_roads_meet(single, reading, ROAD[encoder])
    found = leave_one_out(single, reading).change
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=0, equal_nan=True)


def test_the_closed_form_alone_would_not_do(monkeypatch):
    corpus = toy_corpus(lengths=(5, 6))
    model = toy_model(corpus, encoder="average")
    reading = spread(model, read(model, corpus), corpus, 200.0)
    assert_the_roads_meet(model, reading, "token-wise")
    monkeypatch.setattr("attentest.evidence.erasure.tokenwise.NEARLY_ALL", 2.0)
    with pytest.raises(AssertionError):
        assert_the_roads_meet(model, reading, "token-wise")


def test_a_token_outside_the_support_changes_nothing():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average", projection="sparsemax")
    with torch.no_grad():
        model.attention.to_score.weight *= 20
    reading = read(model, corpus)
    outside = reading.mask & (reading.weights == 0)
    assert outside.any()
    assert (leave_one_out(model, reading).change[outside] == 0).all()


@pytest.mark.parametrize("query", [False, True], ids=["plain", "query"])
@pytest.mark.parametrize("encoder", ROAD)
def test_chunks_change_nothing_but_memory(encoder, query, monkeypatch):
    if query and encoder.startswith("han-"):
        return
    corpus = toy_corpus(query=query, lengths=(40, 1, 17, 3, 3, 16))
    model = toy_model(corpus, encoder=encoder, attention="additive" if query else "dot", hidden=64)
    reading = read(model, corpus)
    together = leave_one_out(model, reading).change
    parts = []
    inner = erasure.ROADS[ROAD[encoder]]

    def counted(model, reading, lefts):
        parts.append((len(reading.mask), len(lefts)))
        return inner.remainder(model, reading, lefts)

    monkeypatch.setitem(erasure.ROADS, ROAD[encoder], dataclasses.replace(inner, remainder=counted))
    monkeypatch.setattr(erasure, "FLOATS", 7 * inner.floats_per_variant(model, 40))
    apart = leave_one_out(model, reading).change
    torch.testing.assert_close(apart, together, atol=1e-6, rtol=0, equal_nan=True)
    # Sentences are few: a text of 40 tokens has 14, and its variants still do not fit.
    assert (1, 7) in parts, "the variants of the long text were meant to come in several parts"
    assert max(texts for texts, _ in parts) > 1, "short texts were meant to go together"


@pytest.mark.parametrize("encoder", ROAD)
def test_each_text_stands_alone_and_its_place_does_not_matter(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    together = leave_one_out(model, read(model, corpus)).change
    order = [3, 0, 5, 1, 4, 2]
    turned = leave_one_out(model, read(model, corpus, order)).change
    torch.testing.assert_close(turned, together[order], atol=1e-6, rtol=0, equal_nan=True)
    for row in range(len(LENGTHS)):
        alone = leave_one_out(model, read(model, corpus, [row])).change[0]
        torch.testing.assert_close(alone, together[row, : len(alone)], atol=1e-6, rtol=0, equal_nan=True)
        assert (together[row, len(alone) :] == 0).all()


@pytest.mark.parametrize("encoder", ROAD)
def test_it_does_not_matter_how_the_text_was_read(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    batch = toy_batch(model, corpus)
    plain = leave_one_out(model, model.read(batch)).change
    with torch.no_grad():
        distinct = leave_one_out(model, model.read_distinct(batch)).change
    assert not plain.requires_grad
    torch.testing.assert_close(plain, distinct, atol=1e-6, rtol=0, equal_nan=True)


@pytest.mark.parametrize("encoder", FAST)
def test_embeddings_that_replace_the_look_up_stay(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    batch = toy_batch(model, corpus)
    torch.manual_seed(0)
    reading = model.read(batch, embeddings=torch.randn(*batch.tokens.shape, 6))
    moved = assert_the_roads_meet(model, reading, ROAD[encoder])
    assert (moved - leave_one_out(model, model.read(batch)).change).nan_to_num().abs().max() > 1e-3


@pytest.mark.parametrize("encoder", ["bilstm", "bigru"])
def test_narrow_recurrences_take_the_same_road(encoder):
    """Torch's own kernels read these; the parameters are the same."""
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder, hidden=7)
    assert not model.encoder.takes_own_road(torch.device("cpu"))
    assert_the_roads_meet(model, read(model, corpus), "recurrent")


@pytest.mark.parametrize("labels", [3, 40])
def test_many_labels_are_carried_as_states(labels):
    """With as many labels as hidden units, values would take more room than the states they come from."""
    corpus = toy_corpus(labels=tuple(f"l{n}" for n in range(labels)), lengths=(5, 3) * 20)
    model = toy_model(corpus, encoder="bilstm", hidden=16)
    assert_the_roads_meet(model, read(model, corpus), "recurrent")


@pytest.mark.parametrize("encoder", [name for name in ENCODERS if not name.startswith("han-")])
def test_the_last_state_is_one_unit_and_one_unit_cannot_be_left_out(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder, attention=LAST_STATE)
    change = leave_one_out(model, read(model, corpus)).change
    assert change.shape == (len(LENGTHS), 1) and change.isnan().all()


def test_log_odds_attention_scores_words_wherever_they_stand():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="bilstm", attention=LOG_ODDS)
    model.attention.strengths.copy_(torch.linspace(0, 3, len(model.vocabulary)))
    assert_the_roads_meet(model, read(model, corpus), "recurrent")


def test_the_model_and_the_reading_are_left_as_found():
    for encoder, projection in itertools.product(ROAD, ("softmax", "stored")):
        if encoder.startswith("han-") and projection == "stored":
            continue
        corpus = toy_corpus()
        model = toy_model(corpus, encoder=encoder)
        model.guide, model.projection = guide_for(corpus.test), Projection.parse(projection)
        reading = read(model, corpus)
        before = {n: t.clone() for n, t in [*model.state_dict().items(), *tensors_of(reading)]}
        guide = model.guide
        leave_one_out(model, reading)
        leave_one_out(model, reading, road="whole")
        after = dict([*model.state_dict().items(), *tensors_of(reading)])
        assert model.guide is guide and all(torch.equal(after[name], before[name]) for name in before)


def tensors_of(reading):
    return [(n, t) for n, t in vars(reading).items() if isinstance(t, torch.Tensor)]


def test_a_road_that_does_not_fit_is_refused():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="transformer")
    with pytest.raises(Refusal, match="needs 'whole'"):
        leave_one_out(model, read(model, corpus), road="recurrent")
    model = toy_model(corpus, encoder="cnn")
    with pytest.raises(Refusal, match="'convolutional' or 'whole'"):
        leave_one_out(model, read(model, corpus), road="hwole")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("encoder", ROAD)
def test_a_gpu_finds_the_same(encoder):
    corpus = toy_corpus()
    model = toy_model(corpus, encoder=encoder)
    expected = leave_one_out(model, read(model, corpus)).change
    model = model.cuda()
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus).to("cuda"))
    for road in (None, "whole"):
        found = leave_one_out(model, reading, road=road).change.cpu()
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0, equal_nan=True)
