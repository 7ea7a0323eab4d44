"""The best layer or head is chosen by other texts than those that judge it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import attentest as at
from attentest.auditing.choosing import _taus, best_row, to_be_chosen
from attentest.auditing.models import as_model
from attentest.auditing.questions import BUDGETS
from attentest.cli.main import run
from attentest.evidence.importances.gradient import gradients
from attentest.foreign.loading import adopt
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall
from tests.families import LABELS, made, tiny, tokenizer
from tests.outside_texts import texts
from tests.planted_models import LABELS as TWO
from tests.planted_models import Planted, planted_texts
from tests.toys import toy_corpus, toy_model

HEADS, LAYERS = 2, 3  # of the tiny BERT


def one_by_one(model, layer, head, examples):
    """Twin: the row of a model of its own, each text alone, by scipy's tau."""
    own = adopt(model.transformer, model.tokenizer, labels=model.labels, layer=layer, head=head)
    split, taus = own.split(examples), []
    for row in range(len(examples)):
        found = gradients(own, split.batch([row]))
        weights = found.reading.weights[0]
        weights = weights if head is not None else weights.mean(0)
        taus.append(kendall(weights.numpy(), found.times_input[0].numpy())[0])
    return float(np.nanmean(taus))


@pytest.mark.parametrize(
    ("places", "candidates"),
    [
        (("head",), [(2, head) for head in range(HEADS)]),
        (("layer",), [(layer, None) for layer in range(LAYERS)]),
        (("layer", "head"), [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]),
    ],
)
def test_the_row_with_the_largest_tau_on_every_second_text_is_chosen(places, candidates):
    model, asked = made("bert", double=True)[0], texts(20)
    taus = {row: one_by_one(model, *row, asked[::2]) for row in candidates}
    best, others, chosen = best_row(model, places, asked, 500)
    assert (best.layer, best.head) == (chosen.layer, chosen.head) == max(taus, key=taus.get)
    assert chosen.tau == pytest.approx(max(taus.values())) and chosen.among == len(candidates)
    assert others == tuple(asked[1::2]) and chosen.texts == 10
    assert best.transformer is model.transformer and best.words == model.words


def test_a_head_that_was_named_is_compared_over_layers():
    model, asked = made("bert", double=True, head=1)[0], texts(16)
    taus = [one_by_one(model, layer, 1, asked[::2]) for layer in range(LAYERS)]
    best, _, chosen = best_row(model, ("layer",), asked, 500)
    assert (best.layer, best.head) == (int(np.argmax(taus)), 1) and chosen.among == LAYERS


def test_a_budget_bounds_the_texts_that_choose():
    _, others, chosen = best_row(made("bert")[0], ("head",), texts(24), 4)
    assert chosen.texts == 4 and len(others) == 12, "texts that were not needed to choose are not audited"


def test_an_audit_says_how_its_row_was_chosen(monkeypatch, tmp_path):
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], draws=1, permutations=5, searched=1))
    asked = texts(12)
    settings = {"tokenizer": tokenizer("bert"), "labels": LABELS, "budget": "quick"}
    result = at.audit(tiny("bert"), asked, attention={"head": "best", "layer": 1}, **settings)
    assert result.ids == tuple(text.id for text in asked[1::2]) and result.document["of"] == 6
    told = result.document["chosen"]
    assert told["layer"] == 1 and told["among"] == HEADS and told["texts"] == 6 and "gradient" in told["by"]
    assert f"in layer 1 of 0 to 2, head {told['head']}" in result.attention and result.kind == "transformer"
    assert "best of 2 rows" in told["sentence"] and "none of which is audited" in told["sentence"]
    for name in ("audit.html", "audit.md", "audit.json"):
        assert "none of which is audited" in result.save(tmp_path / name).read_text()


def test_the_command_line_chooses_too(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], draws=1, permutations=5, searched=1))
    monkeypatch.chdir(tmp_path)
    model = tiny("bert")
    model.config.id2label = dict(enumerate(LABELS))
    model.save_pretrained("bert")
    tokenizer("bert").save_pretrained("bert")
    lines = [json.dumps({"text": " ".join(text.tokens), "label": text.label}) for text in texts(12)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    asked = ["audit", "bert", "--data", "texts.jsonl", "--text", "text", "--label", "label"]
    asked += ["--budget", "quick"]
    assert run([*asked, "--layer", "best", "--head", "-1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["chosen"]["among"] == LAYERS and document["chosen"]["head"] == HEADS - 1
    assert document["ids"] == [f"row-{n}" for n in range(2, 13, 2)]
    assert run([*asked, "--head", "first"]) == 2
    assert "a number, or best" in capsys.readouterr().err
    assert run([*asked, "--layer", "best", "--attention", "rollout"]) == 2
    assert "the row of a Hugging Face model" in capsys.readouterr().err


def test_nothing_else_is_chosen_by_looking():
    for kind in ("rollout", "value-norm"):
        with pytest.raises(Refusal, match=f"best layer: got the kind '{kind}'"):
            to_be_chosen({"layer": "best", "kind": kind})
    assert to_be_chosen({"head": "best", "kind": "row", "words": False}) == (
        {"kind": "row", "words": False},
        ("head",),
    )
    assert to_be_chosen(None) == ({}, ())
    with pytest.raises(Refusal, match="one attention, or a map"):
        at.audit(Planted(honest=True), planted_texts(8), labels=TWO, attention={"head": "best"})
    with pytest.raises(Refusal, match="one attention, or a map"):
        at.audit(toy_model(toy_corpus()), toy_corpus(), attention={"layer": "best"})
    mapped = as_model(made("bert")[0], attention={"kind": "rollout"})
    with pytest.raises(Refusal, match="one attention, or a map"):
        best_row(mapped, ("head",), texts(), 500)
    with pytest.raises(Refusal, match="at least 2"):
        best_row(made("bert")[0], ("head",), texts(2), 500)


def test_weights_without_a_tau_are_chosen_last():
    """A head whose weights are all alike ranks nothing."""
    model = tiny("bert").double()
    own = model.bert.encoder.layer[2].attention.self
    own.key.weight.data[: own.attention_head_size] = 0.0
    own.key.bias.data[: own.attention_head_size] = 0.0
    adopted = made("bert", model=model, words=False)[0]
    assert math.isnan(_taus(adopted, texts(12))[0])
    best, _, chosen = best_row(adopted, ("head",), texts(12), 500)
    assert best.head == 1 and math.isfinite(chosen.tau)
