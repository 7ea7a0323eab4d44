"""The evidence of the papers on Hugging Face classifiers: permutation, search, gradients, leaving out."""

from dataclasses import replace

import pytest
import torch

from attentest.evidence.adversary.search import NOISE, PublishedSearch
from attentest.evidence.adversary.search_heads import search_heads
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.permutation import output_changes, permuted_logits, shared_orders
from attentest.model.divergence import attainable, jensen_shannon, total_variation
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from tests.families import examples, made, own_logits, tiny, tokenizer
from tests.toys import seeded


def test_one_order_permutes_all_heads():
    adopted, batch = made("bert", double=True)
    with torch.no_grad():
        reading = adopted.read(batch)
        found = permuted_logits(adopted, reading, 6, rng=seeded(3))
        for texts, order in shared_orders(reading.mask.sum(1), 6, rng=seeded(3)):
            for text in texts.tolist():
                for variant in range(6):
                    given = torch.zeros_like(reading.weights)
                    given[text, :, : len(order)] = reading.weights[text][:, order[:, variant]]
                    alone = adopted.decide(reading, given)[text]
                    torch.testing.assert_close(found[text, variant], alone)
    changes = output_changes(adopted, reading, 20, rng=seeded())
    assert changes.shape == (4, 20) and changes[1].max() > 1e-3 and changes[3].max() < 1e-12


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_the_published_search_runs_unchanged_on_one_head(family):
    adopted, batch = made(family, head=0)
    with torch.no_grad():
        reading = adopted.read(batch)
    found = PublishedSearch(steps=30, epsilons=(0.01, 0.2)).run(adopted, reading, rng=seeded())
    assert (found.best >= found.last - 1e-6).all() and (found.best[1] >= found.best[0]).all()
    assert found.best[1, 1] > 0.05, "an answer that hardly moves leaves attention free"
    with torch.no_grad():
        again = distribution(adopted.decide(reading, found.weights[1].float()))
        change = total_variation(again, distribution(adopted.decide(reading)))
    assert (change <= 0.2 + 1e-5).all()
    torch.testing.assert_close(jensen_shannon(found.weights[1], reading.weights.double()), found.best[1])


def test_a_search_moves_all_heads_and_stays_within_epsilon():
    adopted, batch = made("bert")
    with torch.no_grad():
        reading = adopted.read(batch)
    found = search_heads(PublishedSearch(steps=30, epsilons=(0.05, 0.2)), adopted, reading, rng=seeded())
    with torch.no_grad():
        own = distribution(adopted.decide(reading))
        for epsilon, weights, best in zip(found.epsilons, found.weights, found.best, strict=True):
            assert (
                total_variation(distribution(adopted.decide(reading, weights)), own) <= epsilon + 1e-6
            ).all()
            mean = weights.mean(1)
            torch.testing.assert_close(
                jensen_shannon(mean, reading.weights.mean(1)), best, atol=1e-5, rtol=1e-4
            )
            assert (best <= attainable(reading.weights.mean(1), reading.mask) + 1e-5).all()
    assert (found.best[1] >= found.best[0]).all() and found.best[1, 1] > 0.05 and found.best[1, 3] < 1e-6
    assert all(p.grad is None for p in adopted.parameters())


def test_with_one_head_both_searches_are_one(monkeypatch):
    model = tiny("bert", num_attention_heads=1).double()
    alone, batch = made("bert", model=model, head=0)
    together, _ = made("bert", model=model)
    with torch.no_grad():
        one, many = alone.read(batch), together.read(batch)
    # Large steps and a mild penalty: where a text ends depends on every term of the objective.
    search = PublishedSearch(steps=15, epsilons=(0.2, 1.0), learning_rate=0.2, penalty=2.0, optimised_at=0.02)
    drawn = torch.randn(int(one.mask.sum()), 5, generator=seeded())

    def same_start(reading, candidates, rng):
        scores = reading.weights.new_full((*reading.mask.shape, candidates), -1e4)
        scores[reading.mask] = NOISE * drawn.to(scores)
        return scores.permute(0, 2, 1)[:, :, None].contiguous()

    monkeypatch.setattr("attentest.evidence.adversary.search_heads._start", same_start)
    found, twin = search.run(alone, one, rng=seeded()), search_heads(search, together, many, rng=seeded())
    torch.testing.assert_close(found.last, twin.last, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.best, twin.best, atol=1e-5, rtol=1e-4)


def test_a_search_of_all_heads_needs_heads():
    adopted, batch = made("bert", head=0)
    with pytest.raises(Refusal, match="heads together"):
        search_heads(PublishedSearch(steps=1), adopted, adopted.read(batch), rng=seeded())


@pytest.mark.parametrize("family", ["bert", "bart", "gpt2", "xlnet"])
@pytest.mark.parametrize("choice", [{}, {"head": 0, "words": False}, {"layer": 0}])
def test_gradient_importance_is_the_models_own(family, choice):
    """Free attention: autograd of the library's forward pass with respect to its word vectors."""
    model = tiny(family).double()
    adopted, batch = made(family, model=model, **choice)
    found = gradients(adopted, batch, free=True)
    encoded, _ = own_logits(model, family)
    kept = []
    hooks = [
        table.register_forward_hook(lambda module, args, out: kept.append((args[0], out.requires_grad_())))
        for table in adopted.tables
    ]
    logits = model(**encoded).logits
    for hook in hooks:
        hook.remove()
    slopes = torch.autograd.grad(logits.softmax(-1).amax(-1).sum(), [vectors for _, vectors in kept])
    ids = encoded["input_ids"]
    for text, length in enumerate(batch.mask.sum(1).tolist()):
        begins = int((found.reading.kept["token"][text] == 0).nonzero()[0, 0])
        total = torch.zeros(length, slopes[0].shape[-1], dtype=torch.float64)
        for (asked, _), slope in zip(kept, slopes, strict=True):
            turned = slope.transpose(0, 1) if asked.shape != ids.shape or not _reads(asked, ids) else slope
            later = 0 if torch.equal(asked, ids) or torch.equal(asked, ids.T) else 1
            total += turned[text, begins + later : begins + later + length]
        norms = total.norm(dim=1)
        units = found.norm_free[text, : int(found.reading.mask[text].sum())]
        wanted = norms
        if adopted.words:
            wanted = torch.zeros_like(units).scatter_add(0, batch.sentences[text, :length], norms)
        torch.testing.assert_close(units, wanted)
    assert not found.norm_free.masked_fill(found.reading.mask, 0.0).any()


def _reads(asked, ids):
    return torch.equal(asked, ids) or torch.equal(asked[:, 1:], ids[:, :-1])


def test_held_attention_is_held_whole():
    """The derivative with attention held: finite differences of the answer under the same row."""
    adopted, batch = made("bert", double=True)
    found = gradients(adopted, batch)
    vectors, weights = adopted.embedding(batch.tokens).detach(), found.reading.weights
    rows = found.reading.kept["row"]
    for token in (0, 2):
        ends = []
        for sign in (1, -1):
            moved = vectors.clone()
            moved[0, token] *= 1 + sign * 1e-6
            with torch.no_grad():
                moved_reading = adopted.read(batch, embeddings=moved)
                reading = replace(moved_reading, kept={**moved_reading.kept, "row": rows})
                ends.append(distribution(adopted.decide(reading, weights))[0].amax())
        slope = float(ends[0] - ends[1]) / 2e-6
        assert abs(slope) == pytest.approx(float(found.times_input[0, token]), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("family", "pairs"), [("bert", False), ("bert", True), ("bart", False), ("llama", False), ("xlnet", True)]
)
def test_leaving_a_word_out_is_reading_the_text_without_it(family, pairs):
    adopted, batch = made(family, double=True, pairs=pairs)
    with torch.no_grad():
        reading = adopted.read(batch)
        found = leave_one_out(adopted, reading)
        own = distribution(adopted.decide(reading))
        for text, example in enumerate(examples(pairs=pairs)[:3]):
            second = [" ".join(example.query)] if pairs else []
            for left in range(len(example.tokens)):
                rest = " ".join(example.tokens[:left] + example.tokens[left + 1 :])
                encoded = tokenizer(family)(rest, *second, return_tensors="pt")
                change = total_variation(distribution(adopted.transformer(**encoded).logits)[0], own[text])
                assert float(found.change[text, left]) == pytest.approx(float(change), abs=1e-6)
    assert found.change[3, 0].isnan() and not found.change[2, 2:].any()
