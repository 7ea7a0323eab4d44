"""Constructions have the truth that they claim: by their rule, and as networks."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attentest import load_corpus
from attentest.corpus.vocabulary import Vocabulary
from attentest.experiments.calibration.truth import truth_of
from attentest.model.batch import IndexedSplit
from attentest.model.config import ModelConfig
from attentest.model.constructions import CONSTRUCTIONS, DEPENDS, POINTS
from attentest.model.networks.decoder import distribution
from attentest.model.protocol import resolved
from attentest.model.training.building import build
from attentest.model.training.files import load, save
from attentest.model.training.provenance import parameters_digest
from attentest.refusal import Refusal
from tests.constructed_models import CORPUS, model_of

OURS = [name for name, of in CONSTRUCTIONS.items() if not of.foreign]
KNOBS = ["", ",strength=2", ",temperature=3", ",noise=0.5", ",strength=0.5,temperature=2,noise=1"]


@pytest.fixture(scope="module", params=[2, 5])
def corpus(request):
    return load_corpus(CORPUS.format("" if request.param == 2 else ",classes=5"))


@pytest.fixture(scope="module")
def two():
    return load_corpus(CORPUS.format(""))


def read(model, corpus, count=20):
    split = IndexedSplit(corpus.test, model.vocabulary, corpus.labels)
    with torch.no_grad():
        return split.tokens[:count], model.read(split.batch(np.arange(count)))


@pytest.mark.parametrize("name", OURS)
def test_the_network_is_the_rule(name, corpus):
    for knobs in KNOBS[:: 1 if name == "graded" else 4]:
        model, rule = model_of(corpus, f"constructed({name}{knobs})", seed=3)
        texts, reading = read(model, corpus)
        outputs = distribution(model.decide(reading)).detach().numpy()
        flat = reading.mask / reading.mask.sum(1, keepdim=True)
        uniform = distribution(model.decide(reading, flat)).detach().numpy()
        for row, text in enumerate(texts):
            even = np.full(len(text), 1 / len(text))
            assert np.allclose(reading.weights[row, : len(text)], rule.weights(text), atol=1e-5)
            assert np.allclose(outputs[row], rule.output(text), atol=2e-4)
            assert np.allclose(uniform[row], rule.output(text, even), atol=2e-4)


@pytest.mark.parametrize("name", CONSTRUCTIONS)
@pytest.mark.parametrize("seed", [0, pytest.param(7, marks=pytest.mark.slow)])
def test_the_labels_follow_from_the_rule(name, seed, two):
    of, (model, _) = CONSTRUCTIONS[name], model_of(two, f"constructed({name})", seed)
    truth = truth_of(model, two.test)
    assert (truth.points >= POINTS) == of.pointer and (of.pointer or truth.points < 0.65)
    assert (truth.depends >= DEPENDS) == of.mechanism and (of.mechanism or truth.depends < 1e-6)


@pytest.mark.parametrize("name", ["graded", "idle-running", "hf-idle-pointer", "causal-used-elsewhere"])
def test_a_construction_is_saved_and_loaded(name, two, tmp_path):
    model, _ = model_of(two, f"constructed({name},strength=2)", seed=5)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert parameters_digest(again.state_dict()) == parameters_digest(model.state_dict())
    assert again.origin.config == model.origin.config and type(again) is type(model)


@pytest.mark.parametrize("name", [name for name in OURS if not CONSTRUCTIONS[name].mechanism])
def test_idle_weights_move_nothing(name, two):
    model, _ = model_of(two, f"constructed({name})")
    _, reading = read(model, two)
    drawn = torch.rand(20, 50, reading.mask.shape[1]) ** 4 * reading.mask[:, None]
    given = drawn / drawn.sum(-1, keepdim=True)
    own = distribution(model.decide(reading))
    assert torch.allclose(
        distribution(model.decide(reading, given)), own[:, None].expand(-1, 50, -1), atol=1e-5
    )


@pytest.mark.parametrize("name", ["keyword", "graded", "several-cues", "idle-sum", "idle-blind", "least"])
def test_a_word_without_evidence_may_be_any_other(name, two):
    """What must not matter: another idle word in the same place. What must: a cue of the other sign."""
    model, rule = model_of(two, f"constructed({name})")
    idle = np.flatnonzero((rule.lexicon.values == 0) & ~rule.lexicon.reserved)
    against = {sign: np.flatnonzero(rule.lexicon.grades == 4 * sign)[0] for sign in (-1, 1)}
    for text in read(model, two)[0]:
        place = int(np.flatnonzero(rule.lexicon.values[text] == 0)[0])
        same, other = text.copy(), text.copy()
        same[place] = idle[idle != text[place]][0]
        strongest = rule.contributions(text).argmax()
        other[strongest] = against[-int(np.sign(rule.lexicon.values[text[strongest]])) or 1]
        assert np.allclose(rule.output(same), rule.output(text))
        assert np.abs(rule.output(other) - rule.output(text)).max() > 0.01


def test_quadrants_have_at_least_four_constructions_each():
    quadrants = [(of.pointer, of.mechanism) for of in CONSTRUCTIONS.values()]
    assert min(quadrants.count((p, m)) for p in (True, False) for m in (True, False)) >= 4


@pytest.mark.parametrize(
    "written",
    [
        "constructed(nobody)",
        "constructed(graded,colour=2)",
        "constructed(graded,strength=two)",
        "constructed(graded, strength=2)",
        "constructed(graded,strength=1)",
        "constructed(graded,noise=1,strength=2)",
        "constructed(graded,strength=-1)",
        "constructed(graded",
    ],
)
def test_what_is_no_construction_is_refused(written):
    with pytest.raises(Refusal):
        ModelConfig(encoder=written, attention="dot-unscaled")


def test_a_construction_is_not_trained_and_reads_its_own_scores(two):
    with pytest.raises(Refusal, match="dot-unscaled"):
        ModelConfig(encoder="constructed(graded)")
    config = ModelConfig(encoder="constructed(graded)", attention="dot-unscaled", epochs=3)
    with pytest.raises(Refusal, match="no training"):
        resolved(config, family="classification", classes=2, has_query=False)
    plain = resolved(replace(config, epochs=None), family="classification", classes=2, has_query=False)
    bare = replace(two, train=two.train[:1])
    with pytest.raises(Refusal, match="graded words"):
        build(plain, bare, Vocabulary(("<pad>", "<unk>", "<start>", "<end>", "film")))
