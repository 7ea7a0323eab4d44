"""A corpus with parameters in its name: one canonical spelling, one key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from attentest.bench.corpora import corpus_cell, prepare_corpus, stored_corpus
from attentest.bench.verbs import run_study
from attentest.cli.main import app
from attentest.corpus.catalogue import CORPORA, find_source, fingerprint, load_corpus
from attentest.corpus.fetch.download import download_corpus
from attentest.corpus.shelf import describe
from attentest.corpus.variants import DEFAULTS, canonical_name
from attentest.refusal import Refusal
from attentest.store.store import Store

SMALL = "planted-reviews(dev=10,test=10,train=30)"
STUDY = """
study = "variants"
title = "Two variants"
cite = "jain2019attention"
seeds = 1
[grid]
corpus = ["{one}", "planted-reviews(classes=5,dev=10,test=10,train=30)"]
[[experiment]]
name = "performance"
"""


@pytest.mark.parametrize(
    "written, canonical",
    [
        ("planted-reviews", "planted-reviews"),
        ("planted-reviews()", "planted-reviews"),
        ("planted-reviews(classes=2)", "planted-reviews"),
        ("planted-reviews( length=60 , classes = 5 )", "planted-reviews(classes=5,length=60)"),
        ("planted-reviews(negation=.50,cues=3)", "planted-reviews(negation=0.5)"),
        ("planted-reviews(negation=-0)", "planted-reviews(negation=0.0)"),
        ("planted-reviews(domain=film,classes=5)", "planted-reviews(classes=5,domain=film)"),
        ("sst", "sst"),
        ("mine", "mine"),
    ],
)
def test_a_name_has_one_spelling(written: str, canonical: str) -> None:
    assert canonical_name(written) == canonical == canonical_name(canonical)


@given(
    chosen=st.fixed_dictionaries(
        {},
        optional={
            "classes": st.sampled_from((2, 5)),
            "negation": st.floats(0, 1),
            "noise": st.floats(0, 1),
            "seed": st.integers(0, 2**31),
            "domain": st.sampled_from(("film", "product", "both")),
        },
    )
)
@settings(max_examples=50, deadline=None)
def test_parameters_survive_their_spelling(chosen: dict) -> None:
    name = canonical_name("planted-reviews", chosen)
    source = find_source(name)
    assert source is not None and source.origin.parameters == DEFAULTS | chosen
    shuffled = ", ".join(f"{key} = {value}" for key, value in reversed(chosen.items()))
    assert canonical_name(f"planted-reviews({shuffled})") == name


def test_a_corpus_is_the_same_however_its_parameters_are_given() -> None:
    one = load_corpus(" planted-reviews(train=30, test=10,dev=10)")
    two = load_corpus("planted-reviews(train=30)", test=10, dev=10)
    assert one == two and one.name == SMALL
    assert fingerprint(SMALL) != fingerprint("planted-reviews")
    assert load_corpus("planted-reviews(train=99)", train=30, test=10, dev=10) == one, "an argument wins"


@pytest.mark.parametrize(
    "name, said",
    [
        ("planted-reviews(classes)", "'classes', but needs parameters as name=value"),
        ("planted-reviews(classes=5,)", "got '', but needs"),
        ("planted-reviews(cues=2,cues=3)", "'cues=3' a second time"),
        ("planted-reviews(colour=red)", "one of classes, cues, strength"),
        ("planted-reviews(cues=many)", "cues: got 'many', but needs a whole number"),
        ("planted-reviews(noise=loud)", "noise: got 'loud', but needs a number"),
        ("planted-keyword(balance=0.2)", "a corpus that has some, which is planted-reviews"),
        ("planted-reviews(classes=5", "one of sst, imdb"),
    ],
)
def test_what_is_no_variant_is_refused_in_a_sentence(name: str, said: str, tmp_path: Path) -> None:
    for call in (load_corpus, fingerprint, describe):
        with pytest.raises(Refusal) as refused:
            call(name, data_dir=tmp_path) if call is load_corpus else call(name, tmp_path)
        assert said in str(refused.value)


def test_parameters_of_a_corpus_without_any_are_refused() -> None:
    with pytest.raises(Refusal, match="'sst': got parameters"):
        load_corpus("sst", classes=5)


def test_variants_are_cells_of_their_own_and_come_back_from_the_store(tmp_path: Path) -> None:
    cell = corpus_cell("planted-reviews( train=30,test=10,dev=10)")
    assert cell == corpus_cell(SMALL) and cell.config["name"] == SMALL
    assert cell.key != corpus_cell("planted-reviews").key
    store = Store(str(tmp_path))
    prepare_corpus(cell, store)
    assert stored_corpus(store, cell.key)[0] == load_corpus(SMALL)


def test_a_study_names_variants_in_its_grid(tmp_path: Path) -> None:
    path = tmp_path / "variants.toml"
    path.write_text(STUDY.format(one=SMALL))
    plan = run_study(str(path), str(tmp_path / "store"), only_plan=True)
    assert len(plan["plan"]) > 2 and not plan["skipped"]
    path.write_text(STUDY.format(one="planted-reviews(train=30,dev=10,test=10)"))
    with pytest.raises(Refusal) as refused:
        run_study(str(path), str(tmp_path / "store"), only_plan=True)
    assert f"needs {SMALL!r}" in str(refused.value)
    written = ["planted-reviews(train=30,dev=10,test=10)"]
    again = run_study(str(path), str(tmp_path / "store"), corpora=written, only_plan=True)
    assert {cell["cell"] for cell in again["plan"]} < {cell["cell"] for cell in plan["plan"]}


def test_the_command_line_lists_and_describes_the_parameters(tmp_path: Path) -> None:
    run = CliRunner()
    listed = json.loads(run.invoke(app, ["corpora", "list", "--json"]).stdout)["corpora"]
    (entry,) = [entry for entry in listed if entry["name"] == "planted-reviews"]
    assert entry["status"] == "embedded" and entry["licence"] == CORPORA["planted-reviews"].licence
    name = "planted-reviews(train=30,dev=10,test=10)"
    about = json.loads(run.invoke(app, ["corpora", "describe", name, "--json"]).stdout)
    assert about["name"] == SMALL and about["counts"]["train"] == {"negative": 15, "positive": 15}
    assert about["parameters"]["train"] == {"value": 30, "default": 4000, "meaning": "training texts"}
    said = run.invoke(app, ["corpora", "describe", name]).stdout
    assert "the highest grade of a cue" in said and "Apache-2.0" in said
    assert "parameters" not in describe("planted-keyword")


def test_nothing_of_a_variant_is_downloaded(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="attentest makes it"):
        download_corpus(SMALL, tmp_path)
