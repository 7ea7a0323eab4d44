"""Transformers with weights set by hand do what their rule, written in numpy, says."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from attentest.auditing.run import audited
from attentest.corpus.generators.planted_reviews import ReviewSettings, review_documents
from attentest.corpus.generators.review_lexicon import GRADES
from attentest.corpus.generators.review_rule import LABELS
from attentest.corpus.preparation import Preparation, prepare
from attentest.evidence.importances.gradient import gradients
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal

pytest.importorskip("transformers", reason="needs the extra `hf`")

from attentest.constructed.causal import construct_causal
from attentest.constructed.transformer import (
    LEAK,
    SPECIAL,
    construct_transformer,
    word_tokenizer,
)
from attentest.constructed.transformer_rule import MECHANISMS, TransformerRule
from attentest.foreign.causal import NextToken

pytestmark = pytest.mark.usefixtures("short_search")

CLOSE = 1e-4
NAMES = sorted(MECHANISMS)
USED = [name for name in NAMES if "used" in name]
IDLE = [name for name in NAMES if "idle" in name]


@cache
def corpus(classes):
    settings = ReviewSettings(classes=classes, train=200, dev=20, test=60)
    return prepare("reviews", review_documents(settings), Preparation(lower=True), labels=LABELS[classes])


def texts(classes=2, count=30):
    return corpus(classes).test[:count]


@cache
def words(classes=2):
    return tuple(sorted({w for part in corpus(classes).splits().values() for e in part for w in e.tokens}))


def arguments(name, classes=2, **changed):
    """Graded cues; attention follows their size, or by random numbers of each word."""
    known = words(classes)
    values = {word: grade / 4 for word, grade in GRADES.items() if word in known}
    ranks = {word: abs(value) for word, value in values.items()}
    if name.endswith("elsewhere"):
        ranks = dict(zip(known, np.random.default_rng(5).uniform(0, 1, len(known)).tolist(), strict=True))
    strength = 3.0 if MECHANISMS[name] == "used" else 30.0
    given = {"values": values, "ranks": ranks, "strength": strength, "temperature": 0.25}
    return (name, known, LABELS[classes]), {**given, "noise": 0.0, "seed": 0, **changed}


def made(places, keywords):
    rule = TransformerRule.of(*places, **keywords)
    construct = construct_causal if places[0].startswith("causal-") else construct_transformer
    return construct(rule, places[2]), rule


@cache
def built(name, classes=2, **changed):
    return made(*arguments(name, classes, **changed))


def read(model, examples):
    split = model.split(examples)
    with torch.no_grad():
        return model.read(split.batch(range(len(split))))


def answers(model, reading, weights=None):
    """Probabilities of classes; `weights` is (text, word)."""
    given = None if weights is None else torch.tensor(weights, dtype=torch.float32)[:, None]
    with torch.no_grad():
        return distribution(model.decide(reading, given)).numpy()


def padded(examples, of_text):
    found = np.zeros((len(examples), max(len(example.tokens) for example in examples)))
    for row, example in enumerate(examples):
        found[row, : len(example.tokens)] = of_text(example.tokens)
    return found


def uniform(tokens):
    return np.full(len(tokens), 1 / len(tokens))


def one_hot(place):
    return lambda tokens: np.eye(len(tokens))[place % len(tokens)]


def outputs(rule, examples, of_text=None):
    return np.stack([rule.output(e.tokens, of_text and of_text(e.tokens)) for e in examples])


@pytest.mark.parametrize("classes", [2, 5])
def test_the_tokenizer_has_one_token_for_each_word_of_a_review(classes):
    tokenizer = word_tokenizer(words(classes))
    for part in corpus(classes).splits().values():
        for example in part:
            found = tokenizer.tokenize(example.text)
            assert tuple(found) == example.tokens and not set(found) & set(SPECIAL)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("name", NAMES)
def test_the_model_is_its_rule_under_any_weights(name, classes):
    model, rule = built(name, classes)
    examples = texts(classes)
    reading = read(model, examples)
    np.testing.assert_allclose(reading.weights[:, 0], padded(examples, rule.weights), atol=CLOSE)
    np.testing.assert_allclose(answers(model, reading), outputs(rule, examples), atol=CLOSE)
    for weights in (uniform, one_hot(0), one_hot(17), one_hot(-1)):
        given = answers(model, reading, padded(examples, weights))
        np.testing.assert_allclose(given, outputs(rule, examples, weights), atol=CLOSE)


@pytest.mark.parametrize("name", NAMES)
def test_the_model_runs_in_single_precision_by_its_fastest_road(name):
    model, _ = built(name)
    assert model.road.name == "row" and not model.transformer.training
    assert {p.dtype for p in model.transformer.parameters()} == {torch.float32}


@pytest.mark.parametrize("temperature", [0.02, 0.25, 100.0])
@pytest.mark.parametrize("name", NAMES)
def test_special_tokens_have_almost_nothing_of_the_deciding_row(name, temperature):
    model, _ = built(name, temperature=temperature)
    reading = read(model, texts())
    elsewhere = (reading.kept["row"] * (reading.kept["unit"] < 0)[:, None]).sum(-1)
    assert float(elsewhere.max()) < 1e-4


@pytest.mark.parametrize("name", NAMES)
def test_noise_and_temperature_change_the_model_as_they_change_the_rule(name):
    model, rule = built(name, noise=0.5, seed=3, temperature=0.5, strength=2.0)
    examples = texts()
    reading = read(model, examples)
    weights = padded(examples, rule.weights)
    np.testing.assert_allclose(reading.weights[:, 0], weights, atol=CLOSE)
    np.testing.assert_allclose(answers(model, reading), outputs(rule, examples), atol=CLOSE)
    for other in (built(name), built(name, noise=0.5, seed=4, temperature=0.5, strength=2.0)):
        assert np.abs(padded(examples, other[1].weights) - weights).max() > 0.01


def test_uniform_ranks_give_uniform_attention():
    model, rule = made(*arguments("hf-used-elsewhere", ranks={}, values={}))
    reading = read(model, texts())
    np.testing.assert_allclose(reading.weights[:, 0], padded(texts(), uniform), atol=CLOSE)
    np.testing.assert_allclose(answers(model, reading), 0.5, atol=CLOSE)
    assert not rule.contributions(texts()[0].tokens).any()


@pytest.mark.parametrize("name", IDLE)
def test_an_idle_model_answers_the_same_whatever_its_weights(name):
    model, _ = built(name)
    reading = read(model, texts())
    own = answers(model, reading)
    assert np.ptp(own[:, 0]) > 0.3
    for place in range(0, 40, 5):
        given = answers(model, reading, padded(texts(), one_hot(place)))
        np.testing.assert_allclose(given, own, atol=LEAK)


@pytest.mark.parametrize("name", USED)
def test_a_used_model_follows_all_weight_on_a_cue(name):
    model, _ = built(name)
    reading = read(model, texts())
    cues = [next(n for n, word in enumerate(e.tokens) if GRADES.get(word)) for e in texts()]
    given = np.eye(reading.mask.shape[1])[cues]
    found = answers(model, reading, given)
    for row, (example, place) in enumerate(zip(texts(), cues, strict=True)):
        positive = GRADES[example.tokens[place]] > 0
        assert found[row, int(positive)] > 0.9
    moved = np.abs(found - answers(model, reading)).sum(1) / 2
    assert moved.mean() > 0.2


@pytest.mark.parametrize("name", NAMES)
def test_other_words_without_evidence_and_another_order_change_nothing(name):
    same_rank = {"ranks": dict.fromkeys(words(), 1.0)} if name.endswith("elsewhere") else {}
    model, _ = made(*arguments(name, **same_rank))
    own = answers(model, read(model, texts()))
    idle = [word for word in words() if word not in GRADES]
    rng = np.random.default_rng(1)

    def changed(tokens):
        drawn = [word if word in GRADES else str(rng.choice(idle)) for word in tokens]
        return tuple(rng.permutation(drawn).tolist())

    others = [replace(e, tokens=changed(e.tokens), text=None, rationale=None) for e in texts()]
    np.testing.assert_allclose(answers(model, read(model, others)), own, atol=CLOSE)
    turned = {word: other for word, other in zip(GRADES, reversed(GRADES), strict=True)}
    others = [
        replace(e, tokens=tuple(turned.get(w, w) for w in e.tokens), text=None, rationale=None)
        for e in texts()
    ]
    assert np.abs(answers(model, read(model, others)) - own).mean() > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_contributions_are_what_the_evidence_loses_with_the_value_of_a_word(name):
    _, rule = built(name)
    for example in texts()[:10]:
        tokens, found = example.tokens, rule.contributions(example.tokens)
        for place in (n for n, word in enumerate(tokens) if word in GRADES):
            without = replace(rule, values={**rule.values, tokens[place]: 0.0})
            places = [n for n, word in enumerate(tokens) if word == tokens[place]]
            lost = evidence(rule, tokens) - evidence(without, tokens)
            assert abs(lost) == pytest.approx(found[places].sum(), rel=5e-3)
        assert not found[[n for n, word in enumerate(tokens) if word not in GRADES]].any()


def evidence(rule, tokens):
    """Read back from the probabilities of two classes: their log-odds are 4 * strength * evidence."""
    negative, positive = rule.output(tokens)
    return np.log(positive / negative) / (4 * rule.strength)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_the_rule(name):
    """Gradient x input, with attention held, is in proportion to the contributions."""
    model, rule = made(*arguments(name, strength=0.5))
    split = model.split(texts())
    found = gradients(model, split.batch(range(len(split)))).times_input.numpy()
    wanted = padded(texts(), rule.contributions)
    slope = found.sum(1, keepdims=True) / wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(found, slope * wanted, rtol=0.01, atol=1e-4 * found.max())
    if name.endswith("pointer"):
        assert not found[wanted == 0].any()


def test_words_of_one_rank_have_exactly_one_weight():
    reading = read(built("hf-used-pointer")[0], texts())
    for row, example in enumerate(texts()):
        idle = [n for n, word in enumerate(example.tokens) if word not in GRADES]
        assert len(set(reading.weights[row, 0, idle].tolist())) == 1


# The others take as long again, and nothing of an audit is different for them.
SLOW = {"hf-used-elsewhere", "hf-idle-pointer"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in NAMES])
def test_an_audit_runs_and_sees_whether_the_weights_are_used(name):
    audit = audited(built(name)[0], texts(), "quick")
    found = {f.measure: f.estimate for f in audit.findings if f.group == "overall"}
    assert {"importance", "permutation", "ablation", "adversary", "erasure"} <= set(audit.seconds)
    moved = found["median-output-change"]
    assert moved > 0.05 if name in USED else moved < CLOSE


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"temperature": 0.0}, "temperature above 0"),
        ({"temperature": 0.01}, "range of 100"),
        ({"strength": -1.0}, "strength -1.0"),
        ({"noise": -0.5}, "noise -0.5"),
        ({"values": {"nowhere": 1.0}}, "nowhere"),
        ({"ranks": {"The": 1.0}}, "lower-case"),
    ],
)
def test_impossible_numbers_are_refused(changed, said):
    places, keywords = arguments("hf-used-pointer", **changed)
    with pytest.raises(Refusal, match=said):
        made(places, keywords)


def test_unknown_names_and_single_labels_are_refused():
    (name, known, labels), keywords = arguments("hf-used-pointer")
    with pytest.raises(Refusal, match="hf-used"):
        made(("hf-used-nowhere", known, labels), keywords)
    with pytest.raises(Refusal, match="1 labels"):
        made((name, known, labels[:1]), keywords)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("causal")])
def test_what_comes_next_in_a_causal_construction_is_always_a_label(name):
    """So the probability of its likeliest next token is that of its likelier label."""
    model, _ = built(name)
    reading = read(model, texts())
    whole = NextToken(model.transformer.causal)
    with torch.no_grad():
        all_tokens = whole.next_logits(reading.kept["ids"], reading.kept["present"].long()).softmax(-1)
    np.testing.assert_allclose(all_tokens[:, model.transformer.tokens], answers(model, reading), atol=CLOSE)
