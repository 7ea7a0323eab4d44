"""Hugging Face classifiers under audit: heads together, one head, pairs, and the untrained twin."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import attentest as at
from attentest.auditing.questions import BUDGETS, QUESTIONS, Auditing
from attentest.auditing.subject import audited_subject, on_the_bench, subject_of, untrained
from attentest.evidence.importances.gradient import gradients
from attentest.foreign.views import HeadsTogether
from attentest.refusal import Refusal
from tests.families import LABELS, made, tiny, tokenizer
from tests.outside_texts import texts

pytestmark = pytest.mark.usefixtures("short_search")


@pytest.mark.parametrize("family", ["bert", "bart", "llama", "xlnet"])
def test_the_mean_over_heads_gives_the_answer_back(family):
    inner, batch = made(family, double=True)
    together = HeadsTogether(inner)
    with torch.no_grad():
        reading = together.read(batch)
        own = inner.decide(inner.read(batch))
        torch.testing.assert_close(together.decide(reading), own)
        torch.testing.assert_close(together.decide(reading, reading.weights), own)
        torch.testing.assert_close(reading.weights.sum(1), torch.ones(len(batch), dtype=torch.float64))
        moved = together.decide(reading, reading.weights.flip(1) * reading.mask)
    assert not torch.allclose(moved, own, atol=1e-4)


def test_what_heads_are_given_has_the_mean_that_was_asked_for(monkeypatch):
    inner, batch = made("bert", double=True)
    together, seen = HeadsTogether(inner), []
    answer = type(inner).answer
    monkeypatch.setattr(type(inner), "answer", lambda *a, **k: (seen.append(a[2]), answer(*a, **k))[1])
    with torch.no_grad():
        reading = together.read(batch)
        asked = torch.rand(len(batch), 5, reading.mask.shape[1], dtype=torch.float64) * reading.mask[:, None]
        found = together.decide(reading, asked)
        torch.testing.assert_close(seen[0].mean(2), asked)
        for variant in range(5):
            torch.testing.assert_close(together.decide(reading, asked[:, variant]), found[:, variant])


def test_with_one_head_the_mean_is_the_head():
    model = tiny("bert", num_attention_heads=1).double()
    alone, batch = made("bert", model=model, head=0)
    together = on_the_bench(made("bert", model=model)[0])
    assert isinstance(together, HeadsTogether) and on_the_bench(alone) is alone
    with torch.no_grad():
        one, mean = alone.read(batch), together.read(batch)
        given = one.weights.flip(1) * one.mask
        torch.testing.assert_close(together.decide(mean, given), alone.decide(one, given))
    for wanted, found in ((gradients(m, batch, free=True) for m in (alone, together)),):
        torch.testing.assert_close(found.times_input, wanted.times_input)
        torch.testing.assert_close(found.norm_free, wanted.norm_free)


def test_the_untrained_twin_is_the_same_kind_of_model_drawn_anew():
    model, batch = made("bert", layer=1, words=False)
    twin = untrained(HeadsTogether(model))
    assert isinstance(twin, HeadsTogether) and twin.inner.layer == 1 and not twin.inner.words
    assert twin.labels == LABELS and twin.inner.transformer is not model.transformer
    assert not torch.allclose(twin.decide(twin.read(batch)), model.decide(model.read(batch)))
    again = untrained(HeadsTogether(model))
    assert torch.equal(twin.decide(twin.read(batch)), again.decide(again.read(batch)))


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (
            {},
            "bert: attention from the position that decides in layer 2 of 0 to 2, the mean over heads",
        ),
        ({"head": 1, "layer": 0, "words": False}, "in layer 0 of 0 to 2, head 1, over sub-words"),
    ],
)
def test_an_audit_names_the_attention_it_is_about(choice, said):
    words = made("bert", **choice)[0].capabilities.attention
    assert said in words and words.endswith("(this row only; words also reach the output past it)")


@pytest.mark.parametrize("pairs", [False, True])
def test_an_audit_of_a_transformer(pairs):
    settings = {"tokenizer": tokenizer("bert"), "labels": LABELS, "budget": "quick"}
    result = at.audit(tiny("bert"), texts(pairs=pairs), **settings)
    asked = {"performance", "importance", "agreement", "permutation", "ablation", "erasure", "adversary"}
    assert set(result.audit.seconds) == asked and "rationales" in result.left_out["plausibility"]
    overall = result.findings[result.findings["group"] == "overall"]
    found = dict(zip(overall["measure"], overall["estimate"], strict=True))
    assert 0 < found["median-output-change"] < 1 and found["emax-jsd-best@0.01"] > 0
    assert all(
        -1 <= found[name] <= 1 for name in ("leave-one-out", "integrated-gradients", "shapley", "lime")
    )
    assert np.isfinite(found["frozen-output-change"])
    assert all(-2 <= found[name] <= 2 for name in ("tau-gradient-excess", "tau-loo-excess"))
    assert not [name for name in result.left_out if name.startswith("importance")]


@pytest.mark.parametrize("name", ["removal", "dispersion", "information"])
def test_a_transformer_and_its_twin_answer_what_only_larger_budgets_ask(name):
    model = on_the_bench(made("bert")[0])
    asked = texts(60)
    trained = audited_subject(model, asked)
    both = trained, subject_of(untrained(model), trained.texts, "untrained")
    audit = Auditing(*both, replace(BUDGETS["quick"], without=()))
    rows = pd.DataFrame(QUESTIONS[name].observe(audit, np.random.default_rng(0))).assign(seed=0)
    found = QUESTIONS[name].conclude(rows, mode="corrected", rng=np.random.default_rng(1))
    measured = {(one.measure, one.group): one for one in found if one.n}
    wanted = {
        "removal": ("never-flips-attention", "unflippable", "at-optimum-attention"),
        "dispersion": ("entropy-influence", "tau-hidden-gradient", "tau-hidden-loo-excess"),
        "information": ("tau", "tau-p"),
    }
    assert all(np.isfinite(measured[measure, "overall"].estimate) for measure in wanted[name])
    assert "untrained" in {group for _, group in measured}


def test_bad_models_and_texts_are_refused():
    bert, own = tiny("bert"), tokenizer("bert")
    with pytest.raises(Refusal, match="no tokenizer"):
        at.audit(bert, texts())
    with pytest.raises(Refusal, match="a regression model"):
        at.audit(tiny("bert", num_labels=1), texts(), tokenizer=own)
    with pytest.raises(Refusal, match="ForTokenClassification"):
        at.audit(tiny("bert", head="ForTokenClassification"), texts(), tokenizer=own)
    with pytest.raises(Refusal, match="does not know"):
        at.audit(bert, texts(), tokenizer=own)
    with pytest.raises(Refusal, match="vectors"):
        at.audit(tiny("bert", vocab_size=10), texts(), tokenizer=own, labels=LABELS)
    with pytest.raises(Refusal, match="a model with 3"):
        at.audit(bert, texts(), tokenizer=own, labels=LABELS, attention={"layer": 7})
    long = [replace(one, tokens=one.tokens * 200) for one in texts(2)]
    with pytest.raises(Refusal, match="at most 512"):
        at.audit(bert, long, tokenizer=own, labels=LABELS)


def test_units_of_a_subject_are_the_models_own():
    model = on_the_bench(made("bert")[0])
    split = audited_subject(model, texts(4)).texts
    assert len(split) == 4 and split.sentences is not None
