"""The explainers experiment: rows against the evidence, findings by hand, and foreign models."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import attentest as at
from attentest.evidence.importances import catalogue as evidence
from attentest.evidence.importances.catalogue import Effort, attention_of, explain
from attentest.evidence.importances.faithfulness import faithfulness, random_scores
from attentest.evidence.importances.names import IMPORTANCES
from attentest.evidence.importances.presence import answers_to_parts, explained
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.explainers import conclude as explainers
from attentest.experiments.explainers.cards import CARDS as EXPLAINER_CARDS
from attentest.experiments.explainers.observe import Explainers
from attentest.foreign.adapter import AdaptedModel
from attentest.model.networks.decoder import distribution
from attentest.refusal import Refusal
from attentest.statistics.comparison import kendall
from attentest.statistics.plausibility import plausibility
from tests.families import examples, made, tokenizer
from tests.observed import concluded, one
from tests.observed_explainers import explainer_rows, explainer_texts
from tests.toys import in_double, read, seeded, toy_corpus, toy_model

NAN = math.nan
QUICK = {"steps": 4, "permutations": 2, "parts": 8, "orders": 2, "draws": 3}


def observed(corpus, model, **settings):
    step = Explainers(**{**QUICK, **settings})
    siblings = step.siblings(model.config)  # a model in every role: rows are compared with the evidence
    subject = Subject(corpus, model.config, InMemory(dict.fromkeys(("trained", *siblings), model), siblings))
    return pd.DataFrame(step.observe(subject, np.random.default_rng(0)))


def marked_corpus(**kind):
    """The third text is marked at two words, the first everywhere, the others nowhere."""
    corpus = toy_corpus(**kind)
    rationales = {0: tuple(range(len(corpus.test[0].tokens))), 2: (1, 6)}
    test = tuple(replace(e, rationale=rationales.get(n)) for n, e in enumerate(corpus.test))
    return replace(corpus, test=test)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({}, {}),
        ({"encoder": "average", "projection": "sparsemax"}, {}),
        ({"encoder": "cnn"}, {"query": True, "labels": ("no", "yes", "maybe"), "candidates": True}),
        ({"encoder": "han-bigru"}, {}),
    ],
)
def test_rows_say_what_the_evidence_says(settings, kind):
    corpus = marked_corpus(**kind)
    model = in_double(toy_model(corpus, **settings))
    rows = observed(corpus, model)
    assert set(rows["subject"]) == {"trained", "untrained", "shuffled labels"}
    assert len(rows) == 3 * len(corpus.test) and {"seed", *rows.columns} >= set(explainers.COLUMNS)
    told = rows[rows["subject"] == "trained"].set_index("id")
    reading = read(model, corpus)
    exact = explain(model, reading, rng=seeded(), effort=Effort(steps=4), names=evidence_that_draws_nothing())
    exact = {"attention": attention_of(reading), **exact}
    areas = faithfulness(model, reading, torch.stack([*exact.values()], dim=1)).aopc()
    for row, example in enumerate(corpus.test):
        length, said = int(reading.mask[row].sum()), told.loc[example.id]
        for place, (name, values) in enumerate(exact.items()):
            scores = values[row, :length].numpy()
            for measure, area in zip(explainers.FAITHFUL, areas, strict=True):
                expected = float(area[row, place])
                assert said[f"{measure}_{name}"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
            if name != "attention":
                expected = kendall(reading.weights[row, :length].numpy(), np.abs(scores))[0]
                assert said[f"tau_attention_{name}"] == pytest.approx(expected, abs=1e-9, nan_ok=True)
            marks = np.zeros(length, dtype=bool)
            words = [*(example.rationale or ())]
            marks[[word // 3 for word in words] if model.gathers else words] = True
            assert said["marked"] == marks.sum()
            expected = plausibility(scores, marks)
            found = [said[f"{measure}_{name}"] for measure in explainers.PLAUSIBLE]
            assert found == pytest.approx([*expected], nan_ok=True)
    # Of a text with one candidate every answer is the same, and sampled importances are rounding errors.
    open_ = [example.candidates is None or len({*example.candidates}) > 1 for example in corpus.test]
    drawn = told[[f"tau_{a}_{b}" for a, b in explainers.pairs(explainers.RANKINGS)]]
    undefined = drawn.loc[[example.id for example in corpus.test]].isna().all(axis=1)
    assert undefined[open_].tolist() == [int(n) < 2 for n in reading.mask.sum(1)[open_]]


def evidence_that_draws_nothing():
    return ("gradient", "leave-one-out", "integrated-gradients")


def test_names_are_the_same_on_both_sides_and_every_measure_has_a_card():
    assert [*evidence.EXPLAINERS] == [*IMPORTANCES]
    emitted = {f"explainers/{name}" for name in concluded(explainer_rows(), explainers.conclude)["measure"]}
    assert emitted == set(EXPLAINER_CARDS)


def test_as_published_has_a_bin_of_no_words():
    corpus = marked_corpus()
    model = in_double(toy_model(corpus, encoder="average"))
    ours, theirs = (observed(corpus, model, mode=mode).set_index(["subject", "id"]) for mode in MODES)
    np.testing.assert_allclose(
        theirs["comprehensiveness_attention"], ours["comprehensiveness_attention"] * 5 / 6, atol=1e-12
    )
    about = explained(model, read(model, corpus))
    nothing = (about.probability - about.unread).numpy()
    expected = (5 * ours.loc["trained"]["sufficiency_gradient"] + nothing[order(corpus, ours)]) / 6
    np.testing.assert_allclose(theirs.loc["trained"]["sufficiency_gradient"], expected, atol=1e-9)


MODES = ("corrected", "as-published")


def order(corpus, rows):
    ids = [example.id for example in corpus.test]
    return [ids.index(name) for name in rows.loc["trained"].index]


def test_a_sample_is_spread_over_the_split_and_the_same_for_all():
    corpus = toy_corpus()
    rows = observed(corpus, toy_model(corpus, encoder="average"), sample=3)
    of = rows.groupby("subject")["id"].agg(set)
    assert len(rows) == 9 and of["trained"] == of["untrained"] == {"test-0", "test-2", "test-5"}
    assert (rows["marked"] == 0).all() and rows["auprc_lime"].isna().all()


@pytest.mark.parametrize("wrong", [{"sample": 0}, {"permutations": 3}, {"permutations": 0}, {"draws": 0}])
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(Refusal, match="experiment explainers"):
        Explainers(**wrong)


def test_findings_by_hand():
    rows = explainer_texts(
        4,
        tau_attention_lime=[0.5, 0.1, NAN, 0.3],
        comprehensiveness_shapley=[0.4, 0.2, 0.0, 0.2],
        comprehensiveness_random=[0.1, 0.1, 0.1, 0.3],
        marked=[3, 3, 0, 12],
        auprc_attention=[0.9, 0.5, NAN, NAN],
        null_auprc_attention=[0.3, 0.1, 0.7, 0.7],
    )
    found = concluded(rows, explainers.conclude)
    tau = one(found, "tau-attention-lime")
    assert (tau["estimate"], tau["null"], tau["n"]) == (pytest.approx(0.3), 0.0, 3)
    assert (tau["excluded"], tau["why"]) == (1, "constant or NaN vector")
    faithful = one(found, "comprehensiveness-shapley")
    assert (faithful["estimate"], faithful["null"]) == pytest.approx((0.2, 0.15))
    assert one(found, "comprehensiveness-shapley-excess")["estimate"] == pytest.approx(0.05)
    plausible = one(found, "auprc-attention")
    assert (plausible["estimate"], plausible["null"]) == pytest.approx((0.7, 0.2))
    assert (plausible["n"], plausible["excluded"]) == (2, 1), "a text without marks is not asked"


def test_without_rationales_plausibility_is_not_spoken_of():
    found = concluded(explainer_texts(3, marked=0), explainers.conclude)
    assert len(found) and not found["measure"].str.contains("f1|auprc").any()


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("family", ["bert", "llama", "bart"])
def test_a_part_of_a_transformers_text_is_that_text_tokenised(family, pairs):
    adopted, batch = made(family, double=True, pairs=pairs)
    with torch.no_grad():
        reading = adopted.read(batch)
    kept = (torch.rand(4, 5, reading.mask.shape[1], generator=seeded()) < 0.5) & reading.mask[:, None]
    found, about = answers_to_parts(adopted, reading, kept), explained(adopted, reading)
    for text, example in enumerate(examples(pairs=pairs)):
        second = [" ".join(example.query)] if pairs else []
        for variant in range(5):
            words = [word for word, stays in zip(example.tokens, kept[text, variant], strict=False) if stays]
            if not words:
                assert float(found[text, variant]) == pytest.approx(1 / 3)
                continue
            encoded = tokenizer(family)(" ".join(words), *second, return_tensors="pt")
            with torch.no_grad():
                said = distribution(adopted.transformer(**encoded).logits)[0, about.predicted[text]]
            assert float(found[text, variant]) == pytest.approx(float(said), abs=1e-6)


@pytest.mark.parametrize("choice", [{}, {"head": 0, "words": False}])
def test_everything_runs_on_a_transformer(choice):
    adopted, batch = made("bert", double=True, **choice)
    with torch.no_grad():
        reading = adopted.read(batch)
    about = explained(adopted, reading)
    said = explain(adopted, reading, rng=seeded(), effort=Effort(steps=64, permutations=2, samples=20))
    assert {values.shape for values in said.values()} == {reading.mask.shape}
    several = reading.mask.sum(1) > 1
    whole = (about.probability - about.unread)[several]
    torch.testing.assert_close(said["shapley"].sum(1)[several], whole, atol=1e-12, rtol=0)
    with torch.no_grad():
        empty = adopted.read(batch, embeddings=torch.zeros_like(reading.embeddings))
        begun = distribution(adopted.decide(empty)).gather(1, about.predicted[:, None])[:, 0]
    assert (said["integrated-gradients"].sum(1) - (about.probability - begun)).abs().max() < 1e-2
    scores = torch.stack([attention_of(reading), *said.values()], dim=1)
    found = faithfulness(
        adopted, reading, torch.cat([scores, random_scores(reading.mask, 2, rng=seeded())], 1)
    )
    assert found.aopc()[0].shape == (4, 8) and not found.aopc()[0][several].isnan().any()


class _Adapted:
    """A network that averages what its words say by their weights."""

    def __init__(self):
        torch.manual_seed(0)
        self.embedding, self.score, self.out = nn.Embedding(9, 4), nn.Linear(4, 1), nn.Linear(4, 2)

    def numbers(self, words):
        return [len(word) for word in words]

    def attend(self, vectors, mask):
        scores = self.score(vectors).squeeze(-1).masked_fill(~mask, float("-inf"))
        return vectors.tanh(), scores.softmax(-1)

    def decide(self, states, weights):
        return self.out((weights[..., None] * states).sum(1))

    def predict(self, tokens, mask):
        return self.decide(*self.attend(self.embedding(tokens), mask))


def test_everything_runs_on_an_adapted_module():
    corpus = toy_corpus(lengths=(4, 1, 6))
    model = AdaptedModel(_Adapted(), labels=corpus.labels)
    batch = model.split(corpus.test).batch(range(3))
    with torch.no_grad():
        reading = model.read(batch)
    said = explain(model, reading, rng=seeded(), effort=Effort(steps=4, permutations=2, samples=9))
    about = explained(model, reading)
    several = torch.tensor([0, 2])
    whole = (about.probability - about.unread)[several]
    torch.testing.assert_close(said["shapley"].sum(1)[several], whole)
    found = faithfulness(model, reading, torch.stack([*said.values()], dim=1))
    assert found.sufficiency.isnan().any(2).any(1).tolist() == [False, True, False]
    with torch.no_grad():
        alone = model.read(
            model.split([replace(corpus.test[0], tokens=corpus.test[0].tokens[1:2])]).batch([0])
        )
        expected = distribution(model.decide(alone))[0, about.predicted[0]]
    kept = torch.zeros(3, 1, 6, dtype=torch.bool)
    kept[0, 0, 1] = True
    torch.testing.assert_close(answers_to_parts(model, reading, kept)[0, 0], expected)


def test_attention_of_heads_is_their_mean():
    adopted, batch = made("bert")
    reading = adopted.read(batch)
    torch.testing.assert_close(attention_of(reading), reading.weights.detach().mean(1))


def test_on_planted_words_every_ranking_beats_chance(planted):
    model = at.train(planted, encoder="average", embedding=12, hidden=16, epochs=8, learning_rate=0.01)
    rows = observed(planted, model, sample=40, permutations=10, parts=100, steps=16)
    found = concluded(rows[rows["subject"] == "trained"].assign(seed=0), explainers.conclude)
    for ranking in explainers.RANKINGS:
        assert one(found, f"comprehensiveness-{ranking}-excess")["low"] > 0.2
        assert one(found, f"sufficiency-{ranking}-excess")["high"] < -0.2
        plausible = one(found, f"auprc-{ranking}")
        assert plausible["low"] > plausible["null"] + 0.1
    assert one(found, "token-f1-integrated-gradients")["estimate"] > 0.9
