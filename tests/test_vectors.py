"""Word vectors as an axis of a study: what is observed, told apart, and chosen by dev's scores."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from attentest.bench.plan import Planner, points
from attentest.bench.verbs import run_study
from attentest.compare.points import grid_points, told_apart
from attentest.compare.stored import Stored
from attentest.compare.verdicts import asks_for
from attentest.evidence.erasure.leave_one_out import leave_one_out
from attentest.evidence.importances.gradient import gradients
from attentest.experiments.contract import InMemory, Subject
from attentest.experiments.vectors.conclude import KEPT, choose_scales, conclude
from attentest.experiments.vectors.observe import Vectors, mean_norm
from attentest.model.config import ModelConfig
from attentest.model.networks.attention import ATTENTIONS, Dot, scaled_dot, unscaled_dot
from attentest.model.protocol import PROTOCOLS, SCALES, resolved
from attentest.model.training.building import build
from attentest.model.training.loop import Training
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.studies.recipe import load_study
from attentest.terminal.tables import findings_table
from tests.observed import concluded, one
from tests.observed_vectors import vector_texts
from tests.toys import toy_batch, toy_corpus, toy_model

DOCS = Path(__file__).parents[1] / "docs"


def observed(model, corpus, *, step=None, **siblings):
    subject = Subject(corpus, model.config, InMemory({"trained": model, **siblings}))
    return pd.DataFrame((step or Vectors()).observe(subject, np.random.default_rng(0))).set_index("id")


# --- what is observed


def test_rows_have_the_agreement_of_every_text():
    corpus = toy_corpus()
    model = toy_model(corpus, attention="dot-unscaled")
    rows = observed(model, corpus)
    assert sorted(rows.index) == sorted(example.id for example in corpus.test)
    found = gradients(model, toy_batch(model, corpus))
    importances = {"gradient": found.times_input, "loo": leave_one_out(model, found.reading).change}
    for place, example in enumerate(corpus.test):
        length = len(example.tokens)
        weights = found.reading.weights[place, :length]
        assert rows.loc[example.id, "max_attention"] == pytest.approx(float(weights.max()))
        for name, values in importances.items():
            tau = stats.kendalltau(weights, values[place, :length]).statistic if length > 1 else np.nan
            assert rows.loc[example.id, f"tau_{name}"] == pytest.approx(tau, nan_ok=True, abs=1e-6)


def test_a_sample_is_spread_over_the_texts():
    corpus = toy_corpus(lengths=(5, 3, 4, 2, 6, 7, 3))
    assert len(observed(toy_model(corpus), corpus, step=Vectors(sample=3))) == 3
    with pytest.raises(Refusal, match="experiment vectors"):
        Vectors(sample=-1)


@pytest.mark.parametrize(("labels", "measure"), [(("no", "yes"), "auc"), (("a", "b", "c"), "accuracy")])
def test_the_dev_score_is_the_one_that_training_selects_by(labels, measure):
    corpus = toy_corpus(labels=labels)
    model = toy_model(corpus, encoder="average", epochs=3)
    record = Training(model, corpus).run()
    (row,) = observed(model, corpus)[["dev_measure", "dev_score", "dev_accuracy"]].drop_duplicates().values
    assert row[0] == measure == Training(model, corpus).measure
    assert row[1:].tolist() == [record.scores["dev"][measure], record.scores["dev"]["accuracy"]]


def test_lengths_of_vectors_are_those_before_and_after_training():
    corpus = toy_corpus()
    model = toy_model(corpus, encoder="average", vectors="random(0.3)", epochs=3, learning_rate=0.1)
    start = mean_norm(model)
    expected = np.linalg.norm(model.embedding.weight[4:].detach().numpy(), axis=1).mean()
    assert start == pytest.approx(expected)
    Training(model, corpus).run()
    rows = observed(model, corpus)
    assert set(rows["norm_start"]) == {start} and set(rows["norm_trained"]) == {mean_norm(model)}
    assert mean_norm(model) != pytest.approx(start)


def test_vectors_that_no_seed_draws_again_need_the_model_before_training():
    corpus = toy_corpus()
    config = replace(toy_model(corpus).config, vectors=f"file:{'ab' * 32}")
    (name, sibling), *others = Vectors().siblings(config).items()
    assert name == "untrained" and sibling == replace(config, epochs=0) and not others
    assert Vectors().siblings(replace(config, vectors="random(0.3)")) == {}
    before, after = toy_model(corpus, seed=1), toy_model(corpus, seed=2)
    rows = observed(after, corpus, untrained=before)
    assert set(rows["norm_start"]) == {mean_norm(before)} != {mean_norm(after)}


# --- what is concluded


def test_findings_are_means_over_texts_and_numbers_of_models():
    rows = pd.concat(
        [
            vector_texts(4, 0, tau_gradient=0.2, max_attention=[0.1, 0.3, 0.1, 0.3], dev_score=0.8),
            vector_texts(4, 1, tau_gradient=[0.4, 0.4, np.nan, np.nan], dev_score=0.9, norm_trained=4.0),
        ]
    )
    findings = concluded(rows, conclude)
    assert one(findings, "tau-gradient")["estimate"] == pytest.approx(0.3)
    assert one(findings, "tau-gradient")["excluded"] == 2
    peak = one(findings, "max-weight-times-length")
    assert (peak["estimate"], peak["null"]) == (pytest.approx(1.5), 1.0)
    score = one(findings, "dev-score")
    assert (score["estimate"], score["null"], score["seeds"]) == (pytest.approx(0.85), 0.5, 2)
    assert one(findings, "dev-accuracy")["null"] == 0.55
    assert one(findings, "vector-norm-trained")["estimate"] == pytest.approx(3.0)
    several = concluded(vector_texts(3, dev_measure="accuracy"), conclude)
    assert one(several, "dev-score")["null"] == 0.55


# --- the rule


def scored(**gains):
    """27 models a scale, whose dev scores are those at 0.1 plus a gain and a little noise."""
    rng = np.random.default_rng(0)
    rows = []
    for corpus in ("sst", "20news", "imdb"):
        for encoder in ("bilstm", "cnn", "average"):
            for seed in range(3):
                base = rng.uniform(0.7, 0.9)
                about = {"attention": "dot", "corpus": corpus, "encoder": encoder, "seed": seed}
                rows.append({**about, "scale": 0.1, "score": base})
                for scale, gain in gains.items():
                    score = base + gain + rng.normal(0, 0.02)
                    rows.append({**about, "scale": float(scale), "score": score})
    return pd.DataFrame(rows)


def test_the_scale_with_the_best_dev_score_is_chosen():
    (choice,) = choose_scales(scored(**{"0.3": 0.01, "1.0": 0.05}))
    assert (choice.scale, choice.best, choice.pairs) == (1.0, 1.0, 27)
    assert choice.difference > choice.error > 0
    assert choice.means[1.0] - choice.means[0.1] == pytest.approx(choice.difference)


def test_a_difference_of_less_than_a_standard_error_keeps_the_scale():
    table = scored(**{"0.3": -0.02, "1.0": 0.0})
    chosen = table["scale"] == 1.0
    base = table.loc[table["scale"] == KEPT, "score"].to_numpy()
    spread = np.where(np.arange(27) % 2, 0.02, -0.02)
    for mean, expected in ((0.001, KEPT), (0.01, 1.0)):
        table.loc[chosen, "score"] = base + spread - spread.mean() + mean
        (choice,) = choose_scales(table)
        error = spread.std(ddof=1) / 27**0.5
        assert choice.best == 1.0 and choice.scale == expected and (mean > error) == (expected == 1.0)
        assert (choice.difference, choice.error) == (pytest.approx(mean), pytest.approx(error))


def test_where_0_1_is_the_best_it_stays_and_attentions_choose_apart():
    table = pd.concat([scored(**{"1.0": -0.05}), scored(**{"1.0": 0.05}).assign(attention="additive")])
    assert [(one.attention, one.scale) for one in choose_scales(table)] == [("additive", 1.0), ("dot", 0.1)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda table: table.iloc[:-1],
        lambda table: table[table["scale"] != KEPT],
        lambda table: pd.concat([table, table.iloc[:1]]),
    ],
    ids=["a model is missing", "0.1 is missing", "a model is there twice"],
)
def test_the_rule_is_not_applied_to_half_a_study(spoil):
    with pytest.raises(Refusal, match="dot attention"):
        choose_scales(spoil(scored(**{"1.0": 0.05})))


def test_every_attention_has_a_default_scale():
    assert set(SCALES) == set(ATTENTIONS)
    for attention in ATTENTIONS:
        config = ModelConfig(attention=attention)
        full = resolved(config, family="classification", classes=2, has_query=False)
        assert full.vectors == f"random({SCALES[attention]})"
    other = resolved(ModelConfig(attention="dot"), family="babi", classes=3, has_query=True)
    assert other.vectors == f"random({PROTOCOLS['babi'].scale})"


def test_the_default_scale_is_that_of_the_attention(monkeypatch):
    monkeypatch.setitem(SCALES, "dot", 0.7)
    made = [
        resolved(ModelConfig(attention=name), family=family, classes=2, has_query=False).vectors
        for name, family in (("dot", "classification"), ("additive", "classification"), ("dot", "reviews"))
    ]
    assert made == ["random(0.7)", "random(0.1)", "random(0.1)"]


# --- unscaled dot


@pytest.mark.parametrize("has_query", [False, True])
def test_unscaled_dot_is_dot_times_the_root_of_the_width(has_query):
    torch.manual_seed(0)
    scaled, unscaled = scaled_dot(9, has_query), unscaled_dot(9, has_query)
    assert isinstance(unscaled, Dot)
    unscaled.load_state_dict(scaled.state_dict())
    hidden, query = torch.randn(2, 4, 9), torch.randn(2, 9) if has_query else None
    torch.testing.assert_close(unscaled(hidden, query), 3.0 * scaled(hidden, query))


# --- the grid

TOY = """
study = "toy"
title = "Vectors"
seeds = 2
[grid]
corpus = ["planted-keyword"]
encoder = ["average"]
attention = ["additive", "dot"]
{axes}
[model]
hidden = 8
epochs = 1
{settings}
[[experiment]]
name = "performance"
[[experiment]]
name = "vectors"
parameters = {{ sample = 5 }}
"""


def toy_study(folder, axes="", settings=""):
    path = folder / "toy.toml"
    path.write_text(TOY.format(axes=axes, settings=settings))
    return str(path)


def keys(folder, store, **written):
    planner = Planner(Store(str(store)))
    return [cell.key for cell in planner.study(load_study(toy_study(folder, **written)))]


def test_axes_of_vectors_leave_the_keys_of_their_models_as_they_were(tmp_path):
    plain = keys(tmp_path, tmp_path / "store")
    assert (
        keys(tmp_path, tmp_path / "store", axes='vectors = ["random(0.1)"]\nembedding = ["default"]') == plain
    )
    several = keys(tmp_path, tmp_path / "store", axes='vectors = ["random(0.1)", "random(1.0)"]')
    assert set(plain) < set(several) and len(several) == 2 * len(plain)
    shared = keys(tmp_path, tmp_path / "store", settings="embedding = 6")
    assert keys(tmp_path, tmp_path / "store", axes="embedding = [6]") == shared
    assert not set(shared) & set(plain)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ({"axes": "embedding = [6]", "settings": "embedding = 6"}, "either shared or varied"),
        ({"axes": "embedding = [0]"}, "grid.embedding"),
        ({"axes": 'embedding = ["wide"]'}, "grid.embedding"),
        ({"axes": "vectors = []"}, "grid.vectors"),
    ],
)
def test_wrong_axes_are_refused(tmp_path, written, said):
    with pytest.raises(Refusal, match=said):
        load_study(toy_study(tmp_path, **written))


VECTORS = "".join(f"{word} 1.0 2.0 3.0\n" for word in ("the", "a", "of", "good", "bad", "film", "day"))


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    with gzip.open(folder / "some.txt.gz", "wt") as file:
        file.write(VECTORS)
    return folder


AXES = 'vectors = ["random(0.1)", "random(1.0)", "data:some.txt.gz"]\nembedding = [6, "default"]'


def test_a_vector_file_of_the_data_directory_is_one_model_and_may_be_absent(tmp_path, data):
    path = toy_study(tmp_path, axes=AXES)
    assert len(points(load_study(path))) == 2 * 6
    found = {}
    for folder in (data, tmp_path):
        result = run_study(path, str(tmp_path / folder.name), data_dir=str(folder), only_plan=True)
        found[folder] = result["skipped"], sum(cell["stage"] == "finding" for cell in result["plan"])
    assert found[data] == ([], 2 * 2 * 5)  # a file has one width: no point of its own for each
    assert found[tmp_path] == ([{"vectors": "data:some.txt.gz", "reason": "absent"}], 2 * 2 * 4)
    with pytest.raises(Refusal, match="no file data:some"):
        only = toy_study(tmp_path, axes='vectors = ["data:some.txt.gz"]')
        run_study(only, str(tmp_path / "none"), data_dir=str(tmp_path), only_plan=True)


@pytest.mark.slow
def test_findings_of_other_vectors_are_told_apart_everywhere(tmp_path, data):
    path, store = toy_study(tmp_path, axes=AXES), str(tmp_path / "store")
    result = run_study(path, store, data_dir=str(data), engine="inline", device="cpu")
    assert result["failed"] == []
    overall = [row for row in result["findings"] if row["measure"] == "tau-loo"]
    made = {(row["attention"], row["vectors"], row["embedding"]) for row in overall}
    assert len(overall) == len(made) == 10
    assert json.loads(json.dumps(overall[0]))["embedding"] == 6
    shown = findings_table(pd.DataFrame(result["findings"]), "Vectors")
    titles = {block.plain for block in shown.renderables if hasattr(block, "plain")}
    assert "planted-keyword: average + additive, random(1.0), 6 wide" in titles
    assert any("file:" in title and "3 wide" in title for title in titles)
    stored = Stored(Store(store))
    pages = grid_points(stored)
    assert len({page.file for page in pages}) == len(pages) == 10
    assert len({(page.model, differs) for page, differs in zip(pages, told_apart(pages), strict=True)}) == 10
    study = load_study(path)
    assert all(asks_for(study, finding) for finding in stored.every)
    other = load_study(toy_study(tmp_path, axes='vectors = ["random(1.0)"]\nembedding = [6]'))
    assert {f.settings["vectors"] for f in stored.every if asks_for(other, f)} == {"random(1.0)"}
    norms = {
        row["vectors"][:11]: row["estimate"]
        for row in result["findings"]
        if row["measure"] == "vector-norm-start"
    }
    assert norms["random(1.0)"] > 5 * norms["random(0.1)"] > 0 and norms[min(norms)] > 0


@pytest.mark.slow
def test_the_rule_is_read_off_a_store(tmp_path):
    path = toy_study(tmp_path, axes='vectors = ["random(0.1)", "random(1.0)"]\nembedding = [6, "default"]')
    store = str(tmp_path / "store")
    run_study(path, store, engine="inline", device="cpu")
    done = subprocess.run(
        [sys.executable, str(DOCS / "vectors.py"), store], capture_output=True, text=True, check=True
    )
    assert "| attention | dev score at 0.1 | dev score at 1 |" in done.stdout
    assert "| planted-keyword | average | dot | random(1.0), 6 wide |" in done.stdout


def test_the_study_of_the_package_asks_for_what_the_rule_needs():
    study = load_study("vectors")
    asked = points(study)
    assert len(asked) == 3 * 3 * 3 * 8 and study.seeds == 3
    wanted = {point.vectors for point in asked if point.embedding is None}
    assert {"random(0.1)", "random(0.3)", "random(1.0)"} <= wanted
    assert {point.attention for point in asked} == {"additive", "dot", "dot-unscaled"}


def test_models_of_other_vectors_are_built_alike_but_for_these():
    corpus = toy_corpus()
    small, large = (toy_model(corpus, vectors=f"random({scale})") for scale in (0.1, 1.0))
    torch.testing.assert_close(10 * small.embedding.weight, large.embedding.weight)
    again = build(large.config, corpus, large.vocabulary)
    assert torch.equal(again.embedding.weight, large.embedding.weight)
    assert all(
        torch.equal(mine, theirs)
        for (name, mine), theirs in zip(small.named_parameters(), large.parameters(), strict=True)
        if not name.startswith("embedding.")
    )
