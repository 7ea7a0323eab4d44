"""The guided MLP (WP-3): whose weights it gets, what its rows say, and which contests are concluded."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from attentest.experiments.guided import conclude as guided
from attentest.experiments.guided.observe import Guided
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal
from tests.observed import concluded, one
from tests.observed_wiegreffe_pinter import GUIDES, answers, guided_rows, observed
from tests.toys import toy_batch, toy_corpus

BORROWED = {"base": "trained", "adversary": "trained adversary", "untrained": "untrained"}


def test_every_guide_stands_before_the_mlp_that_borrows_from_it():
    config = ModelConfig(hidden=8, seed=3, epochs=8, start_from="x")
    siblings = Guided().siblings(config)
    names = list(siblings)
    assert names == ["untrained", "shuffled labels", "trained adversary", *(f"guided by {g}" for g in GUIDES)]
    mlps = {name: siblings[f"guided by {name}"] for name in GUIDES}
    plain = ModelConfig(hidden=8, seed=3, epochs=8, encoder="average")
    assert mlps["own"] == plain and mlps["uniform"] == replace(plain, projection="uniform")
    for name, whose in (("base", "subject"), ("adversary", "trained adversary"), ("untrained", "untrained")):
        assert mlps[name] == replace(plain, projection="stored", guide=whose)
    adversary = siblings["trained adversary"]
    assert (adversary.loss, adversary.epochs, adversary.patience) == ("imitate(subject, 0.001)", 80, 10)
    assert adversary.encoder == "bilstm" and adversary.start_from is None


def test_the_mlp_decides_under_the_weights_of_its_guide():
    corpus = toy_corpus()
    rows, models = observed(Guided(), corpus)
    assert set(rows["subject"]) == {"trained", "trained adversary", *(f"guided by {g}" for g in GUIDES)}
    for guide, name in BORROWED.items():
        with torch.no_grad():
            batch = toy_batch(models["trained"], corpus)
            theirs = models[name].read(batch).weights
            reading = models[f"guided by {guide}"].read(batch)
            logits = models[f"guided by {guide}"].decide(reading, theirs)
        torch.testing.assert_close(reading.weights, theirs, atol=1e-6, rtol=0)
        told = rows[rows["subject"] == f"guided by {guide}"].set_index("id")["probabilities"]
        yes = np.array([told[name][1] for name in batch.ids])
        np.testing.assert_allclose(yes, torch.sigmoid(logits[:, 0]).numpy(), rtol=1e-5)
    own = rows[rows["subject"] == "guided by own"].set_index("id")["max_attention"]
    assert not np.allclose(own, rows[rows["subject"] == "guided by base"].set_index("id")["max_attention"])


def scores(**right):
    tables = [
        answers(20, seed, name if name.startswith("trained") else f"guided by {name}", share)
        for name, shares in right.items()
        for seed, share in enumerate(shares)
    ]
    return concluded(pd.concat(tables), guided.conclude)


def test_contests_by_hand():
    findings = scores(
        trained=(0.9, 0.9),
        uniform=(0.6, 0.7),
        own=(0.8, 0.7),
        base=(0.9, 0.75),
        adversary=(0.5, 0.8),
        untrained=(0.6, 0.65),
    )
    base = one(findings, "accuracy-beyond-uniform", "guided by base")
    assert base["estimate"] == pytest.approx((0.3 + 0.05) / 2)
    assert base["null"] == pytest.approx((0.0 - 0.05) / 2), "what weights of an untrained model do"
    assert one(findings, "accuracy-beyond-uniform", "guided by adversary")["estimate"] == pytest.approx(0.0)
    others = one(findings, "accuracy-beyond-others", "guided by base")
    assert others["estimate"] == pytest.approx((0.1 - 0.05) / 2), "the best of the others, seed by seed"
    assert (others["null"], others["seeds"], others["n"]) == (0.0, 2, 40)
    untrained = one(findings, "accuracy-beyond-uniform", "guided by untrained")
    assert math.isnan(untrained["null"])
    assert one(findings, "accuracy", "guided by own")["estimate"] == pytest.approx(0.75)
    assert one(findings, "accuracy", "trained")["estimate"] == pytest.approx(0.9)


def test_an_experiment_without_some_guides_says_what_it_can():
    findings = scores(trained=(0.9,), uniform=(0.6,), base=(0.8,))
    assert "accuracy-beyond-others" not in set(findings["measure"])
    assert math.isnan(one(findings, "accuracy-beyond-uniform", "guided by base")["null"])


def test_rows_of_the_house():
    findings = concluded(guided_rows(), guided.conclude)
    assert len(findings[findings["measure"] == "f1"]) == 8
    assert len(findings[findings["measure"] == "f1-beyond-uniform"]) == 5


@pytest.mark.parametrize("strength", [-1.0, math.inf, math.nan])
def test_a_lambda_that_cannot_be_is_refused(strength):
    with pytest.raises(Refusal, match="a number, 0 or more"):
        Guided(adversary=strength)
