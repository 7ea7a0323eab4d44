"""Removal, dispersion and their nulls for models made elsewhere: beside our own models, and the long way."""

import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.auditing.questions import BUDGETS, QUESTIONS, Auditing
from attentest.auditing.subject import audited_subject, on_the_bench
from attentest.evidence.importances.given_attention import AttentionPool, GivenAttention
from attentest.evidence.importances.hidden_importance import hidden_gradient, hidden_leave_one_out
from attentest.evidence.importances.hidden_importance_foreign import by_asking, free_gradient
from attentest.evidence.importances.influence import Positions, influence
from attentest.evidence.permutation import orders
from attentest.evidence.permuted_weights import permuted_weights
from attentest.evidence.removal.decisions import attended, overtaken, predicted
from attentest.evidence.removal.exhausted_flip import MOST, exhausted_flip
from attentest.evidence.removal.single import exchanged
from attentest.experiments.dispersion.observe import Dispersion
from attentest.experiments.importance import conclude as importance
from attentest.experiments.importance.observe import Importance
from attentest.experiments.removal.observe import Removal
from attentest.foreign.adapter import AdaptedModel
from attentest.model.batch import Batch
from attentest.model.networks.decoder import distribution
from attentest.model.reader import readings
from tests.families import WORDS, examples, made, tiny
from tests.toys import in_double, seeded, toy_batch, toy_corpus, toy_model

MODELS = {
    "no context": ({}, {"encoder": "mlp"}),
    "context": ({"labels": ("a", "b", "c")}, {"encoder": "bigru"}),
    "sparse": ({}, {"encoder": "identity", "projection": "sparsemax"}),
}
every = pytest.mark.parametrize("name", MODELS)


class Ours:
    """One of our own models behind an adapter, so that the bench knows nothing of it but the seam."""

    def __init__(self, model):
        self.model, self.embedding = model, model.embedding

    def numbers(self, words):
        return self.model.vocabulary.numbers(words)

    def attend(self, vectors, mask):
        count = len(mask)
        batch = Batch(
            ids=tuple(map(str, range(count))),
            tokens=torch.zeros_like(mask, dtype=torch.long),
            mask=mask,
            labels=torch.zeros(count, dtype=torch.long),
        )
        reading = self.model.read(batch, embeddings=vectors)
        return reading.hidden, reading.weights

    def decide(self, states, weights):
        values = self.model.decoder.values(states)
        return (weights[:, None] @ values)[:, 0] + self.model.decoder.bias

    def predict(self, tokens, mask):
        return self.decide(*self.attend(self.embedding(tokens), mask))


def twins(name):
    """The same model as ours and as a stranger's, with the same texts; a loud decoder hears attention."""
    about, settings = MODELS[name]
    corpus = toy_corpus(lengths=(5, 1, 9, 2, 13, 7, 8, 3), **about)
    model = in_double(toy_model(corpus, **settings))
    with torch.no_grad():
        for parameter in model.decoder.parameters():
            parameter.mul_(8.0)
        reading = model.read(toy_batch(model, corpus))
        alone = torch.eye(reading.mask.shape[1], dtype=torch.float64).expand(len(reading.mask), -1, -1)
        model.decoder.dense.bias -= model.decide(reading, alone)[reading.mask].mean(0)
    elsewhere = AdaptedModel(Ours(model), corpus.labels)
    return audited_subject(model, corpus.test), audited_subject(elsewhere, corpus.test)


def asked(experiment, subject):
    return {row["id"]: row for row in experiment.ask(subject, seeded(1))}


@every
def test_removal_elsewhere_is_removal_here(name):
    """One draw of orders moves states here and weights there: rows, nulls and optima must be the same."""
    ours, theirs = (asked(Removal(orders=3), subject) for subject in twins(name))
    flipped = set()
    for text, row in ours.items():
        twin = theirs[text]
        for column, value in row.items():
            if column.endswith("smallest") and row["items"] > MOST:
                assert math.isnan(twin[column])
            else:
                assert twin[column] == (
                    pytest.approx(value, abs=1e-9) if not isinstance(value, str) else value
                )
        flipped |= {row["smallest"], row["null_smallest"]}
    assert len(flipped) > 2, "some decisions take more than one removal, or never flip"


@every
def test_dispersion_elsewhere_is_dispersion_here(name):
    ours, theirs = (asked(Dispersion(frobenius=0, nulls=3), subject) for subject in twins(name))
    compared = 0
    for text, row in ours.items():
        for column, value in row.items():
            # A sparse projection spends the weight of a unit that is gone by its scores; a stranger's scores
            # are not known, so there the rest keeps its proportions.
            if (name == "sparse" and "_loo" in column) or "ed_tau_hidden_gradient" in column:
                continue  # nor can they be moved, which is the null of a state's gradient
            if row["length"] > 10 and "inputs_loo" in column:
                continue  # a word that stands there twice ties with itself up to rounding
            wanted = value if isinstance(value, str) else pytest.approx(value, abs=1e-6, nan_ok=True)
            assert theirs[text][column] == wanted, (text, column)
            compared += isinstance(value, float) and math.isfinite(value)
    assert compared > 60


@pytest.mark.parametrize("name", ["no context", "context"])
def test_an_adapters_nulls_are_those_of_the_model_behind_it(name):
    ours, theirs = twins(name)
    audit = Auditing(theirs, None, BUDGETS["quick"])
    found = {row["id"]: row for row in QUESTIONS["importance"].observe(audit, np.random.default_rng(0))}
    draw = torch.Generator().manual_seed(int(np.random.default_rng(0).integers(2**63)))
    compared = 0
    for row in Importance(nulls=4 * BUDGETS["quick"].draws, shown=0).ask(ours, draw):
        for column in [name for name in importance.NUMBERS if not name.startswith("traded")]:
            if row["length"] > 10 and "loo" in column:
                continue  # a word that stands there twice ties with itself up to rounding
            assert found[row["id"]][column] == pytest.approx(row[column], abs=1e-9, nan_ok=True), column
            compared += math.isfinite(row[column])
    assert compared > 60


@pytest.mark.parametrize("family", ["bert", "gpt2"])
@pytest.mark.parametrize("measure", ["gradient", "loo"])
def test_unlearnt_transformers_agree_no_more_than_their_nulls(family, measure):
    """Random parameters: neither null may be far, over three models, since one has few words to agree on."""
    rng = np.random.default_rng(0)
    texts = examples(texts=[" ".join(rng.choice(WORDS, size=10)) for _ in range(40)])
    rows = pd.concat(
        pd.DataFrame(
            Importance(nulls=4, shown=0).ask(audited_subject(unlearnt(family, seed), texts), seeded())
        )
        for seed in (4, 5, 6)
    )
    own = rows["tau_loo_held" if measure == "loo" else "tau_gradient"].mean()
    for null in ("swapped", "permuted"):
        assert abs(own - rows[f"{null}_tau_{measure}"].mean()) < 0.1, null


def unlearnt(family, seed):
    random, draw = tiny(family), seeded(seed)
    with torch.no_grad():
        for parameter in random.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0, 0.3, generator=draw)
    return on_the_bench(made(family, double=True, model=random)[0])


def test_a_transformers_weights_move_head_by_head_and_special_tokens_keep_theirs():
    model = made("bert", double=True)[0]
    split = model.split(examples())
    with torch.no_grad():
        reading = model.read(split.batch(range(4)))
        pool = AttentionPool.of(model, split)
        swapped = pool.swapped(model, reading, np.arange(4), 3, rng=seeded(1))
        permuted = GivenAttention.permuted(reading, 3, rng=seeded())
        for given in (swapped, permuted):
            known = ~given.weights.isnan().flatten(1).any(1)
            assert known.any() and given.weights.ndim == 4
            mass = given.weights.sum(-1) - reading.weights.sum(-1)[:, None]
            assert mass[known].abs().max() < 1e-12
    row = 0
    for draw in range(3):
        found, own = permuted.weights[row, draw], reading.weights[row]
        place = [int((own[0] - value).abs().argmin()) for value in found[0]]
        assert torch.equal(found, own[:, place]), "one order for all heads"


def test_dealt_weights_are_moved_states():
    model = twins("context")[1].model
    split = model.split(toy_corpus(labels=("a", "b", "c")).test)
    with torch.no_grad():
        reading = model.read(split.batch(range(6)))
        moved = permuted_weights(reading, orders(reading.mask, 1, rng=seeded(5))[:, 0])
        wanted = model.decide(exchanged(reading, rng=seeded(5)))
        torch.testing.assert_close(model.decide(moved, moved.weights), wanted)
    for text, real in enumerate(reading.mask):
        assert sorted(moved.weights[text].tolist()) == sorted(reading.weights[text].tolist())
        assert not moved.weights[text][~real].any()
    torch.testing.assert_close(moved.scores[reading.mask], moved.weights[reading.mask].log())


def choices(family):
    """Heads together and one head, in the last layer and below it."""
    last, lower = made(family, double=True)[0], made(family, double=True, layer=0, head=1)[0]
    batch = last.split(examples()).batch(range(4))
    return [(on_the_bench(last), batch), (on_the_bench(lower), batch)]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_transformers_units_are_taken_away_one_at_a_time(family):
    for model, batch in choices(family):
        with torch.no_grad():
            reading = model.read(batch)
            given = GivenAttention.permuted(reading, 2, rng=seeded(2))
            own = hidden_leave_one_out(model, reading)
            null = [hidden_leave_one_out(model, each) for each in given.each(reading)]
            for text, length in enumerate(reading.mask.sum(1).tolist()):
                for unit in range(length):
                    wanted = taken_away(model, reading, reading.weights, text, unit)
                    assert own[text, unit] == pytest.approx(wanted, abs=1e-9, nan_ok=True)
                    for draw in range(2):
                        wanted = taken_away(model, reading, given.weights[:, draw], text, unit)
                        assert null[draw][text, unit] == pytest.approx(wanted, abs=1e-9, nan_ok=True)
        assert not own[~reading.mask].any()


def test_where_one_unit_has_all_weight_nothing_is_left_to_renormalise():
    model = twins("context")[1].model
    with torch.no_grad():
        reading = model.read(model.split(toy_corpus(labels=("a", "b", "c")).test).batch(range(6)))
        reading.weights[2] = 0.0
        reading.weights[2, 1] = 1.0
        found = by_asking(model, reading)
    assert found[2].isnan().nonzero().tolist() == [[1]] and found[1].isnan().nonzero().tolist() == [[0]]
    assert not found[2][[0, 2]].any(), "whoever had no weight is not missed"


def taken_away(model, reading, weights, text, unit):
    """The output change of one text when one weight of it goes and the rest is renormalised."""
    if reading.mask[text].sum() == 1:
        return math.nan
    rest = weights.clone()
    rest[text, unit] = 0.0
    rest[text] /= rest[text].sum()
    before, after = (distribution(model.decide(reading, given))[text] for given in (weights, rest))
    return float(0.5 * (after - before).abs().sum())


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_transformers_states_are_those_that_enter_the_layer(family):
    """Twin: a hook moves one state at the layer's door a little, and the model is asked as it always is."""
    for model, batch in choices(family):
        found = hidden_gradient(model, model.read(batch))
        inner = getattr(model, "inner", model)
        stack = inner.transformer.get_submodule(
            {"bert": "bert.encoder.layer", "gpt2": "transformer.h"}[family]
        )
        reading = inner.read(batch)
        text, place = 1, 2  # within the first word of the second text, which is of three pieces
        slope = []
        for number in range(reading.kept["entered"].shape[2]):
            answers = [
                nudged(inner, stack[inner.layer], batch, (text, place, number), by) for by in (1e-5, -1e-5)
            ]
            slope.append((answers[0] - answers[1]) / 2e-5)
        norms = by_place(model, batch)
        assert float(norms[text, place]) == pytest.approx(float(torch.stack(slope).norm()), rel=1e-5)
        unit = reading.kept["unit"][text]
        wanted = torch.stack([norms[text][unit == number].sum() for number in range(int(unit.max()) + 1)])
        torch.testing.assert_close(found[text, : len(wanted)], wanted)
        assert not found[~reading.mask].any()


def nudged(model, layer, batch, where, by):
    def move(_, args, kwargs):
        states = (args[0] if args else kwargs["hidden_states"]).clone()
        states[where] += by
        return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})

    laid = model.laid(batch)
    typed = {"token_type_ids": laid.types} if model.typed else {}
    hook = layer.register_forward_pre_hook(move, with_kwargs=True)
    try:
        with torch.no_grad():
            logits = model.transformer(laid.ids, attention_mask=laid.present.long(), **typed).logits
    finally:
        hook.remove()
    return distribution(logits)[where[0]].max()


def by_place(model, batch):
    """The gradient's norm at every place, without any merging of pieces."""
    embeddings = model.embedding(batch.tokens).detach().requires_grad_()
    reading = model.read(batch, embeddings=embeddings)
    likeliest = distribution(model.decide(reading)).amax(1).sum()
    return torch.autograd.grad(likeliest, reading.kept["entered"])[0].norm(dim=2)


@pytest.mark.parametrize("encoder", ["mlp", "bilstm", "cnn"])
def test_the_seam_alone_leads_to_the_same_importances(encoder):
    """Both general roads hold for our own models too, whose own roads are other ones."""
    corpus = toy_corpus()
    model = in_double(toy_model(corpus, encoder=encoder))
    reading = model.read(toy_batch(model, corpus))
    torch.testing.assert_close(free_gradient(model, reading), hidden_gradient(model, reading))
    found, wanted = by_asking(model, reading), hidden_leave_one_out(model, reading)
    torch.testing.assert_close(found, wanted, equal_nan=True)


def restless(family, **choice):
    """A transformer whose decisions stand on few units: no class wins however the weights lie."""
    model = tiny(family, scale=0.5)
    adopted, batch = made(family, double=True, model=model, **choice)
    bench = on_the_bench(adopted)
    with torch.no_grad():
        reading = bench.read(batch)
        alone = torch.eye(reading.mask.shape[1], dtype=torch.float64).expand(len(reading.mask), -1, -1)
        head = [module for module in model.modules() if isinstance(module, torch.nn.Linear)][-1]
        head.bias = torch.nn.Parameter(-bench.decide(reading, alone)[reading.mask].mean(0))
        return bench, bench.read(batch)


@pytest.mark.parametrize(("family", "choice"), [("bert", {}), ("bert", {"head": 1}), ("xlnet", {})])
def test_the_optimum_of_a_transformer_is_that_of_every_set(family, choice):
    model, reading = restless(family, **choice)
    sizes = set()
    with torch.no_grad():
        for seed in range(4):
            moved = permuted_weights(reading, orders(reading.mask, 1, rng=seeded(seed))[:, 0])
            wanted = [by_every_set(model, moved, text) for text in range(len(moved.mask))]
            assert exhausted_flip(model, moved).tolist() == wanted
            sizes |= set(wanted)
    assert {0.0, 1.0} < sizes


def by_every_set(model, reading, text):
    """The least number of units of one text without which another class is strictly above, one by one."""
    units = reading.mask[text].nonzero().squeeze(1).tolist()
    own = predicted(model.decide(reading, reading.weights))
    for size in range(1, len(units)):
        for gone in combinations(units, size):
            rest = reading.weights.clone()
            rest[text, list(gone)] = 0.0
            rest[text] /= rest[text].sum()
            if overtaken(model.decide(reading, rest)[:, None], own)[text, 0]:
                return float(size)
    return 0.0


def test_what_is_too_long_or_no_number_has_no_optimum():
    model = twins("no context")[1].model
    corpus = toy_corpus(lengths=(MOST, MOST + 1, 1, 3, 4, 2))
    with torch.no_grad():
        reading = model.read(model.split(corpus.test).batch(range(6)))
        reading.weights[3, 1] = math.nan
        reading.weights[4] = 0.0
        found = exhausted_flip(model, reading)
    assert found.isnan().tolist() == [False, True, False, True, True, False] and found[2] == 0


@pytest.mark.parametrize("family", ["bert", "xlnet"])
def test_a_transformers_rows_are_removals_one_at_a_time(family):
    model, reading = restless(family)
    subject = audited_subject(model, examples())
    found = asked(Removal(orders=2), subject)
    counts = set()
    for text, name in enumerate(reading.batch.ids):
        order = reading.weights[text].argsort(descending=True, stable=True)
        count = first_flip_by_hand(model, reading, text, order[: int(reading.mask[text].sum())].tolist())
        assert found[name]["count_attention"] == count
        counts |= {count}
        assert {"null_count_attention", "null_mass_product", "counts_random"} <= set(found[name])
    assert len(counts) > 1


def first_flip_by_hand(model, reading, text, order):
    own, rest = predicted(model.decide(reading)), reading.weights.clone()
    for count, unit in enumerate(order, start=1):
        rest[text, unit] = 0.0
        left = rest[text].sum()
        given = rest.clone()
        given[text] = rest[text] / (left if left > 0 else 1.0)
        if overtaken(model.decide(reading, given)[:, None], own)[text, 0]:
            return count
    return -1


def test_the_null_of_removal_is_another_model_in_all_but_its_weights():
    """Dealt weights begin from a decision of their own, and every weight is still there to be removed."""
    model, _ = restless("bert")
    subject, draw = audited_subject(model, examples()), seeded(1)
    rows = asked(Removal(orders=2), subject)
    with torch.no_grad():
        ((_, reading),) = readings(model, subject.texts)
        orders(attended(reading), 2, rng=draw)
        moved = permuted_weights(reading, orders(reading.mask, 1, rng=draw)[:, 0])
        for text, name in enumerate(reading.batch.ids):
            rank = moved.weights[text].argsort(descending=True, stable=True)
            rank = rank[: int(reading.mask[text].sum())].tolist()
            assert rows[name]["null_count_attention"] == flips_of_dealt(model, moved, text, rank)
            assert rows[name]["null_smallest"] == by_every_set(model, moved, text)


def flips_of_dealt(model, moved, text, order):
    own = predicted(model.decide(moved, moved.weights))
    for count in range(1, len(order) + 1):
        given = moved.weights.clone()
        given[text, order[:count]] = 0.0
        given[text] /= given[text].sum().clamp_min(1e-300)
        if overtaken(model.decide(moved, given)[:, None], own)[text, 0]:
            return count
    return -1


@pytest.mark.parametrize(("family", "states", "values"), [("bart", False, True), ("xlnet", False, False)])
def test_what_a_model_does_not_show_is_not_a_number(family, states, values):
    model, batch = made(family)
    model = on_the_bench(model)
    reading = model.read(batch)
    assert bool(hidden_gradient(model, reading).isfinite().all()) == states
    found = influence(model, reading, Positions.sampled(reading.mask, 2, rng=seeded()))
    assert bool(found.l2.isfinite().all()) == values and found.road == "whole"
    rows = asked(Dispersion(frobenius=0, nulls=2), audited_subject(model, examples()))
    assert all(math.isnan(row["tau_hidden_gradient"]) for row in rows.values())
    assert any(math.isfinite(row["tau_hidden_loo"]) for row in rows.values())
    assert any(math.isfinite(row["entropy_influence"]) for row in rows.values()) == values


def test_influence_on_a_transformers_unit_is_one_pass_back_each():
    model, batch = made("bert", double=True)
    model = on_the_bench(model)
    positions = Positions.sampled((reading := model.read(batch)).mask, 3, rng=seeded())
    found = influence(model, reading, positions)
    for text, name in enumerate(batch.ids):
        alone = model.split([one for one in examples() if one.id == name]).batch([0])
        for slot in range(int(positions.there[text].sum())):
            embeddings = model.embedding(alone.tokens).detach().requires_grad_()
            brought = model.read(alone, embeddings=embeddings).hidden[0, positions.places[text, slot]]
            (slope,) = torch.autograd.grad(brought.norm(), embeddings)
            tokens = alone.tokens.shape[1]
            torch.testing.assert_close(found.l2[text, slot, :tokens], slope[0].norm(dim=1))
            torch.testing.assert_close(found.l1[text, slot, :tokens], slope[0].abs().sum(1))
            assert not found.l2[text, slot, tokens:].any()
