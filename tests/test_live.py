"""A typed text gets from `Live` what the experiments would get from the same model, and never a crash."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import attentest as at
from attentest.corpus.document import Document
from attentest.corpus.example import Example
from attentest.corpus.preparation import Preparation, prepare_one
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.foreign.loading import adopt
from attentest.inspection import evidence as module
from attentest.live import answers
from attentest.live.answers import MODELS, PATIENCE, Live
from attentest.live.given import given_models
from attentest.live.session import LONGEST, READINGS, Typed, given_model
from attentest.model.batch import IndexedSplit
from attentest.model.divergence import jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.store.store import Store
from tests.families import LABELS, tiny, tiny_causal, tokenizer
from tests.serving import KINDS, TEXT, put_kind, put_model
from tests.toys import toy_corpus


def batch_of(model, text, query=None):
    document = Document(id="x", text=text, query=query, label=model.labels[0])
    example = prepare_one(document, Preparation())
    return IndexedSplit([example], model.vocabulary, model.labels).batch([0])


def question(key, text=TEXT, query=None, epsilon=None):
    return {"model": key, "text": text, "query": query, "epsilon": epsilon}


def same(numbers, tensor):
    expected = np.asarray(tensor.detach(), dtype=float)
    np.testing.assert_allclose(np.array(numbers, dtype=float), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_is_what_the_evidence_says(store, kind):
    key, model = put_kind(store, kind)
    query = "a cat" if "query" in KINDS[kind][0] else None
    said = Live(store).read(**question(key, query=query))
    found = gradients(model, batch_of(model, TEXT, query))
    with torch.no_grad():
        output = distribution(model.decide(found.reading))[0]
        same(said["probabilities"], output)
        same(said["weights"], found.reading.weights[0])
        same(said["gradient"], found.times_input[0])
        # The road that reads every shortened text from the beginning.
        same(said["leave_one_out"], leave_one_out(model, found.reading, road="whole").change[0])
    assert said["predicted"] == model.labels[int(output.argmax())]
    assert len(said["units"]) == len(said["known"]) == len(said["weights"])
    assert said["epsilon"] == (0.01 if query is None else 0.05)


@pytest.mark.parametrize("kind", ["bilstm", "three", "asked"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3])
def test_the_adversary_is_the_strongest(store, kind, epsilon):
    key, model = put_kind(store, kind)
    query = "a cat" if kind == "asked" else None
    said = Live(store).read(**question(key, query=query, epsilon=epsilon))
    with torch.no_grad():
        reading = model.read(batch_of(model, TEXT, query))
        found = strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, epsilon)
        adversary = said["adversary"]
        same(adversary["weights"], found.weights[0])
        own, other = (distribution(model.decide(reading, w))[0] for w in (None, found.weights.float()))
    assert adversary["divergence"] == pytest.approx(float(found.divergence[0]))
    assert adversary["exact"] is found.exact is (kind != "three")
    assert float(total_variation(own, other)) <= epsilon + 1e-5
    assert any("several classes" in note for note in said["notes"]) is (kind == "three")


def test_an_adversary_that_would_take_too_long_to_compute_is_searched_for(store, monkeypatch):
    key, _ = put_kind(store, "three")
    monkeypatch.setattr(module, "PROGRAMMES", 3**2 * 9 - 1)
    searched = Live(store).read(**question(key))["adversary"]
    monkeypatch.setattr(module, "PROGRAMMES", 3**2 * 9)
    solved = Live(store).read(**question(key))["adversary"]
    assert searched["divergence"] < searched["bound"] and solved["divergence"] > searched["divergence"]
    two, _ = put_kind(store, "average")
    monkeypatch.setattr(module, "PROGRAMMES", 0)
    assert Live(store).read(**question(two))["adversary"]["exact"], "two answers need no programme"


def test_a_decision_that_is_not_affine_has_a_searched_adversary(store):
    key, _ = put_kind(store, "two-layer")
    said = Live(store).read(**question(key, query="a cat"))
    assert said["adversary"]["exact"] is False and any("not affine" in note for note in said["notes"])
    assert said["adversary"]["output_change"] <= 0.05 + 1e-6


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("live") / "store")
    key, model = put_model(store, encoder="bilstm")
    with torch.no_grad():
        return Live(store), key, model, model.read(batch_of(model, TEXT))


@given(st.lists(st.floats(0, 1, width=32), min_size=9, max_size=9), st.booleans())
def test_the_decision_is_the_models_under_exactly_these_weights(asked, weights, renormalise):
    live, key, model, reading = asked
    if renormalise and not sum(weights) > 0:
        with pytest.raises(Refusal, match="all 0"):
            live.decide(model=key, text=TEXT, query=None, weights=weights, renormalise=True)
        return
    said = live.decide(model=key, text=TEXT, query=None, weights=weights, renormalise=renormalise)
    given = torch.tensor([weights], dtype=torch.float64)
    used = (given / given.sum() if renormalise else given).float()
    with torch.no_grad():
        own, other = (distribution(model.decide(reading, w)) for w in (None, used))
    same(said["probabilities"], other[0])
    same(said["weights"], used[0])
    assert said["mass"] == pytest.approx(float(used.double().sum()))
    assert said["output_change"] == pytest.approx(float(total_variation(own, other)[0]), abs=1e-6)
    if renormalise:
        far = float(jensen_shannon(used.double(), reading.weights.double())[0])
        assert said["divergence"] == pytest.approx(far, abs=1e-6)
    elif abs(said["mass"] - 1) > 1e-3:
        assert said["divergence"] is None


def test_under_its_own_weights_nothing_changes(asked):
    live, key, _, _ = asked
    said = live.read(**question(key))
    again = live.decide(model=key, text=TEXT, query=None, weights=said["weights"], renormalise=True)
    assert again["output_change"] == pytest.approx(0, abs=1e-6) and again["divergence"] == pytest.approx(
        0, abs=1e-9
    )
    assert again["predicted"] == said["predicted"]


def test_units_are_words_sentences_or_the_whole_text(store):
    text = "The cat sat. The dog ran home."
    words = Live(store).read(**question(put_kind(store, "bilstm")[0], text))
    assert words["units"] == ["the", "cat", "sat", ".", "the", "dog", "ran", "home", "."]
    assert words["known"] == [True, True, True, False, True, True, True, True, False]
    assert "2 of 9 words are unknown" in words["notes"][0]
    whole = Live(store).read(**question(put_kind(store, "last")[0], text))
    assert whole["units"] == ["the cat sat . the dog ran home ."] and whole["weights"] == [1.0]
    assert whole["adversary"] is None and whole["leave_one_out"] == [None]


def test_a_model_of_sentences_weighs_those_of_a_corpus_that_keeps_them(store):
    corpus = toy_corpus()
    corpus = type(corpus)(**{**vars(corpus), "preparation": {"keep_sentences": True, "words_version": 1}})
    key, _ = put_model(store, corpus, encoder="han-bigru")
    said = Live(store).read(**question(key, "The cat sat. The dog ran home."))
    assert said["units"] == ["the cat sat .", "the dog ran home ."] and len(said["weights"]) == 2
    assert any("sentences" in note for note in said["notes"])


def test_typed_texts_are_prepared_as_the_corpus_was_but_for_its_length(store):
    corpus = toy_corpus()
    prepared = {"digits": "qqq", "letters_only": True, "longer_than": 5, "shorter_than": 10}
    corpus = type(corpus)(**{**vars(corpus), "preparation": prepared})
    said = Live(store).read(**question(put_model(store, corpus, encoder="average")[0], "Cat 12, DOG!"))
    assert said["units"] == ["cat", "qqq", "dog"]


def test_without_the_corpus_a_text_is_still_read_and_that_is_said(store):
    key, _ = put_model(store, held=False, encoder="average")
    said = Live(store).read(**question(key))
    assert len(said["units"]) == 9 and any("does not hold the corpus" in note for note in said["notes"])


@pytest.mark.parametrize("kind", ["bilstm", "average", "asked"])
def test_one_word_and_unknown_words_are_answered_with_sentences(store, kind):
    key, _ = put_kind(store, kind)
    query = "zyx" if kind == "asked" else None
    said = Live(store).read(**question(key, "qwertz", query))
    assert said["known"] == [False] and said["weights"] == [1.0] and said["leave_one_out"] == [None]
    assert said["adversary"] is None and len(said["notes"]) == 3
    assert all(np.isfinite(said["probabilities"]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no words"),
        (" \n\t", "no words"),
        ("a " * 10_000, "10,000 words"),
        ("a " * (LONGEST + 1), "2,001"),
    ],
)
def test_texts_that_cannot_be_read_are_refused_in_a_sentence(store, text, says):
    key, _ = put_kind(store, "average")
    live = Live(store)
    with pytest.raises(Refusal, match=says):
        live.read(**question(key, text))
    with pytest.raises(Refusal, match=says):
        live.decide(model=key, text=text, query=None, weights=[1.0], renormalise=False)


def test_the_longest_text_is_read_without_what_would_take_too_long(store):
    text = " ".join(["cat", "dog"] * (LONGEST // 2))
    for kind, road in (("average", "token-wise"), ("bilstm", "recurrent"), ("transformer", "whole")):
        said = Live(store).read(**question(put_kind(store, kind)[0], text))
        assert (said["leave_one_out"] is None) is (PATIENCE[road] < LONGEST)
        assert any("Leave-one-out would read" in note for note in said["notes"]) is (PATIENCE[road] < LONGEST)


def test_a_query_is_asked_for_exactly_where_the_model_has_one(store):
    live = Live(store)
    for kind, query, says in (
        ("asked", None, "got none"),
        ("average", "why", "got one"),
        ("asked", " ", "no words"),
    ):
        with pytest.raises(Refusal, match=says):
            live.read(**question(put_kind(store, kind)[0], query=query))


@pytest.mark.parametrize("key", ["", "x", "0" * 64, "../" * 20 + "0000", "A" * 64])
def test_a_key_that_is_no_models_is_refused_before_it_becomes_a_path(store, key):
    put_kind(store, "average")
    with pytest.raises(Refusal, match="no such model"):
        Live(store).read(**question(key))


def test_another_number_of_weights_is_refused(store):
    key, _ = put_kind(store, "average")
    with pytest.raises(Refusal, match="3 weights for 9 units"):
        Live(store).decide(model=key, text=TEXT, query=None, weights=[0.1] * 3, renormalise=False)


def test_few_models_and_texts_are_kept(store):
    live = Live(store)
    keys = [put_model(store, encoder="average", seed=seed)[0] for seed in range(MODELS + 2)]
    for key in keys:
        live.read(**question(key))
    assert list(live._opened) == keys[-MODELS:]
    for n in range(READINGS + 3):
        live.read(**question(keys[-1], f"cat {n}"))
    kept = live._opened[keys[-1]].readings
    assert len(kept) == READINGS and Typed("cat 0") not in kept


def test_threads_may_ask_the_same_model(store):
    key, _ = put_kind(store, "bilstm")
    live, texts = Live(store), ["the cat sat", "a dog ran far home", "never today the cat"]
    alone = [Live(store).read(**question(key, text)) for text in texts]
    wrong = []

    def ask(n):
        said = live.read(**question(key, texts[n % 3]))
        expected = alone[n % 3]
        differs = [name for name in said if name != "seconds" and said[name] != expected[name]]
        wrong.extend(differs)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert all(parameter.requires_grad for parameter in live._opened[key].model.parameters())


def test_a_model_that_is_busy_for_long_is_said_to_be(store, monkeypatch):
    key, _ = put_kind(store, "average")
    live = Live(store)
    monkeypatch.setattr(answers, "WAIT", 0.01)
    with live._working(key), pytest.raises(Refusal, match="Ask again"):
        live.read(**question(key))
    assert live.read(**question(key))["units"], "and is free again afterwards"


def test_the_page_and_python_say_the_same(store):
    """One computation serves both: `at.inspect` of the same model and text."""
    key, model = put_kind(store, "bilstm")
    said = Live(store).read(**question(key), importances=["integrated-gradients"])
    names = ("gradient", "leave-one-out", "integrated-gradients")
    view = at.inspect(model, TEXT, importances=names, nulls=0)
    assert list(said["importances"]) == list(names) and said["heads"] is None is said["layer"]
    same(said["weights"], torch.from_numpy(view.attention))
    for name in names:
        same(said["importances"][name]["scores"], torch.from_numpy(view.importances[name].scores))
    assert said["permuted"]["median_change"] == pytest.approx(view.permuted.median_change)
    flip = said["smallest_flip"]
    assert (flip and flip["words"]) == (view.smallest_flip and list(view.smallest_flip.words))


def test_a_transformer_is_asked_about_any_layer_and_head(monkeypatch):
    monkeypatch.setattr(answers, "STEPS", 2)
    bench = adopt(tiny("bert"), tokenizer(), labels=LABELS)
    key = "a" * 64
    live = Live(Store("/nowhere"), {key: given_model(bench)})
    text = "the unlikely film was not good"
    said = live.read(**question(key, text))
    assert (len(said["heads"]), len(said["heads"][0]), len(said["heads"][0][0])) == (3, 2, 6)
    assert (said["layer"], said["head"]) == (2, None) and said["known"] == [True] * 6
    row = live.read(**question(key, text), layer=0, head=1)
    np.testing.assert_allclose(row["weights"], said["heads"][0][1], atol=1e-4)
    assert (row["layer"], row["head"]) == (0, 1) and "layer 0" in row["attention_of"]
    moved = live.decide(
        model=key, text=text, query=None, weights=[1 / 6] * 6, renormalise=True, layer=0, head=1
    )
    placed = bench.placed(0, 1)
    reading = placed.read(placed.split([Example(id="x", tokens=tuple(text.split()), label="a")]).batch([0]))
    same(moved["probabilities"], distribution(placed.decide(reading, torch.full((1, 6), 1 / 6)))[0])
    pair = live.read(**question(key, text, "a dog"))
    assert pair["epsilon"] == 0.05 and pair["probabilities"] != said["probabilities"]
    with pytest.raises(Refusal, match="layer 7"):
        live.read(**question(key, text), layer=7)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A tiny BERT and a tiny GPT-2, as the library saves them."""
    where = tmp_path_factory.mktemp("given")
    for name, model in (("bert", tiny("bert")), ("gpt2", tiny_causal("gpt2"))):
        model.save_pretrained(where / name)
        tokenizer(name).save_pretrained(where / name)
    return where


CHOSEN = (
    ("bert", "the film was not good", {"attention": {"kind": "rollout"}}),
    ("bert", "the film was not good", {"attention": {"layer": 0, "head": 1, "words": False}}),
    ("bert", "the film was not good", {"attention": {"special_tokens": True}}),
    ("bert", "The FILM was not good", {"lower": True}),
    ("gpt2", "the film was [ bad", {"task": "next-token", "mark": " ["}),
)


@pytest.mark.parametrize(("family", "text", "asked"), CHOSEN)
def test_a_served_model_reads_what_is_typed_as_inspect_does(folders, family, text, asked, monkeypatch):
    """Rows, maps, units, case and marks are said in the same words everywhere."""
    monkeypatch.setattr(answers, "STEPS", 2)
    models, about = given_models([str(folders / family)], **asked)
    said = Live(Store("/nowhere"), models).read(**question(about[0]["key"], text))
    quick = {"importances": ("gradient",), "permutations": 2, "nulls": 0, "steps": 2}
    view = at.inspect(folders / family, text, **quick, **asked)
    assert tuple(said["units"]) == view.tokens and said["attention_of"] == view.attention_of
    np.testing.assert_allclose(said["weights"], view.attention, atol=1e-6)
    assert said["probabilities"] == pytest.approx([*view.prediction.probabilities.values()])
    assert about[0]["takes_query"]


def test_a_model_with_one_attention_has_no_layer(store):
    with pytest.raises(Refusal, match="one attention"):
        Live(store).read(**question(put_kind(store, "average")[0]), layer=0)
