"""Explainers beside Captum's, where that is installed: another hand, the same numbers."""

import itertools

import pytest
import torch

from attentest.evidence.explainers_lime import WIDTH, drawn_parts, lime
from attentest.evidence.explainers_path import integrated_gradients
from attentest.evidence.explainers_presence import answers_to_parts, explained
from attentest.evidence.explainers_shapley import over_orders
from attentest.model.decoder import distribution
from attentest.model.selection import selected_batch
from tests.test_explainers import read, seeded
from tests.toys import in_double, toy_corpus, toy_model

captum = pytest.importorskip("captum.attr")
UNITS = 5


@pytest.fixture
def asked():
    corpus = toy_corpus(labels=("no", "yes", "maybe"), lengths=(UNITS, 4))
    model = in_double(toy_model(corpus, encoder="cnn"))
    return model, read(model, corpus, [0])


def test_integrated_gradients(asked):
    model, reading = asked
    best = int(explained(model, reading).predicted[0])

    def likely(vectors):
        batch = selected_batch(reading.batch, torch.zeros(len(vectors), dtype=torch.long), UNITS)
        return distribution(model.decide(model.read(batch, embeddings=vectors)))[:, best]

    theirs = captum.IntegratedGradients(likely).attribute(reading.embeddings.clone(), n_steps=32)
    torch.testing.assert_close(integrated_gradients(model, reading), theirs.sum(-1), atol=1e-8, rtol=0)


def test_shapley_values(asked):
    model, reading = asked
    every = torch.tensor([*itertools.permutations(range(UNITS))])[None]
    theirs = captum.ShapleyValues(lambda there: answers_to_parts(model, reading, there.bool()[:, None])[:, 0])
    found = theirs.attribute(torch.ones(1, UNITS), baselines=torch.zeros(1, UNITS))
    torch.testing.assert_close(over_orders(model, reading, every), found.double(), atol=1e-6, rtol=0)


def test_lime(asked):
    linear = pytest.importorskip("captum._utils.models.linear_model")
    model, reading = asked
    parts = iter([reading.mask[0], *drawn_parts(reading.mask, 60, rng=seeded(2))[0]])

    def near(whole, part, presence, **_):
        cosine = (presence.sum() / UNITS).double().sqrt()
        return (-((1 - cosine) ** 2) / WIDTH**2).exp()

    theirs = captum.LimeBase(
        lambda there: answers_to_parts(model, reading, there.bool()[:, None])[:, 0],
        linear.SkLearnRidge(alpha=1.0),
        near,
        lambda whole, **_: next(parts)[None].double(),
        perturb_interpretable_space=True,
        from_interp_rep_transform=lambda presence, whole, **_: presence,
        to_interp_rep_transform=None,
    )
    found = theirs.attribute(torch.ones(1, UNITS).double(), n_samples=61)
    ours = lime(model, reading, rng=seeded(2), samples=60)
    torch.testing.assert_close(ours, found.double().view(1, UNITS), atol=1e-6, rtol=0)
