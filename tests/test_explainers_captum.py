"""Explainers beside Captum's, where that is installed: another hand, the same numbers."""

import importlib
import itertools

import pytest
import torch

from attentest.evidence.importances.captum import captum_kernel_shap, captum_lime
from attentest.evidence.importances.catalogue import BY_CAPTUM, EXPLAINERS, Effort, explain
from attentest.evidence.importances.integrated_gradients import integrated_gradients
from attentest.evidence.importances.lime import WIDTH, drawn_parts, lime
from attentest.evidence.importances.presence import answers_to_parts, explained
from attentest.evidence.importances.shapley import over_orders
from attentest.model.networks.decoder import distribution
from attentest.model.subset import selected_batch
from tests.families import made
from tests.toys import in_double, read, seeded, toy_corpus, toy_model

captum = pytest.importorskip("captum.attr", reason="needs the extra `captum`")
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
    linear = importlib.import_module("captum._utils.models.linear_model")
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


def test_kernel_shap_comes_to_the_shapley_values(asked):
    """Captum draws how many units a part has, so its regression is our mean over all orders up to noise."""
    model, reading = asked
    exact = over_orders(model, reading, torch.tensor([*itertools.permutations(range(UNITS))])[None])
    found = captum_kernel_shap(model, reading, rng=seeded(), samples=2000)
    assert float((found - exact).norm() / exact.norm()) < 0.1


def test_captums_own_lime_is_captums(asked):
    model, reading = asked
    seed = int(torch.randint(2**62, (), generator=seeded(3)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        theirs = captum.Lime(lambda there: answers_to_parts(model, reading, there.bool()[:, None])[:, 0])
        expected = theirs.attribute(torch.ones(1, UNITS), n_samples=40)
    before = torch.get_rng_state()
    found = captum_lime(model, reading, rng=seeded(3), samples=40)
    torch.testing.assert_close(found, expected.double(), atol=1e-6, rtol=0)
    assert torch.equal(before, torch.get_rng_state()), "what Captum draws is drawn apart"


@pytest.mark.parametrize("kind", ["toy", "bert"])
def test_they_are_asked_by_name_and_know_padding(kind):
    if kind == "bert":
        model, batch = made("bert", double=True, head=0)
        with torch.no_grad():
            reading = model.read(batch)
    else:
        corpus = toy_corpus(lengths=(4, 1, 6))
        model = in_double(toy_model(corpus, encoder="average"))
        reading = read(model, corpus)
    said = explain(model, reading, rng=seeded(), effort=Effort(samples=400), names=tuple(BY_CAPTUM))
    assert [*said] == ["captum-lime", "captum-kernel-shap"] and not BY_CAPTUM.keys() & EXPLAINERS.keys()
    several, about = reading.mask.sum(1) > 1, explained(model, reading)
    for values in said.values():
        assert values.isnan().any(1).tolist() == (~several).tolist()
        assert (values[several][~reading.mask[several]] == 0).all()
    whole = (about.probability - about.unread)[several]
    torch.testing.assert_close(said["captum-kernel-shap"][several].sum(1), whole, atol=1e-3, rtol=0)
