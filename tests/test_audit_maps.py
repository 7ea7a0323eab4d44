"""Rollout, flow, value norms, gradient x attention under audit: what is asked of a map, and what is not."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import attentest as at
from attentest.auditing.map_rows import map_dispersion, map_importance
from attentest.auditing.models import as_model, load_model
from attentest.auditing.questions import BUDGETS, QUESTIONS, Auditing
from attentest.auditing.rankings import agreed, answering, erased, marked
from attentest.auditing.subject import audited_subject, on_the_bench, untrained
from attentest.claims.calibrated import UNKNOWN
from attentest.cli.main import run
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.sampled import Precision
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.importance.conclude import NUMBERS
from attentest.foreign import views as transformer_views
from attentest.foreign.maps import attention_map
from attentest.foreign.transformer import TransformerModel
from attentest.foreign.views import HeadsTogether, Mapped
from attentest.foreign.words import NAMES
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall
from tests.families import FAMILIES, LABELS, made, tiny, tokenizer
from tests.outside_texts import texts
from tests.planted_models import LABELS as TWO
from tests.planted_models import Planted, planted_texts
from tests.toys import seeded, toy_corpus, toy_model

pytestmark = pytest.mark.usefixtures("short_search")

SMALL = Precision(error=1.0, first=4, most=4, steps=3)
ASKED = {"performance", "importance", "agreement", "erasure"}
GIVEN = {"permutation", "ablation", "adversary", "removal"}


def mapped(kind, family="bert", **choice):
    inner, batch = made(family, double=True, **choice)
    return Mapped(inner, kind), batch


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_read_by_its_maps_and_answers_as_ever(family):
    inner, batch = made(family, double=True)
    shown = 0
    with torch.no_grad():
        own = inner.read(batch)
        for kind in NAMES:
            try:
                model = Mapped(inner, kind)
            except Refusal as refusal:
                assert f"{family} model" in str(refusal)
                continue
            reading, shown = model.read(batch), shown + 1
            assert torch.equal(reading.weights, attention_map(inner, batch, kind))
            torch.testing.assert_close(reading.weights.sum(1), torch.ones(len(batch), dtype=torch.float64))
            assert torch.equal(model.decide(reading), inner.decide(own))
            assert torch.equal(model.own(reading).weights, own.weights)
    assert shown == {"bart": 2, "t5": 2, "deberta-v2": 3, "xlnet": 3}.get(family, 4)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("head", [None, 1])
def test_no_map_can_be_given_to_the_model_not_even_its_own(kind, head):
    if head is not None and kind in ("rollout", "flow"):
        with pytest.raises(Refusal, match=f"{NAMES[kind][0]}: got the choice of head 1, but needs all heads"):
            mapped(kind, head=head)
        return
    model, batch = mapped(kind, head=head)
    with torch.no_grad():
        reading = model.read(batch)
        torch.testing.assert_close(model.decide(reading), model.inner.decide(model.inner.read(batch)))
        with pytest.raises(Refusal, match=f"{NAMES[kind][0]}.*needs weights that the model itself uses"):
            model.decide(reading, reading.weights)


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_parts_are_answered_by_the_transformer_itself(family):
    model, batch = mapped("rollout", family)
    with torch.no_grad():
        who, reading = answering(model, model.read(batch))
        assert who is model.inner
        wanted = leave_one_out(who, who.read(batch)).change
        torch.testing.assert_close(leave_one_out(who, reading).change, wanted, equal_nan=True)
        plain = who.read(batch)
        assert answering(who, plain) == (who, plain)


def test_a_batch_is_mapped_once_and_vectors_of_ones_own_every_time(monkeypatch):
    model, batch = mapped("flow")
    made_maps = []
    make = transformer_views.map_of
    monkeypatch.setattr(transformer_views, "map_of", lambda *a: (made_maps.append(1), make(*a))[1])
    first, again = model.read(batch), model.read(replace(batch, ids=tuple("wxyz")))
    assert torch.equal(first.weights, again.weights) and len(made_maps) == 1
    other = replace(batch, tokens=batch.tokens.flip(0), mask=batch.mask.flip(0))
    other = replace(other, sentences=batch.sentences.flip(0))
    assert not torch.equal(model.read(other).weights, first.weights) and len(made_maps) == 2
    vectors = model.embedding(batch.tokens)
    model.read(batch, embeddings=vectors)
    model.read(batch, embeddings=vectors)
    assert len(made_maps) == 4


def test_the_untrained_twin_is_read_by_the_same_map():
    model, batch = mapped("value-norm", layer=1)
    twin = untrained(model)
    assert isinstance(twin, Mapped) and (twin.kind, twin.inner.layer) == ("value-norm", 1)
    assert torch.equal(twin.read(batch).weights, attention_map(twin.inner, batch, "value-norm"))
    assert not torch.allclose(twin.read(batch).weights, model.read(batch).weights, atol=1e-3)


@pytest.fixture
def cheap(monkeypatch):
    """The budget `quick` with next to no draws."""
    monkeypatch.setitem(BUDGETS, "quick", replace(BUDGETS["quick"], draws=1, precision=SMALL))


@pytest.mark.parametrize("kind", ["rollout", "gradient"])
def test_an_audit_of_a_map_asks_for_rankings_and_says_why_nothing_else(kind, cheap):
    settings = {"tokenizer": tokenizer("bert"), "labels": LABELS, "budget": "quick"}
    result = at.audit(tiny("bert"), texts(), attention={"kind": kind}, **settings)
    assert set(result.audit.seconds) == ASKED and result.attention.startswith(f"bert: {NAMES[kind][0]} ")
    for name in GIVEN:
        assert NAMES[kind][0] in result.left_out[name] and "--attention row" in result.left_out[name]
    assert "'quick' leaves it out" in result.left_out["dispersion"]
    assert "the untrained control" not in result.left_out
    overall = result.findings[result.findings["group"] == "overall"]
    found = dict(zip(overall["measure"], overall["estimate"], strict=True))
    assert all(-1 <= found[name] <= 1 for name in ("tau-gradient", "tau-loo", "lime", "comprehensiveness"))
    assert "tau-gradient-excess" not in found
    (beyond,) = [name for name in result.left_out if name.startswith("importance: tau-gradient-excess and ")]
    assert "cannot be given to the model" in result.left_out[beyond]
    said = {one.criterion.name: one for one in result.criteria}
    for name in ("used", "unique"):
        assert said[name].verdict == "not applicable" and NAMES[kind][1] in said[name].sentence
    assert said["informative"].verdict == said["plausible"].verdict == "not measured"
    assert "'full' has it" in said["informative"].sentence and "rationales" in said["plausible"].sentence
    assert result.kind is None and said["necessary"].rates == UNKNOWN


@pytest.mark.parametrize("head", [None, 1])
def test_the_row_by_its_name_is_the_model_there_was(head):
    settings = {"tokenizer": tokenizer("bert"), "labels": LABELS}
    plain, named = (
        on_the_bench(as_model(tiny("bert"), attention={"head": head, **kind}, **settings))
        for kind in ({}, {"kind": "row"})
    )
    assert type(named) is type(plain) is (HeadsTogether if head is None else TransformerModel)
    batch = plain.split(texts(6)).batch(range(6))
    with torch.no_grad():
        one, other = plain.read(batch), named.read(batch)
        assert torch.equal(one.weights, other.weights)
        assert torch.equal(plain.decide(one, one.weights), named.decide(other, other.weights))


@pytest.mark.parametrize("kind", NAMES)
def test_rows_rank_by_the_map_and_nothing_else(kind):
    """Twins: each text alone, its map beside what the transformer itself says of its words."""
    inner = made("bert", double=True)[0]
    model, examples = Mapped(inner, kind), texts(6)
    subject = audited_subject(model, examples)
    importances = {row["id"]: row for row in map_importance(subject)}
    spreads = {row["id"]: row for row in map_dispersion(subject)}
    explained = {row["id"]: row for row in agreed(subject, SMALL, seeded())}
    for example in examples:
        batch = inner.split([example]).batch([0])
        weights = attention_map(inner, batch, kind)[0].detach().numpy()
        found = gradients(inner, batch, free=True)
        left = leave_one_out(inner, found.reading).change[0].numpy()
        row, spread = importances[example.id], spreads[example.id]
        assert set(NUMBERS) <= set(row) and set(dispersion.NUMBERS) <= set(spread)
        assert row["tau_gradient"] == pytest.approx(kendall(weights, found.times_input[0].numpy())[0])
        assert row["tau_loo"] == pytest.approx(kendall(weights, left)[0])
        free = kendall(weights, found.norm_free[0].numpy())[0]
        assert row["tau_norm_free"] == pytest.approx(free)
        assert spread["tau_inputs_gradient"] == row["tau_norm_free"]
        assert spread["tau_inputs_loo"] == row["tau_loo"]
        assert row["max_attention"] == pytest.approx(weights.max()) and spread["support"] == len(weights)
        assert explained[example.id]["leave-one-out"] == pytest.approx(row["tau_loo"])
        shares = weights[weights > 0]
        wanted = -(shares * np.log(shares)).sum() / np.log(len(weights))
        assert spread["entropy_attention"] == pytest.approx(wanted)
        unknown = [name for name in row if name.startswith(("swapped", "permuted", "traded"))]
        assert unknown and all(np.isnan(row[name]) for name in unknown)
        beneath = [name for name in spread if "hidden" in name or "influence" in name or "ed_tau" in name]
        assert beneath and all(np.isnan(spread[name]) for name in beneath)


def test_words_are_erased_in_the_order_of_the_map():
    """Twin: words are deleted from the example, and the rest is read as any other text."""
    inner = made("bert", double=True)[0]
    examples = texts(5)
    with torch.no_grad():
        for row in erased(audited_subject(Mapped(inner, "rollout"), examples), 2, seeded()):
            text = next(text for text in examples if text.id == row["id"])
            batch = inner.split([text]).batch([0])
            own = distribution(inner.decide(inner.read(batch)))[0]
            order = np.argsort(-attention_map(inner, batch, "rollout")[0].numpy(), kind="stable")
            lost = []
            for share in (1, 5, 10, 20, 50):
                kept = sorted(order[max(1, len(order) * share // 100) :])
                rest = replace(text, tokens=tuple(text.tokens[place] for place in kept))
                after = distribution(inner.decide(inner.read(inner.split([rest]).batch([0]))))[0]
                lost.append(float(own[own.argmax()] - after[own.argmax()]))
            assert row["comprehensiveness"] == pytest.approx(np.mean(lost), abs=1e-6)


def test_a_map_that_is_not_a_number_is_excluded_and_no_crash():
    model, _ = made("bert")
    model.transformer.classifier.weight.data.zero_()  # an answer that nothing moves
    examples = [replace(text, rationale=(0,)) for text in texts(4)]
    subject = audited_subject(Mapped(model, "gradient"), examples)
    auditing = Auditing(subject, None, BUDGETS["quick"])
    rows = [
        *agreed(subject, SMALL, seeded()),
        *erased(subject, 2, seeded()),
        *marked(subject, np.random.default_rng(0)),
        *map_importance(subject),
    ]
    measured = {"lime", "comprehensiveness", "auprc", "tau_loo"}
    assert len(rows) == 16 and all(np.isnan(row[name]) for row in rows for name in measured & set(row))
    assert list(QUESTIONS["performance"].observe(auditing, np.random.default_rng(0)))


def test_information_is_of_the_ranks_of_the_map():
    model, _ = made("bert")
    subject = audited_subject(Mapped(model, "rollout"), texts(70))
    asked = Auditing(subject, None, BUDGETS["full"])
    rows = list(QUESTIONS["information"].observe(asked, np.random.default_rng(0)))
    assert len(rows) == 70
    batch = subject.texts.batch(range(70))
    largest = attention_map(model, batch, "rollout").amax(1).tolist()
    assert [row["max_attention"] for row in rows] == pytest.approx(largest, rel=1e-4)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (
            {"kind": "row"},
            "bert: attention from the position that decides in layer 2 of 0 to 2, the mean over",
        ),
        (
            {"kind": "rollout"},
            "rollout from the deciding position's row in layer 2 of 0 to 2 down, the mean over",
        ),
        ({"kind": "flow", "layer": 1, "words": False}, "flow from the deciding position's row in layer 1"),
        ({"kind": "value-norm", "head": 1}, "length of the value in the deciding position's row in layer 2"),
        ({"kind": "value-norm", "head": 1}, "of 0 to 2, head 1, over words"),
        (
            {"kind": "gradient"},
            "attention x gradient in the deciding position's row in layer 2 of 0 to 2, the sum",
        ),
    ],
)
def test_an_audit_names_the_kind_it_is_about(choice, said):
    model = as_model(tiny("bert"), tokenizer=tokenizer("bert"), labels=LABELS, attention=choice)
    assert said in model.capabilities.attention
    kind = HeadsTogether if choice["kind"] == "row" else Mapped
    assert isinstance(on_the_bench(model), kind)


def test_a_model_that_was_adopted_can_still_be_mapped():
    inner = made("bert")[0]
    model = as_model(inner, attention={"kind": "rollout"})
    assert isinstance(model, Mapped) and model.inner is inner and as_model(model) is model
    with pytest.raises(Refusal, match="a choice of layer"):
        as_model(inner, attention={"kind": "rollout", "layer": 0})
    with pytest.raises(Refusal, match="the choice of head 1"):
        as_model(made("bert", head=1)[0], attention={"kind": "flow"})


def test_kinds_that_are_not_there_are_refused():
    bert = {"tokenizer": tokenizer("bert"), "labels": LABELS}
    with pytest.raises(Refusal, match=r"attention 'heat'.*row, rollout, flow, value-norm, gradient"):
        at.audit(tiny("bert"), texts(), attention={"kind": "heat"}, **bert)
    with pytest.raises(Refusal, match="the choice of head 0"):
        at.audit(tiny("bert"), texts(), attention={"kind": "rollout", "head": 0}, **bert)
    with pytest.raises(Refusal, match="t5 model: got two stacks"):
        settings = {"tokenizer": tokenizer("t5"), "labels": LABELS, "attention": {"kind": "rollout"}}
        at.audit(tiny("t5"), texts(), **settings)
    with pytest.raises(Refusal, match=r"deberta-v2 model: got values that an edit by a hook does not see"):
        settings = {"tokenizer": tokenizer("deberta-v2"), "labels": LABELS}
        at.audit(tiny("deberta-v2"), texts(), attention={"kind": "value-norm"}, **settings)
    for model, more in ((Planted(honest=True), {"labels": TWO}), (toy_model(toy_corpus()), {})):
        with pytest.raises(Refusal, match=r"a choice of kind.*for Hugging Face models"):
            at.audit(model, planted_texts(4), attention={"kind": "rollout"}, **more)


def test_a_folder_is_mapped_from_the_command_line(tmp_path, monkeypatch, capsys, cheap):
    monkeypatch.chdir(tmp_path)
    model = tiny("bert")
    model.config.id2label = dict(enumerate(LABELS))
    model.save_pretrained("bert")
    tokenizer("bert").save_pretrained("bert")
    lines = [json.dumps({"text": " ".join(text.tokens), "label": text.label}) for text in texts(22)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    columns = ["--data", "texts.jsonl", "--text", "text", "--label", "label", "--budget", "quick"]
    assert run(["audit", "bert", *columns, "--attention", "rollout", "--out", "audit.md", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["attention"].startswith("bert: attention rollout from the deciding position's row")
    assert "attention rollout" in (tmp_path / "audit.md").read_text()
    assert run(["audit", "bert", *columns, "--attention", "rollout", "--head", "1"]) == 2
    assert "needs all heads" in capsys.readouterr().err
    assert run(["audit", "bert", *columns, "--attention", "heat"]) == 2
    assert "row, rollout, flow, value-norm, gradient" in capsys.readouterr().err
    assert isinstance(load_model("bert", attention={"kind": "gradient"}), Mapped)
