"""The dispersion experiment: rows against the long way, findings by hand, cards for all of them."""

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.evidence.importances.hidden_importance import hidden_gradient, hidden_leave_one_out
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.dispersion import conclude as dispersion
from attentest.experiments.dispersion import observe as experiment
from attentest.experiments.dispersion.cards import CARDS as DISPERSION_CARDS
from attentest.experiments.dispersion.observe import Attended, Dispersion, entropy, over_positions
from attentest.model.networks.attention import LAST_STATE
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall
from tests.observed import concluded, one
from tests.observed_dispersion import dispersion_rows, dispersion_texts
from tests.toys import toy_batch, toy_corpus, toy_model

NAN = math.nan
QUICK = {"nulls": 3, "frobenius": 3}


def in_memory(corpus, step, **settings):
    """The controls are other models of the same shape."""
    trained = toy_model(corpus, **settings)
    siblings = step.siblings(trained.config)
    controls = {name: toy_model(corpus, **{**settings, "seed": 7}) for name in siblings}
    return InMemory({"trained": trained, **controls}, siblings)


def observed(corpus, seed=0, spoil=None, step=None, **settings):
    step = Dispersion(**QUICK) if step is None else step
    held = in_memory(corpus, step, **settings)
    if spoil is not None:
        spoil(held.models["trained"])
    subject = Subject(corpus, held.models["trained"].config, held)
    return pd.DataFrame(step.observe(subject, np.random.default_rng(seed))), held.models["trained"]


def of_trained(rows):
    return rows[rows["subject"] == "trained"].set_index("id")


def spread(values):
    """Normalised entropy, the scipy way."""
    values = np.asarray(values, dtype=float)
    return stats.entropy(values) / math.log(len(values)) if len(values) > 1 and values.any() else NAN


def influence_of(model, corpus, row):
    """The gradient of every state's size and of every unit of it, one text alone."""
    batch = toy_batch(model, corpus, [row])
    embeddings = model.embedding(batch.tokens).detach().requires_grad_()
    hidden = model.read(batch, embeddings=embeddings).hidden[0]

    def slope(number):
        return torch.autograd.grad(number, embeddings, retain_graph=True)[0][0]

    sizes = [slope(state.norm()) for state in hidden]
    squares = [sum(slope(unit).square().sum(1) for unit in state) for state in hidden]
    return {
        "influence": [size.norm(dim=1) for size in sizes],
        "influence_l1": [size.abs().sum(1) for size in sizes],
        "frobenius": [square.sqrt() for square in squares],
        "beside_frobenius": [size.norm(dim=1) for size in sizes],
    }


def unlevel(model):
    """Layer normalisation makes all states of one size until it has learnt otherwise: pretend it had."""
    for name, parameter in model.encoder.named_parameters():
        if "norms" in name:
            parameter.data.add_(torch.linspace(-1, 1, len(parameter)))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"hidden": 5}, {}),
        ({"encoder": "average", "projection": "sparsemax"}, {}),
        ({"encoder": "transformer", "attention": "dot", "hidden": 6, "projection": "sparsegen(0.6)"}, {}),
        ({"encoder": "cnn"}, {"query": True, "labels": ("no", "yes", "maybe")}),
    ],
)
def test_rows_say_what_the_evidence_says(settings, kind, monkeypatch):
    monkeypatch.setattr(experiment, "FEW", 16)  # all states, so that the draw does not matter
    corpus = toy_corpus(**kind)
    rows, model = observed(corpus, step=Dispersion(nulls=3, frobenius=99), spoil=unlevel, **settings)
    assert set(rows["subject"]) == {"trained", "untrained", "shuffled labels"}
    assert len(rows) == 3 * len(corpus.test) and {"seed", *rows.columns} >= set(dispersion.COLUMNS)
    found = gradients(model, toy_batch(model, corpus), free=True)
    reading = found.reading
    importances = {
        "inputs_gradient": found.norm_free,
        "inputs_loo": leave_one_out(model, reading).change,
        "hidden_gradient": hidden_gradient(model, reading),
        "hidden_loo": hidden_leave_one_out(model, reading),
    }
    said = of_trained(rows)
    for row, example in enumerate(corpus.test):
        told, length = said.loc[example.id], len(example.tokens)
        weights = reading.weights[row, :length].numpy()
        attended = weights > 0
        assert (told["support"], told["positions"]) == (attended.sum(), length)
        assert told["entropy_attention"] == pytest.approx(spread(weights), abs=1e-5, nan_ok=True)
        for name, importance in importances.items():
            values = importance[row, :length].numpy()
            for where, kept in (("", np.ones(length, dtype=bool)), ("_support", attended)):
                expected, _ = kendall(weights[kept], values[kept])
                assert told[f"tau_{name}{where}"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
        for name in ("gradient", "loo"):
            values = importances[f"inputs_{name}"][row, :length]
            assert told[f"entropy_{name}"] == pytest.approx(spread(values), abs=1e-5, nan_ok=True)
        for norm, states in influence_of(model, corpus, row).items():
            expected = np.mean([spread(state) for state in states])
            assert told[f"entropy_{norm}"] == pytest.approx(expected, abs=1e-4, nan_ok=True)


def test_without_context_influence_is_not_spread_at_all():
    rows, _ = observed(toy_corpus(), encoder="average")
    several = rows[rows["length"] > 1]
    assert (several["entropy_influence"] == 0).all() and (several["entropy_influence_l1"] == 0).all()
    alone = rows[rows["length"] == 1]
    assert len(alone) == 3
    undefined = [name for name in dispersion.NUMBERS if name not in ("max_attention", "support")]
    assert alone[undefined].isna().all(axis=None) and (alone["support"] == 1).all()


def test_where_weights_are_a_factor_the_null_is_far_from_zero_and_states_carry_it():
    corpus = toy_corpus(lengths=(30, 25, 20))
    rows, _ = observed(
        corpus, step=Dispersion(nulls=40, frobenius=0), encoder="average", vectors="random(3.0)"
    )
    for name in ("hidden_gradient", "hidden_loo", "inputs_loo"):
        null = rows[f"permuted_tau_{name}"]
        assert null.mean() > 0.1
        pd.testing.assert_series_equal(null, rows[f"permuted_tau_{name}_support"], check_names=False)
    assert not rows["frobenius"].any()


def test_zeros_tie_with_zeros_over_all_tokens_and_not_over_the_support():
    corpus = toy_corpus(lengths=(10, 9, 8, 10))  # no word twice: equal states can hardly be told from noise

    def sharpen(model):
        model.attention.to_score.weight.data.mul_(10)

    step = Dispersion(nulls=20, frobenius=0)
    rows, _ = observed(corpus, encoder="average", projection="sparsemax", spoil=sharpen, step=step)
    said = of_trained(rows)
    assert ((said["support"] > 1) & (said["support"] < said["length"] / 2)).all()
    for name in ("gradient", "loo"):
        assert (said[f"tau_hidden_{name}"] > 0.5).all()
        null = said[f"permuted_tau_hidden_{name}"]
        assert (null > 0.6).all(), "and so they are where weights do not match the words"
        assert (null > said[f"permuted_tau_hidden_{name}_support"]).all()


def test_the_frobenius_norm_is_asked_of_some_texts_of_the_trained_model():
    rows, _ = observed(toy_corpus(), hidden=5)
    assert rows["frobenius"].sum() == 3 and set(rows[rows["frobenius"]]["subject"]) == {"trained"}
    assert rows[~rows["frobenius"]]["entropy_frobenius"].isna().all()


def test_the_seed_decides_which_states_are_asked():
    corpus = toy_corpus(lengths=(30, 1, 22))
    step = Dispersion(positions=2, nulls=2, frobenius=1)
    first, again, other = (observed(corpus, seed, step=step, hidden=5)[0] for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert first["positions"].max() == 2
    assert not first["entropy_influence"].equals(other["entropy_influence"])
    assert first["entropy_gradient"].equals(other["entropy_gradient"])


def nan_attention(model):
    for parameter in model.attention.parameters():
        parameter.data.fill_(NAN)


def dead_decoder(model):
    model.decoder.dense.weight.data.zero_()


@pytest.mark.parametrize(
    ("settings", "spoil", "measure", "why"),
    [
        (
            {},
            nan_attention,
            "entropy-attention",
            "importance zero everywhere or not a number (5); one token (1)",
        ),
        ({}, nan_attention, "support", "attention is not a number (5); one token (1)"),
        (
            {},
            dead_decoder,
            "entropy-gradient",
            "importance zero everywhere or not a number (5); one token (1)",
        ),
        ({"projection": "uniform"}, None, "tau-hidden-loo", "constant or NaN vector (5); one token (1)"),
        ({"attention": LAST_STATE}, None, "tau-inputs-gradient", "one token"),
        ({"encoder": "han-identity"}, None, "tau-hidden-gradient-on-support", "one token"),
    ],
)
def test_what_is_undefined_is_counted_and_nothing_crashes(settings, spoil, measure, why):
    rows, _ = observed(toy_corpus(), spoil=spoil, **{"hidden": 5, **settings})
    found = one(concluded(rows.assign(seed=0), dispersion.conclude), measure)
    assert found["why"] == why
    if settings.get("encoder") is None:
        assert (found["n"], found["excluded"]) == (0, 6) and math.isnan(found["estimate"])


def test_a_last_state_is_one_state_of_all_words():
    rows, _ = observed(toy_corpus(), attention=LAST_STATE, hidden=5)
    several = of_trained(rows).loc[["test-0", "test-2"]]
    assert (several["length"] == 1).all() and (several["entropy_influence"] > 0).all()


def test_a_state_that_nothing_moves_is_left_out_of_the_mean():
    norms = torch.tensor([[[1.0, 1.0, 9.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [2.0, 0.0, 5.0]]])
    real = torch.tensor([[True, True, False], [True, True, False]])
    there = torch.tensor([[True, True], [True, False]])
    np.testing.assert_array_equal(over_positions(norms, real, there), [1.0, NAN])
    np.testing.assert_allclose(entropy(norms[:, 1], real), [NAN, 0.0])


def test_attended_units_come_first_and_padding_last():
    corpus = toy_corpus(lengths=(6, 4))
    model = toy_model(corpus, encoder="average", projection="sparsemax", vectors="random(3.0)")
    model.attention.to_score.weight.data.mul_(20)
    with torch.no_grad():
        reading = model.read(toy_batch(model, corpus))
    attended = Attended.of(reading.weights, reading.mask)
    for row, length in enumerate([6, 4]):
        size = int(attended.real[row].sum())
        assert size == (reading.weights[row] > 0).sum() < length
        assert (attended.weights[row, :size] > 0).all() and not attended.weights[row, size:].any()
        assert sorted(attended.order[row, :length].tolist()) == list(range(length))
    draws = torch.stack([reading.weights.flip(0), reading.weights], dim=1)
    several = Attended.of(draws, reading.mask[:, None].expand(draws.shape))
    assert torch.equal(several.weights[:, 1], attended.weights)
    assert several.taus(draws)["_support"][0, 1] == 1


@pytest.mark.parametrize("wrong", [{"positions": 0}, {"frobenius": -1}, {"nulls": 0}])
def test_numbers_that_cannot_be_are_refused(wrong):
    with pytest.raises(Refusal, match="at least 1 position and 1 draw, and 0 texts or more"):
        Dispersion(**wrong)


def found(*tables):
    return concluded(pd.concat(tables), dispersion.conclude)


def told(finding, *names):
    return tuple(finding[name] for name in names)


def test_entropies_and_sparsity_stand_beside_untrained_models():
    rows = dispersion_texts(
        3,
        length=[10, 10, 1],
        entropy_gradient=[0.2, 0.6, NAN],
        support=[5, 10, 1],
        max_attention=[0.5, 0.1, 1.0],
    )
    others = dispersion_texts(2, 0, "untrained", length=10, entropy_gradient=[0.9, 0.7], support=8)
    shuffled = dispersion_texts(2, 0, "shuffled labels", entropy_gradient=0.1)
    findings = found(rows, others, shuffled)
    spread_out = one(findings, "entropy-gradient")
    assert told(spread_out, "estimate", "std", "null") == pytest.approx((0.4, 0.2, 0.8))
    assert told(spread_out, "n", "excluded", "why") == (2, 1, "one token")
    assert math.isnan(one(findings, "entropy-gradient", "untrained")["null"])
    assert told(one(findings, "entropy-gradient", "shuffled labels"), "estimate", "null") == (0.1, 0.8)
    expected = {"support": (7.5, 8.0), "support-share": (0.75, 0.8), "max-attention": (0.3, 0.25)}
    for measure, pair in expected.items():
        sparse = one(findings, measure)
        assert told(sparse, "estimate", "null") == pytest.approx(pair)
        assert told(sparse, "n", "excluded", "why") == (2, 1, "one token"), "one token is no choice"


@pytest.mark.parametrize(("where", "named"), dispersion.SUPPORT.items())
def test_agreements_stand_beside_their_nulls(where, named):
    columns = {
        f"tau_hidden_gradient{where}": [0.9, 0.7, NAN],
        f"tau_hidden_loo{where}": [0.8, 0.8, 0.2],
        f"tau_inputs_loo{where}": [0.5, 0.3, 0.4],
        f"tau_inputs_loo_held{where}": [0.6, 0.4, 0.5],
        f"tau_inputs_gradient{where}": [0.4, 0.4, 0.1],
        f"swapped_tau_hidden_gradient{where}": [0.6, 0.5, 0.1],
        f"permuted_tau_hidden_gradient{where}": [0.5, 0.5, 0.1],
        f"permuted_tau_hidden_loo{where}": [0.2, 0.1, 0.3],
        f"swapped_tau_hidden_loo{where}": 0.1,
        f"permuted_tau_inputs_loo{where}": [0.3, 0.2, 0.1],
        f"swapped_tau_inputs_loo{where}": 0.1,
    }
    rows = dispersion_texts(3, support=[12, 12, 1], **columns)
    findings = found(rows, dispersion_texts(1, 0, "untrained", **{f"tau_inputs_gradient{where}": 0.7}))
    expected = {
        f"tau-hidden-gradient{named}": (0.8, 0.55),
        f"tau-hidden-gradient{named}-excess": (0.25, 0.0),
        f"tau-hidden-loo{named}": (0.6, 0.2),
        f"tau-hidden-loo{named}-excess": (0.4, 0.0),
        f"tau-inputs-loo{named}": (0.4, NAN),
        f"tau-inputs-loo-held{named}": (0.5, 0.2),
        f"tau-inputs-loo{named}-excess": (0.3, 0.0),
        f"tau-inputs-gradient{named}": (0.3, 0.7),
        f"hidden-minus-inputs-gradient{named}": (0.4, 0.0),
        f"hidden-minus-inputs-loo{named}": (0.2, 0.0),
    }
    for measure, pair in expected.items():
        assert told(one(findings, measure), "estimate", "null") == pytest.approx(pair, nan_ok=True), measure
    why = "one token with weight" if where else "constant or NaN vector"
    assert told(one(findings, f"tau-hidden-gradient{named}"), "excluded", "why") == (1, why)


def test_the_frobenius_norm_is_compared_on_the_texts_that_were_asked():
    rows = dispersion_texts(
        4,
        length=[12, 12, 12, 1],
        frobenius=[True, True, False, True],
        entropy_beside_frobenius=[0.5, 0.7, NAN, NAN],
        entropy_frobenius=[0.6, 0.7, NAN, NAN],
    )
    findings = found(rows, dispersion_texts(2, 0, "untrained"))
    norm = one(findings, "entropy-influence-frobenius")
    assert told(norm, "estimate", "n", "excluded", "why") == (pytest.approx(0.65), 2, 1, "one token")
    apart = one(findings, "entropy-influence-frobenius-minus-l2")
    assert told(apart, "estimate", "null") == pytest.approx((0.05, 0.0))
    assert "untrained" not in set(findings[findings["measure"].str.contains("frobenius")]["group"])


def test_every_measure_has_a_card_and_every_card_a_measure():
    findings = concluded(dispersion_rows(), dispersion.conclude)
    assert {f"dispersion/{measure}" for measure in findings["measure"]} == set(DISPERSION_CARDS)
    for finding in findings.itertuples():
        low, high = DISPERSION_CARDS[f"dispersion/{finding.measure}"].range
        assert low <= finding.estimate <= high
    assert set(findings["group"]) == {"overall", "untrained", "shuffled labels"}


def test_no_trained_model_no_news_and_a_missing_column_is_refused():
    rows = dispersion_rows()
    assert found(rows[rows["subject"] == "untrained"]).empty
    with pytest.raises(Refusal, match="no column support"):
        found(rows.drop(columns="support"))
