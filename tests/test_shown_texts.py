"""Which texts an audit shows, and what of them: against the erasure that orders them, done by hand."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import attentest as at
from attentest.auditing.run import audited
from attentest.auditing.shown_texts import borne_out, shown_texts
from attentest.auditing.subject import audited_subject, on_the_bench
from attentest.corpus.example import Example
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.foreign.adapter import AdaptedModel
from attentest.foreign.loading import adopt
from attentest.foreign.views import ranked_by
from attentest.model.networks.decoder import distribution
from attentest.statistics.comparison import kendall
from tests.families import LABELS as CLASSES
from tests.families import WORDS, tiny, tokenizer
from tests.planted_models import LABELS, Planted, planted_texts
from tests.toys import toy_corpus, toy_model

pytestmark = pytest.mark.usefixtures("short_search")


@pytest.fixture(scope="module")
def result():
    return at.audit(Planted(honest=True), planted_texts(12), labels=LABELS, budget="quick")


def test_the_ends_of_the_order_are_shown(result):
    shown, order = result.audit.shown, result.audit.borne_out
    assert len(order) == 12, "every text is long enough"
    values = sorted(order.values())
    assert [one.borne_out for one in shown.most] == values[::-1][:3]
    assert [one.borne_out for one in shown.least] == values[:3]
    assert len({one.id for one in (*shown.most, *shown.least)}) == 6
    for one in (*shown.most, *shown.least):
        assert order[one.id] == one.borne_out


def test_a_shown_text_is_the_model_asked_by_hand(result):
    """Twin: read alone, its weights, its answer and its leave-one-out."""
    texts, model = {text.id: text for text in planted_texts(12)}, AdaptedModel(Planted(honest=True), LABELS)
    for one in (*result.audit.shown.most, *result.audit.shown.least):
        reading = model.read(model.split([texts[one.id]]).batch([0]))
        weights = reading.weights[0].detach().numpy()
        answer = distribution(model.decide(reading))[0].detach()
        left = leave_one_out(model, reading).change[0].numpy()
        assert one.words == texts[one.id].tokens and one.label == texts[one.id].label
        assert one.predicted == LABELS[int(answer.argmax())]
        assert one.probability == pytest.approx(float(answer.max()), abs=1e-6)
        np.testing.assert_allclose(one.strips["attention"], weights / weights.sum(), atol=1e-4)
        np.testing.assert_allclose(one.strips["leave-one-out"], left / left.sum(), atol=1e-4)
        assert one.tau == pytest.approx(kendall(weights, left)[0], abs=0.06)
        assert all(sum(strip) == pytest.approx(1, abs=1e-2) for strip in one.strips.values())


def test_what_orders_texts_is_beyond_random_words_and_of_long_texts_only():
    rows = pd.DataFrame(
        [
            {
                "subject": who,
                "id": f"t{n}",
                "length": n,
                "comprehensiveness": 0.1 * n,
                "null_comprehensiveness": null,
            }
            for who, null in (("trained", 0.05), ("untrained", 0.0))
            for n in range(2, 7)
        ]
    )
    rows.loc[rows["id"] == "t6", "comprehensiveness"] = np.nan
    assert borne_out(rows) == pytest.approx({"t4": 0.35, "t5": 0.45})


def test_without_order_nothing_is_shown_and_the_page_says_why(result):
    subject = audited_subject(on_the_bench(AdaptedModel(Planted(honest=True), LABELS)), planted_texts(4))
    none = shown_texts(subject, {"t0": 0.2}).document(with_text=True)
    assert (
        not none["most"]
        and not none["measure"]
        and "nothing to order texts by" in none["why"].replace("\n", " ")
    )
    assert not audited(subject.model, planted_texts(6), "quick", questions=("erasure",)).shown.most, (
        "unless asked"
    )


def test_texts_stay_out_if_that_is_asked(tmp_path, result):
    bare = replace(result, include_text=False)
    word = result.audit.shown.most[0].words[0]
    files = {ending: bare.save(tmp_path / f"audit.{ending}").read_text() for ending in ("html", "md", "json")}
    assert "The texts were left out" in files["html"] and 'class="strip"' not in files["html"]
    assert not any(f">{word}<" in text or f'"{word}"' in text for text in files.values())
    examples = json.loads(files["json"])["examples"]
    assert [len(one["words"]) for one in examples["most"]] == [0, 0, 0] and examples["most"][0]["id"]
    assert word in result.save(tmp_path / "with.html").read_text()


def sentences(count):
    rng = np.random.default_rng(0)
    return [
        Example(id=str(n), tokens=tuple(rng.choice(WORDS, size=rng.integers(5, 9))), label=CLASSES[n % 3])
        for n in range(count)
    ]


@pytest.mark.parametrize("kind", ["row", "rollout"])
def test_a_transformer_shows_the_attention_that_is_audited(kind):
    model = on_the_bench(ranked_by(adopt(tiny("bert"), tokenizer("bert"), labels=CLASSES), kind))
    one = audited(model, sentences(8), "quick", questions=("erasure",), show=True).shown.most[0]
    text = next(text for text in sentences(8) if text.id == one.id)
    subject = on_the_bench(adopt(tiny("bert"), tokenizer("bert"), labels=CLASSES))
    own = subject.read(subject.split([text]).batch([0])).weights[0].detach().numpy()
    assert one.words == text.tokens and len(one.strips["attention"]) == len(text.tokens)
    assert np.allclose(one.strips["attention"], own / own.sum(), atol=1e-3) == (kind == "row")


def test_a_unit_that_is_a_sentence_shows_its_words():
    corpus = toy_corpus(lengths=(6, 7, 8, 9))
    model = toy_model(corpus, encoder="han-bigru")
    texts = [
        Example(id=str(n), tokens=text.tokens, label=text.label, sentences=(0, 2, 3, 5))
        for n, text in enumerate(corpus.test)
    ]
    subject = audited_subject(on_the_bench(model), texts)
    with torch.no_grad():
        count = int(model.read(subject.texts.batch([0])).mask.sum())
    one = shown_texts(subject, {"0": 0.3, "1": 0.1}).most[0]
    assert len(one.words) == count == len(one.strips["attention"]) == 4
    assert " ".join(one.words) == " ".join(texts[0].tokens)
