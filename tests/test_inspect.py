"""One text in one model: numbers are the studies' own, signs are right, and what is not there says why."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import torch

import attentest as at
from attentest.auditing.models import as_model
from attentest.evidence.adversary.strongest import strongest_adversary
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.names import IMPORTANCES
from attentest.evidence.permutation import medians, output_changes
from attentest.evidence.removal.decisions import overtaken, predicted, without
from attentest.evidence.removal.exhausted_flip import exhausted_flip, exhausted_sets
from attentest.evidence.removal.first_flip import first_flips
from attentest.foreign.loading import adopt
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.families import LABELS, made, tiny, tokenizer, transformers
from tests.planted_models import Planted, planted_texts
from tests.toys import seeded, toy_batch, toy_corpus, toy_model

TEXT = "The cat sat; a dog ran far."
QUICK = {"importances": ("gradient", "leave-one-out"), "nulls": 2, "permutations": 9, "steps": 5}
PLANTED = " ".join(planted_texts(2)[0].tokens)


@pytest.fixture(scope="module")
def bert():
    return tiny("bert")


def of_bert(bert, text="the unlikely film was not good", **more):
    return at.inspect(bert, text, tokenizer=tokenizer(), labels=LABELS, **(QUICK | more))


def probability_of(model, reading, best):
    return distribution(model.decide(reading))[0, best].detach()


def probabilities(model, batch, best):
    return distribution(model.decide(model.read(batch)))[:, best]


@pytest.mark.parametrize(("labels", "encoder"), [(("no", "yes"), "bilstm"), (("no", "so", "yes"), "average")])
def test_the_numbers_are_those_of_the_evidence(labels, encoder):
    corpus = toy_corpus(labels=labels)
    model = toy_model(corpus, encoder=encoder)
    words = tuple(corpus.test[2].tokens)
    view = at.inspect(model, " ".join(words), seed=3, **QUICK)
    batch = toy_batch(model, corpus, [2])
    found, reading = gradients(model, batch), model.read(batch).detached()
    whole = leave_one_out(model, reading, road="whole")
    own = strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, 0.01)
    changes = output_changes(model, reading, 9, rng=seeded(3001))
    assert view.tokens == view.words == words
    np.testing.assert_allclose(view.attention, reading.weights[0].detach(), rtol=1e-6)
    gradient, left_out = view.importances["gradient"], view.importances["leave-one-out"]
    np.testing.assert_allclose(gradient.magnitude, found.times_input[0], rtol=1e-5)
    np.testing.assert_allclose(np.abs(gradient.scores), found.times_input[0], rtol=1e-5)
    np.testing.assert_allclose(left_out.magnitude, whole.change[0], atol=1e-6)
    np.testing.assert_allclose(left_out.scores, whole.fall[0], atol=1e-6)
    assert view.adversary.divergence == pytest.approx(float(own.divergence[0]))
    assert view.adversary.exact is own.exact is (len(labels) == 2)
    np.testing.assert_allclose(view.permuted.changes, changes[0], atol=1e-6)
    assert view.permuted.median_change == pytest.approx(float(medians(changes)[0]))
    assert sum(view.prediction.probabilities.values()) == pytest.approx(1)
    assert view.prediction.label == max(view.prediction.probabilities, key=view.prediction.probabilities.get)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("labels", [("no", "yes"), ("no", "so", "yes")])
def test_signs_are_those_of_the_predicted_class(labels, flipped):
    """By hand: delete a word and read again; differentiate the probability of the predicted class."""
    corpus = toy_corpus(labels=labels)
    model = toy_model(corpus, encoder="bilstm").double()
    if flipped:
        with torch.no_grad():
            model.decoder.dense.weight.neg_()
            model.decoder.dense.bias.neg_()
    batch = toy_batch(model, corpus, [2])
    best = int(distribution(model.decide(model.read(batch)))[0].argmax())
    whole = probabilities(model, batch, best)
    vectors = model.embedding(batch.tokens).detach().requires_grad_()
    reading = model.read(batch, embeddings=vectors)
    likely = distribution(model.decide(reading, reading.weights.detach()))[0, best]
    (slope,) = torch.autograd.grad(likely, vectors)
    torch.testing.assert_close(gradients(model, batch).signed, (slope * vectors).sum(-1).detach())
    words = corpus.test[2].tokens
    expected = []
    for place in range(len(words)):
        rest = toy_corpus(labels=labels).test[2]
        short = model.split([at.Example(id="x", tokens=words[:place] + words[place + 1 :], label=rest.label)])
        expected.append(whole - probabilities(model, short.batch([0]), best))
    fall = leave_one_out(model, model.read(batch)).fall[0]
    torch.testing.assert_close(fall, torch.cat(expected).detach())
    assert (fall > 0).any() and (fall < 0).any()


def test_one_text_has_no_fall_where_nothing_would_be_left():
    corpus = toy_corpus(lengths=(1, 3))
    model = toy_model(corpus, encoder="average")
    fall = leave_one_out(model, model.read(toy_batch(model, corpus, [0, 1]))).fall
    assert fall[0, 0].isnan() and not fall[0, 1:].any() and fall[1].isfinite().all()


def test_integrated_gradients_say_how_much_of_their_promise_is_missing():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="bilstm").double()
    names = ("integrated-gradients", "shapley", "lime")
    view = at.inspect(model, " ".join(corpus.test[2].tokens), importances=names, nulls=0)
    batch = toy_batch(model, corpus, [2])
    reading = model.read(batch).detached()
    best = int(distribution(model.decide(reading))[0].argmax())
    zero = model.read(batch, embeddings=torch.zeros_like(reading.embeddings))
    start, end = (float(probability_of(model, each, best)) for each in (zero, reading))
    delta = view.importances["integrated-gradients"].convergence_delta
    assert delta == pytest.approx(view.importances["integrated-gradients"].scores.sum() - (end - start))
    assert 0 < abs(delta) < 1e-3 and abs(view.importances["shapley"].convergence_delta) < 1e-9
    assert view.importances["lime"].convergence_delta is None


def test_captum_draws_it():
    shown = pytest.importorskip("captum.attr._utils.visualization", reason="needs the extra `captum`")
    view = at.inspect(toy_model(toy_corpus()), TEXT, **QUICK)
    record = shown.VisualizationDataRecord(**view.captum("gradient"))
    assert record.raw_input_ids == list(view.tokens) and record.attr_class == view.prediction.label
    drawn = shown.format_word_importances(record.raw_input_ids, record.word_attributions)
    assert all(word in drawn for word in view.tokens)
    with pytest.raises(Refusal, match="gradient, leave-one-out"):
        view.captum("saliency")


def test_attention_that_decides_alone_agrees_beyond_permuted_attention():
    view = at.inspect(Planted(honest=True), PLANTED, labels=("bad", "good"), importances=("gradient",))
    said = view.importances["gradient"].agreement
    assert said.tau > said.null_high and said.recomputed
    deaf = at.inspect(Planted(honest=False), PLANTED, labels=("bad", "good"), importances=("lime",))
    said = deaf.importances["lime"].agreement
    assert said.null_low < 0 < said.null_high and abs(said.null) < 0.05 and not said.recomputed
    assert view.smallest_flip.words == ("bad10",) and view.smallest_flip.exact
    assert view.smallest_flip.label == "good" and view.smallest_flip.probability > 0.5


def smallest_by_hand(model, reading):
    """Every set, smallest first."""
    own, units = predicted(model.decide(reading)), reading.mask.shape[1]
    for size in range(1, units):
        for chosen in itertools.combinations(range(units), size):
            removed = torch.zeros(1, 1, units, dtype=torch.bool)
            removed[..., list(chosen)] = True
            if overtaken(model.decide(reading, without(reading.weights, removed)), own).any():
                return size
    return 0


def planted():
    model = as_model(Planted(honest=True), labels=("bad", "good"))
    short = [example for example in planted_texts(30) if len(example.tokens) < 10]
    return model, model.split(short).batch(range(len(short)))


@pytest.mark.parametrize("of", [planted, lambda: made(head=1)])
def test_the_smallest_set_is_one_that_flips_and_none_smaller_does(of):
    model, batch = of()
    reading = model.read(batch).detached()
    sizes, removed = exhausted_sets(model, reading)
    assert torch.equal(removed.sum(1).double(), sizes) and torch.equal(sizes, exhausted_flip(model, reading))
    flips = overtaken(
        model.decide(reading, without(reading.weights, removed[:, None])), predicted(model.decide(reading))
    )
    assert torch.equal(flips[:, 0], sizes > 0)
    singles, alone = exhausted_sets(model, reading, single=True)
    assert torch.equal(singles, sizes.where(sizes == 1, 0.0)) and torch.equal(alone.any(1), sizes == 1)
    if of is planted:
        assert (sizes == 1).any() and (sizes > 1).any()


@pytest.mark.parametrize("text", [" ".join(each.tokens) for each in planted_texts(8)])
def test_a_flip_that_is_called_exact_is(text):
    adapter = Planted(honest=True)
    view = at.inspect(adapter, text, labels=("bad", "good"), importances=(), permutations=2, steps=1)
    model = as_model(adapter, labels=("bad", "good"))
    found, wanted = view.smallest_flip, 0
    split = model.split([at.Example(id="x", tokens=tuple(text.split()), label="bad")])
    reading = model.read(split.batch([0])).detached()
    wanted = smallest_by_hand(model, reading) if found is None or found.count < 4 else found.count
    assert (found is None and "flips" in view.left_out["smallest_flip"]) or found.count >= wanted
    assert found is None or not found.exact or found.count == wanted


def test_heads_together_are_refused_where_one_distribution_is_asked_for():
    model, batch = made()
    reading = model.read(batch).detached()
    assert reading.weights.ndim == 3 and reading.values is None
    with pytest.raises(Refusal, match=r"not affine.*PublishedSearch"):
        strongest_adversary(reading.weights, reading.values, reading.bias, reading.mask, 0.01)
    with pytest.raises(Refusal, match="heads together"):
        exhausted_flip(model, reading)
    with pytest.raises(Refusal, match="heads together"):
        first_flips(model, reading, torch.zeros(len(batch), 1, 6, dtype=torch.long))


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "deberta-v2", "xlnet"])
def test_the_rows_of_all_heads_are_those_of_a_reading(family):
    model, batch = made(family)
    found = model.capabilities.every_row.rows(batch)
    assert found.shape[0] == model.layers
    for layer in range(model.layers):
        own = adopt(model.transformer, tokenizer(family), labels=LABELS, layer=layer).read(batch)
        torch.testing.assert_close(found[layer], own.weights.detach())


def test_a_search_that_found_nothing_says_so(bert):
    view = of_bert(bert, steps=1, epsilon=1e-6)
    assert view.adversary.divergence == pytest.approx(0, abs=1e-9)
    assert "the search found no other attention" in " ".join(repr(view).split())
    np.testing.assert_allclose(view.adversary.weights, view.attention, atol=1e-6)


def test_a_transformer_is_searched_and_says_so(bert):
    view = of_bert(bert, steps=200)
    assert not view.adversary.exact and view.adversary.null is None
    assert 0 < view.adversary.divergence <= view.adversary.bound
    assert view.adversary.output_change <= view.adversary.epsilon == 0.01
    assert view.adversary.weights.sum() == pytest.approx(1, abs=1e-5)
    assert view.heads.shape == (3, 2, 6) and view.place == (2, None)
    np.testing.assert_allclose(view.heads[2].mean(0), view.attention, atol=1e-6)


@pytest.mark.parametrize(
    ("choice", "units"),
    [
        ({"layer": 0, "head": 1}, 6),
        ({"words": False}, 8),
        ({"special_tokens": True}, 8),
        ({"kind": "rollout"}, 6),
    ],
)
def test_an_attention_may_be_chosen(bert, choice, units):
    view = of_bert(bert, attention=choice)
    assert len(view.tokens) == len(view.attention) == units
    if "kind" in choice:
        assert (
            "rollout" in view.attention_of and view.adversary is view.permuted is view.smallest_flip is None
        )
        assert "computed from several layers" in view.left_out["adversary"]
    else:
        assert set(view.left_out) <= {"smallest_flip"}
    assert view.place == (choice.get("layer", 2), choice.get("head"))
    assert all(len(one.scores) == units for one in view.importances.values())


def test_a_causal_language_model_is_asked_behind_a_prompt_and_at_the_next_token():
    model, words = tiny("gpt2", head="LMHeadModel"), "the film was not good"
    asked = {"tokenizer": tokenizer("gpt2"), **QUICK}
    behind = at.inspect(
        model, words, task="prompt", prompt="a cat {text} today", labels=" good, bad", **asked
    )
    assert set(behind.prediction.probabilities) == {"good", "bad"} and behind.tokens == tuple(words.split())
    assert behind.notes[0].startswith(
        "Task prompt: the answer is which of the labels ' good', ' bad' comes next"
    )
    assert "rests on the first token ('a'), where causal language models have" in behind.notes[-1]
    following = at.inspect(model, words, task="next-token", attention={"layer": 1}, **asked)
    assert following.heads.shape == (3, 2, 5) and following.place == (1, None)
    with torch.no_grad():
        read = asked["tokenizer"]
        likeliest = model(**read(words, return_tensors="pt")).logits[0, -1].argmax()
    assert f"The token that is asked about is {read.decode([int(likeliest)])!r}." in following.notes
    np.testing.assert_allclose(following.heads[1].mean(0), following.attention, atol=1e-6)


def test_a_second_text_and_a_folder_and_a_pipeline(bert, tmp_path):
    with_second = of_bert(bert, query="a dog")
    assert with_second.query == "a dog" and with_second.settings["epsilon"] == 0.05
    assert with_second.prediction.probability != of_bert(bert).prediction.probability
    bert.save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    from_folder = at.inspect(tmp_path, "the unlikely film was not good", labels=LABELS, **QUICK)
    np.testing.assert_allclose(from_folder.attention, of_bert(bert).attention, atol=1e-6)
    piped = transformers.pipeline("text-classification", model=bert, tokenizer=tokenizer())
    from_pipeline = at.inspect(piped, "the unlikely film was not good", labels=LABELS, **QUICK)
    assert from_pipeline.to_dict() == {**of_bert(bert).to_dict(), "model": from_pipeline.model}
    with pytest.raises(Refusal, match="the query: got none"):
        at.inspect(toy_model(toy_corpus(query=True)), TEXT)


@pytest.mark.parametrize(
    ("settings", "units", "said"),
    [
        ({"encoder": "han-bigru"}, 1, "sentences"),
        ({"encoder": "bilstm", "attention": "last-state"}, 1, "last state"),
        ({"encoder": "average", "decoder": "two-layer"}, 7, ""),
    ],
)
def test_models_of_our_own_of_every_kind(settings, units, said):
    query = "two-layer" in settings.values()
    view = at.inspect(
        toy_model(toy_corpus(query=query), **settings),
        "the cat sat a dog ran far",
        query="a cat" if query else None,
        **QUICK,
    )
    assert len(view.tokens) == units and any(said in note for note in view.notes) is bool(said)
    if units == 1:
        assert view.adversary is None and "no choice" in view.left_out["adversary"]
    else:
        assert not view.adversary.exact and view.adversary.output_change <= 0.05 + 1e-6


def test_the_same_question_has_the_same_answer(bert):
    first, again, other = of_bert(bert), of_bert(bert), of_bert(bert, seed=1)
    assert first.to_json() == again.to_json() != other.to_json()


HOSTILE = '<script>alert(1)</script> \u202e "quoted" the cat & dog far ' + "x" * 300


def test_nothing_in_a_text_steers_a_terminal_or_a_page(tmp_path):
    view = at.inspect(toy_model(toy_corpus()), HOSTILE, name="<b>model</b>", **QUICK)
    assert all(len(line) <= 80 and "\u202e" not in line for line in repr(view).splitlines())
    page = view.save(tmp_path / "view.html").read_text()
    assert "<script" not in page and "<b>" not in page and "\u202e" not in page
    assert "&lt;" in page and "&lt;b&gt;model" in page and page.startswith("<!doctype html>")
    assert "<script" not in view._repr_html_()


def test_all_of_it_is_json(tmp_path):
    view = at.inspect(toy_model(toy_corpus(lengths=(1, 2))), "cat", **QUICK)
    document = json.loads(view.save(tmp_path / "view.json").read_text())
    assert document["importances"]["leave-one-out"]["scores"] == [None]
    assert math.isnan(view.importances["leave-one-out"].scores[0]) and "–" in repr(view)
    assert set(document) == {*view.to_dict()} and document["left_out"].keys() == {
        *("adversary", "permuted", "smallest_flip")
    }
    with pytest.raises(Refusal, match=r"\.html or \.json"):
        view.save(tmp_path / "view.pdf")


def test_of_a_long_text_the_units_that_weigh_most_are_printed():
    view = at.inspect(toy_model(toy_corpus(), encoder="average"), "cat dog " * 60, **QUICK)
    assert "40 of 120 are shown" in repr(view) and len(repr(view).splitlines()) < 80


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"text": ""}, "the text: got no words"),
        ({"text": ["a", "b"]}, "Many texts"),
        ({"text": "the cat", "query": " "}, "the query: got no words"),
        ({"text": "the cat", "importances": ("saliency",)}, "gradient, leave-one-out"),
        ({"text": "the cat", "epsilon": 2.0}, "epsilon=2.0"),
        ({"text": "the cat", "permutations": 0}, "permutations=0"),
        ({"text": "the cat", "attention": {"layer": "best"}}, "layer='best'"),
        ({"text": "the " * 600}, "too_long='truncate'"),
    ],
)
def test_what_cannot_be_asked_is_said(bert, asked, said):
    with pytest.raises(Refusal, match=said):
        of_bert(bert, **asked)


def test_a_text_that_is_too_long_is_cut_only_if_asked(bert):
    view = of_bert(bert, "the " * 600, too_long="truncate", importances=(), permutations=2, steps=1)
    assert len(view.tokens) == 510 and "longer than the 512 places" in view.notes[0]


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = (Path(__file__).parents[1] / "docs" / "guides" / "inspect.md").read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```python (inspect|captum)\n(.*?)```", guide, flags=re.S))
    here = {"model": toy_model(toy_corpus(), encoder="average")}
    exec(blocks["inspect"], here)
    assert (tmp_path / "view.html").exists()
    assert all(f'importances["{name}"]' in guide or f'["{name}"]' in guide for name in tuple(IMPORTANCES))
    documented = ("importances", "epsilon", "permutations", "nulls", "steps", "effort", "too_long", "seed")
    assert all(f"`{name}=" in guide for name in documented)
