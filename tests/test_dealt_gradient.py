"""Gradients under weights dealt anew: what a weight's factor alone brings about, in any model."""

import numpy as np
import torch

from attentest.bench.auditing_subject import Audited, on_the_bench
from attentest.evidence.dealt_gradient import dealt_gradient
from attentest.evidence.gradient import gradients
from attentest.evidence.null_importance import null_gradient
from attentest.evidence.permutation import orders
from attentest.findings.comparison import kendall
from tests.families import WORDS, examples, made, seeded, tiny
from tests.test_elsewhere import twins


def test_weights_that_stay_where_they_are_have_the_gradients_of_jain_and_wallace():
    model = on_the_bench(made(double=True)[0])
    batch = Audited(model, examples()).texts.batch(np.arange(4))
    known = gradients(model, batch)
    stay = torch.arange(known.reading.mask.shape[1]).expand(4, 1, -1)
    assert torch.equal(dealt_gradient(model, batch, stay)[:, 0], known.times_input)


def test_without_context_it_is_the_exchange_of_sensitivities():
    """Two roads to one null: gradients of moved weights, and moved factors of the gradients there are."""
    subject = twins("no context")[1]
    batch = subject.texts.batch(np.arange(8))
    known = gradients(subject.model, batch)
    drawn = orders(known.reading.mask, 5, rng=seeded(3))
    asked = dealt_gradient(subject.model, batch, drawn)
    wanted = null_gradient(known.reading.weights, known.times_input, drawn)
    # Other weights give another probability, so all of a text's slopes change by one factor.
    shares = (asked / asked.sum(2, keepdim=True), wanted / wanted.sum(2, keepdim=True))
    assert torch.allclose(*shares, atol=1e-9) and not torch.allclose(asked, wanted)


def test_unlearnt_transformers_are_found_to_agree_no_more_than_by_chance():
    """Where a word also reaches the output past the weights, exchanged factors promise too much."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(12)]
    own, asked, exchanged = np.mean([taus_of_unlearnt(seed, texts) for seed in range(12)], axis=0)
    assert abs(own - asked) < 0.06 and exchanged - own > 0.15, (own, asked, exchanged)


def taus_of_unlearnt(seed, texts):
    random, draw = tiny(), seeded(seed)
    with torch.no_grad():
        for parameter in random.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3, generator=draw)
    model = on_the_bench(made(double=True, model=random)[0])
    batch = Audited(model, examples(texts=texts)).texts.batch(np.arange(len(texts)))
    known = gradients(model, batch)
    weights, drawn = known.reading.weights, orders(known.reading.mask, 4, rng=seeded(1))
    nulls = dealt_gradient(model, batch, drawn), null_gradient(weights, known.times_input, drawn)
    return [mean_tau(weights, values) for values in (known.times_input[:, None], *nulls)]


def mean_tau(weights, drawn):
    return np.mean(
        [kendall(w, one)[0] for w, many in zip(weights.numpy(), drawn, strict=True) for one in many.numpy()]
    )
