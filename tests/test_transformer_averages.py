"""Models that average states: what attention receives is a map that is ranked, and no row that is given."""

import pytest
import torch

import attentest as at
from attentest.auditing.models import as_model
from attentest.refusal import Refusal
from tests.families import LABELS, examples, made, tiny, tokenizer


def averaging(**choice):
    return made("modernbert", model=tiny("modernbert", classifier_pooling="mean"), **choice)


def test_its_map_is_the_mean_of_each_column_over_the_positions_of_a_text():
    inner, batch = averaging()
    mapped = as_model(inner)
    with torch.no_grad():
        reading = mapped.read(batch)
        inner.transformer.set_attn_implementation("eager")
        laid = inner.laid(batch)
        inputs = {"input_ids": laid.ids, "attention_mask": laid.present.long()}
        maps = inner.transformer(**inputs, output_attentions=True).attentions[-1]
    for text in range(len(batch)):
        present, unit = laid.present[text], reading.kept["unit"][text]
        columns = maps[text].mean(0)[present].mean(0)
        wanted = torch.stack([columns[unit == n].sum() for n in range(int(reading.mask[text].sum()))])
        torch.testing.assert_close(reading.weights[text][reading.mask[text]], wanted / wanted.sum())
    assert "attention received" in mapped.capabilities.attention


def test_it_answers_as_ever_and_is_given_nothing_else():
    inner, batch = averaging()
    with torch.no_grad():
        laid = inner.laid(batch)
        own = inner.transformer(input_ids=laid.ids, attention_mask=laid.present.long()).logits
        reading = inner.read(batch)
        torch.testing.assert_close(inner.decide(reading), own, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(inner.decide(reading, reading.weights), own, atol=1e-5, rtol=1e-5)
        with pytest.raises(Refusal, match=r"every position's row has its share.*attention received"):
            inner.decide(reading, reading.weights.flip(-1))


def test_other_maps_of_it_and_this_map_of_others_are_refused():
    inner, _ = averaging()
    with pytest.raises(Refusal, match="attention 'rollout' of a model that averages"):
        as_model(inner, attention={"kind": "rollout"})
    with pytest.raises(Refusal, match="attention 'received'"):
        as_model(made("bert")[0], attention={"kind": "received"})


def test_an_audit_says_what_can_be_asked_of_it_and_what_cannot():
    model, words = tiny("modernbert", classifier_pooling="mean"), ("cat", "good", "film", "bad")
    texts = [(f"{' '.join(each.tokens)} {word}", each.label) for each in examples() for word in words]
    result = at.audit(model, texts, tokenizer=tokenizer("modernbert"), labels=LABELS, budget="quick")
    asked = set(result.findings["experiment"])
    assert {"importance", "agreement", "erasure"} <= asked and not asked & {"permutation", "adversary"}
    assert "averages its states" in result.left_out["permutation"]
