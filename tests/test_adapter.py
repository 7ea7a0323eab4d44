"""Any module through its adapter: the guide's own example, its evidence, and the proof that refuses."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attentest.evidence.adversary.search import PublishedSearch
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.permutation import output_changes
from attentest.foreign.adapter import AdaptedModel
from attentest.model.divergence import total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.toys import seeded, toy_corpus

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "your-model.md"


def example_of_the_guide():
    """Run what the guide shows, block by block; whatever it defines is there."""
    blocks = re.findall(r"```python adapter\n(.*?)```", GUIDE.read_text(), flags=re.S)
    torch.manual_seed(0)
    there = {}
    for block in blocks:
        exec(block, there)
    return there


@pytest.fixture
def guide():
    return example_of_the_guide()


def test_the_adapter_of_the_guide_has_about_ten_lines():
    (written,) = re.findall(r"(class Adapted.*?)```", GUIDE.read_text(), flags=re.S)
    assert len([line for line in written.splitlines() if line.strip()]) <= 12


def test_the_guide_runs_and_evidence_comes_out(guide):
    model = guide["model"]
    corpus = toy_corpus()
    split = model.split(corpus.test)
    batch = split.batch(range(len(split)))
    with torch.no_grad():
        reading = model.read(batch)
        logits = model.decide(reading)
        assert torch.equal(logits, guide["net"](batch.tokens, batch.mask))
        changes = output_changes(model, reading, 20, rng=seeded())
    assert changes.shape == (6, 20) and changes.max() > 1e-3 and changes[1].max() < 1e-6
    found = PublishedSearch(steps=30, epsilons=(0.2,)).run(model, reading, rng=seeded())
    assert found.best.max() > 0.01
    slopes = gradients(model, batch, free=True)
    assert slopes.times_input.shape == reading.mask.shape and slopes.norm_free.sum() > 0


def test_leaving_a_word_out_is_asking_about_the_rest(guide):
    model, text = guide["model"], toy_corpus().test[2]
    split = model.split([text])
    with torch.no_grad():
        reading = model.read(split.batch([0]))
        found = leave_one_out(model, reading).change[0]
        own = distribution(model.decide(reading))[0]
        for left in range(len(text.tokens)):
            rest = replace(text, tokens=text.tokens[:left] + text.tokens[left + 1 :])
            again = model.decide(model.read(model.split([rest]).batch([0])))
            change = total_variation(distribution(again)[0], own)
            assert float(found[left]) == pytest.approx(float(change), abs=1e-6)


def test_many_variants_are_answered_as_one_at_a_time(guide, monkeypatch):
    model = guide["model"]
    split = model.split(toy_corpus().test)
    with torch.no_grad():
        reading = model.read(split.batch(range(6)))
        given = torch.rand(6, 5, reading.mask.shape[1], generator=seeded())
        together = model.decide(reading, given)
        alone = torch.stack([model.decide(reading, given[:, n].contiguous()) for n in range(5)], dim=1)
        torch.testing.assert_close(together, alone)
        monkeypatch.setattr("attentest.foreign.adapter.FLOATS", 1)
        torch.testing.assert_close(model.decide(reading, given), together)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"decide": lambda self, states, weights: self.net.out(states.mean(1))}, "another answer|ignores"),
        (
            {
                "decide": lambda self, states, weights: self.net.out(states.mean(1)),
                "predict": lambda self, tokens, mask: self.net.out(
                    self.attend(self.embedding(tokens), mask)[0].mean(1)
                ),
            },
            "ignores the weights it is given",
        ),
        (
            {"predict": lambda self, tokens, mask: self.net(tokens, mask) + 1e-6},
            "another answer under its own weights.*bit for bit",
        ),
        (
            {
                "attend": lambda self, vectors, mask: (
                    self.net.encode(vectors),
                    torch.full(mask.shape, 1 / mask.shape[1]),
                )
            },
            "weight on padding",
        ),
        (
            {"attend": lambda self, vectors, mask: (self.net.encode(vectors), mask.float()[..., None])},
            r"attend of an adapter: got weights in the shape \(3, 6, 1\).*\(3, 6\)",
        ),
        (
            {"decide": lambda self, states, weights: weights.sum(1)},
            r"decide of an adapter: got logits in the shape",
        ),
    ],
)
def test_an_adapter_that_does_not_hold_is_refused(guide, broken, said):
    kind = type("Broken", (guide["Adapted"],), broken)
    with pytest.raises(Refusal, match=said):
        AdaptedModel(kind(guide["net"]), labels=("no", "yes"))


def test_one_logit_stands_for_two_labels(guide):
    guide["net"].out = torch.nn.Linear(8, 1)
    model = AdaptedModel(guide["Adapted"](guide["net"]), labels=("no", "yes"))
    split = model.split(toy_corpus().test)
    with torch.no_grad():
        assert distribution(model.decide(model.read(split.batch([0, 2])))).shape == (2, 2)
    assert model.outputs == 1
    with pytest.raises(Refusal, match="1 logits for 3 labels"):
        AdaptedModel(guide["Adapted"](guide["net"]), labels=("a", "b", "c"))


def test_labels_numbers_and_queries_are_checked(guide):
    adapted, model = guide["Adapted"](guide["net"]), guide["model"]
    with pytest.raises(Refusal, match="no numbers, attend, decide, predict"):
        AdaptedModel(guide["net"], labels=("no", "yes"))
    with pytest.raises(Refusal, match="2 logits for 3 labels"):
        AdaptedModel(adapted, labels=("a", "b", "c"))
    with pytest.raises(Refusal, match="a label that the model does not know"):
        model.split([replace(toy_corpus().test[0], label="maybe")])
    adapted.numbers = lambda words: [999] * len(words)
    with pytest.raises(Refusal, match="one integer a word, from 0 to"):
        AdaptedModel(adapted, labels=("no", "yes")).split(toy_corpus().test)
    batch = model.split(toy_corpus().test).batch([0])
    with pytest.raises(Refusal, match="single texts"):
        model.read(replace(batch, query=batch.tokens, query_mask=batch.mask))
