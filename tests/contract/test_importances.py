"""One contract for every importance of the catalogues over toy models, and proof that it can fail.

Some importances draw random numbers, and how many depends on the padding or the order of words. What must not
change may then change by as much as another seed changes it, times `LOOSE`; without draws that is nothing.
"""

import dataclasses
import importlib.util

import pytest
import torch

from attentest.evidence.importances.catalogue import BY_CAPTUM, EXPLAINERS, Effort
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.hidden_importance import hidden_gradient, hidden_leave_one_out
from attentest.evidence.importances.presence import explained
from attentest.evidence.removal.orders import rankings
from attentest.model.networks.decoder import distribution
from tests.toys import in_double, toy_batch, toy_corpus, toy_model

LENGTHS = (5, 1, 3)
EXACT, LOOSE = 1e-9, 4.0
MODELS = {
    "bilstm": {"encoder": "bilstm"},
    "cnn": {"encoder": "cnn", "attention": "dot", "labels": ("no", "yes", "maybe")},
    "average": {"encoder": "average", "projection": "sparsemax"},
    "average, question": {"encoder": "average", "query": True},
    "han": {"encoder": "han-identity"},
}


def from_catalogue(says):
    def importance(model, reading, seed):
        rng = torch.Generator().manual_seed(seed)
        return says(model, reading, rng=rng, effort=Effort(steps=64, permutations=4, samples=40))

    return importance


def ranking(name):
    return lambda model, reading, seed: rankings(model, reading)[name]


# Attention itself is no importance: a model that always says the same attends all the same.
IMPORTANCES = {
    **{name: from_catalogue(says) for name, says in EXPLAINERS.items()},
    "gradient-norm-held": lambda model, reading, seed: gradients(model, reading.batch).norm_held,
    "gradient-norm-free": lambda model, reading, seed: gradients(model, reading.batch, free=True).norm_free,
    "weight-gradient": ranking("gradient"),
    "weight-product": ranking("product"),
    "hidden-gradient": lambda model, reading, seed: hidden_gradient(model, reading),
    "hidden-leave-one-out": lambda model, reading, seed: hidden_leave_one_out(model, reading),
}
if importlib.util.find_spec("captum"):
    IMPORTANCES |= {name: from_catalogue(says) for name, says in BY_CAPTUM.items()}
SILENT = ("captum-lime",)  # Captum's default is a lasso, which is silent on effects as small as these
COMPLETE = ("integrated-gradients", "shapley")
every = pytest.mark.parametrize("name", IMPORTANCES)


def corpus_for(settings):
    plain = {"query": settings.get("query", False), "labels": settings.get("labels", ("no", "yes"))}
    return toy_corpus(lengths=LENGTHS, **plain)


def model_for(settings, corpus):
    return in_double(toy_model(corpus, **{k: v for k, v in settings.items() if k not in ("query", "labels")}))


@pytest.fixture(scope="module", params=MODELS)
def subject(request):
    settings = MODELS[request.param]
    corpus = corpus_for(settings)
    return model_for(settings, corpus), corpus


def read(model, batch):
    with torch.no_grad():
        return model.read(batch)


def alike(importance, model, reading, values, expected):
    """Whether values are the expected ones, up to what another seed would have changed."""
    another = [importance(model, reading, seed).nan_to_num() for seed in (1, 2)]
    noise = float((another[0] - another[1]).abs().max())
    torch.testing.assert_close(
        values.double(), expected.double(), atol=EXACT + LOOSE * noise, rtol=0, equal_nan=True
    )


# --- the checks


def check_it_is_defined_on_every_unit_and_zero_on_padding(importance, model, corpus):
    """NaN only where a text is one unit, all of which cannot be left out of it."""
    reading = read(model, toy_batch(model, corpus))
    values = importance(model, reading, 0)
    assert values.shape == reading.mask.shape
    assert not values.masked_fill(reading.mask, 0.0).any() and not values[~reading.mask].isnan().any()
    several = reading.mask.sum(1) > 1
    assert several.any() and values[several].isfinite().all()


def check_it_says_something(importance, model, corpus):
    values = importance(model, read(model, toy_batch(model, corpus)), 0)
    assert values.nan_to_num().abs().max() > 1e-6


def check_more_padding_changes_nothing(importance, model, corpus):
    batch = toy_batch(model, corpus)
    wider = dataclasses.replace(
        batch,
        **{
            name: torch.nn.functional.pad(getattr(batch, name), (0, 3))
            for name in ("tokens", "mask", "sentences")
        },
    )
    readings = read(model, batch), read(model, wider)
    narrow, wide = (importance(model, reading, 0) for reading in readings)
    units = narrow.shape[1]
    alike(importance, model, readings[0], wide[:, :units], narrow)
    assert not wide[:, units:].any()


def check_the_model_is_left_as_found(importance, model, corpus):
    """Parameters and whether they are trained, modes, hooks, gradients; also the reading and global draws."""
    frozen = next(model.parameters())
    frozen.requires_grad_(False)
    model.train()
    model.decoder.eval()
    reading = read(model, toy_batch(model, corpus))
    before = state_of(model, reading)
    try:
        importance(model, reading, 0)
        after = state_of(model, reading)
    finally:
        frozen.requires_grad_(True)
        model.eval()
        model.zero_grad()
    assert before.keys() == after.keys()
    for name, value in before.items():
        same = torch.equal(value, after[name]) if isinstance(value, torch.Tensor) else value == after[name]
        assert same, name


def state_of(model, reading):
    tensors = {name: value for name, value in vars(reading).items() if isinstance(value, torch.Tensor)}
    modules = dict(model.named_modules())
    return {
        **{f"reading {name}": value.detach().clone().nan_to_num() for name, value in tensors.items()},
        **{name: value.clone() for name, value in model.state_dict().items()},
        "trained": [parameter.requires_grad for parameter in model.parameters()],
        "gradients": [parameter.grad is None for parameter in model.parameters()],
        "modes": {name: module.training for name, module in modules.items()},
        "hooks": {name: hooks_of(module) for name, module in modules.items()},
        "draws": torch.get_rng_state(),
        "differentiates": torch.is_grad_enabled(),
    }


def hooks_of(module):
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return sum(len(getattr(module, kind)) for kind in kinds)


def check_a_model_that_always_says_the_same_gives_zero(importance, model, corpus):
    spared = {name: value.clone() for name, value in model.decoder.state_dict().items()}
    try:
        with torch.no_grad():
            for parameter in model.decoder.parameters():
                if parameter.ndim > 1:
                    parameter.zero_()
        values = importance(model, read(model, toy_batch(model, corpus)), 0)
    finally:
        model.decoder.load_state_dict(spared)
    assert values.nan_to_num().abs().max() < EXACT


def check_the_order_of_words_is_irrelevant_to_a_bag(importance, model, corpus):
    turned = tuple(dataclasses.replace(each, tokens=each.tokens[::-1]) for each in corpus.test)
    backwards = dataclasses.replace(corpus, test=turned)
    readings = [read(model, toy_batch(model, each)) for each in (corpus, backwards)]
    plain, other = (importance(model, reading, 0) for reading in readings)
    restored = torch.zeros_like(other)
    for row, length in enumerate(readings[0].mask.sum(1).tolist()):
        restored[row, :length] = other[row, :length].flip(0)
    alike(importance, model, readings[0], restored, plain)


def check_values_add_up(importance, model, corpus, nothing):
    """To the probability of the predicted class less what it is without the text, as the method has it."""
    reading = read(model, toy_batch(model, corpus))
    about, several = explained(model, reading), reading.mask.sum(1) > 1
    whole = about.probability - nothing(model, reading, about)
    found = importance(model, reading, 0).sum(1)
    torch.testing.assert_close(found[several], whole[several], atol=1e-5, rtol=0)


def unread(model, reading, about):
    return about.unread


def without_vectors(model, reading, about):
    with torch.no_grad():
        empty = model.read(reading.batch, embeddings=torch.zeros_like(reading.embeddings))
        return distribution(model.decide(empty)).gather(1, about.predicted[:, None])[:, 0]


NOTHING = {"integrated-gradients": without_vectors, "shapley": unread}
CHECKS = (
    check_it_is_defined_on_every_unit_and_zero_on_padding,
    check_more_padding_changes_nothing,
    check_the_model_is_left_as_found,
    check_a_model_that_always_says_the_same_gives_zero,
)


@every
def test_every_importance_keeps_the_contract(name, subject):
    for check in CHECKS:
        check(IMPORTANCES[name], *subject)
    if name not in SILENT:
        check_it_says_something(IMPORTANCES[name], *subject)


@pytest.fixture(scope="module")
def bag():
    corpus = corpus_for({})
    return model_for({"encoder": "average"}, corpus), corpus


@every
def test_the_order_of_words_is_irrelevant_to_a_bag(name, bag):
    check_the_order_of_words_is_irrelevant_to_a_bag(IMPORTANCES[name], *bag)


@pytest.mark.parametrize("name", COMPLETE)
def test_values_that_promise_it_add_up(name, bag):
    check_values_add_up(IMPORTANCES[name], *bag, NOTHING[name])


# --- proof that each check can fail


plain = IMPORTANCES["gradient"]


def speaks_on_padding(model, reading, seed):
    return plain(model, reading, seed) + 1.0


def counts_padding(model, reading, seed):
    return plain(model, reading, seed) / reading.mask.shape[1]


def is_undefined(model, reading, seed):
    return plain(model, reading, seed) / 0.0


def says_nothing(model, reading, seed):
    return 0.0 * plain(model, reading, seed)


def leaves_gradients(model, reading, seed):
    model.decide(model.read(reading.batch)).sum().backward()
    return plain(model, reading, seed)


def leaves_a_hook(model, reading, seed):
    model.decoder.register_forward_hook(lambda module, given, said: None)
    return plain(model, reading, seed)


def leaves_it_evaluating(model, reading, seed):
    model.eval()
    return plain(model, reading, seed)


def trains_what_was_frozen(model, reading, seed):
    model.requires_grad_(True)
    return plain(model, reading, seed)


def moves_parameters(model, reading, seed):
    with torch.no_grad():
        next(model.parameters()).add_(1e-6)
    return plain(model, reading, seed)


def overwrites_the_reading(model, reading, seed):
    reading.weights.mul_(0.5)
    return plain(model, reading, seed)


def draws_for_all(model, reading, seed):
    return plain(model, reading, seed) + 0.0 * torch.rand(1)


def goes_by_length(model, reading, seed):
    return reading.mask / reading.mask.sum(1, keepdim=True)


def goes_by_place(model, reading, seed):
    return plain(model, reading, seed) * (1 + torch.arange(reading.mask.shape[1]))


def loses_a_share(model, reading, seed):
    return 0.9 * IMPORTANCES["shapley"](model, reading, seed)


def adds_up(importance, model, corpus):
    check_values_add_up(importance, model, corpus, unread)


defined, padded, found, constant = CHECKS


@pytest.mark.parametrize(
    ("check", "spoilt"),
    [
        (defined, speaks_on_padding),
        (defined, is_undefined),
        (check_it_says_something, says_nothing),
        (padded, counts_padding),
        (found, leaves_gradients),
        (found, leaves_a_hook),
        (found, leaves_it_evaluating),
        (found, trains_what_was_frozen),
        (found, moves_parameters),
        (found, overwrites_the_reading),
        (found, draws_for_all),
        (constant, goes_by_length),
        (check_the_order_of_words_is_irrelevant_to_a_bag, goes_by_place),
        (adds_up, loses_a_share),
    ],
)
def test_the_contract_can_fail(check, spoilt):
    corpus = corpus_for({})
    model = model_for({"encoder": "average"}, corpus)
    check(IMPORTANCES["shapley"] if check is adds_up else plain, model, corpus)
    with pytest.raises(AssertionError):
        check(spoilt, model, corpus)
