"""The command line as a person and as a program use it, on a corpus of sixty short texts."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

import attentest
from attentest.bench import showcase
from attentest.bench.study import run_cells
from attentest.bench.subjects import load_model
from attentest.cli.main import app, corpora, run
from attentest.experiments.permutation.observe import Permutation
from attentest.gallery import extra
from attentest.gallery import showcase as gallery
from attentest.model.batch import IndexedSplit
from attentest.model.reader import split_logits
from attentest.store.store import Store
from attentest.terminal.demonstration import show_demo
from tests.command_line import STUDY, TINY, add, table


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a data directory in which `mine` is registered, and a study about it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTEST_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("ATTENTEST_STORE", raising=False)
    add(tmp_path / "data", "mine", table())
    (tmp_path / "tiny.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def answer(capsys):
    """Run a command with --json: its status and the one document on standard output."""

    def of(*words):
        status = run([*map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert not err
        return status, json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))

    return of


@pytest.fixture
def page(capsys):
    """Run a command for a person: its status and what it printed."""

    def of(*words):
        status = run(list(map(str, words)))
        out, err = capsys.readouterr()
        assert not err
        return status, out

    return of


# --- train


def test_train_answers_with_the_fields_that_programs_rely_on(here, answer):
    status, said = answer("train", "mine", *TINY)
    assert status == 0
    assert said["corpus"] == "mine" and len(said["cell"]) == 64 and said["seconds"] >= 0
    for split in ("dev", "test"):
        assert {"accuracy", "f1", "auc"} <= set(said["scores"][split])
        assert all(0 <= score <= 1 for score in said["scores"][split].values())
    assert Store(here / "attentest-store").has(said["cell"])


def test_train_shows_a_person_the_scores_and_the_cell(here, answer, page):
    _, said = answer("train", "mine", *TINY)
    status, shown = page("train", "mine", *TINY)
    assert status == 0
    for word in ("mine: average + additive", "accuracy", "AUC", "dev", "test", said["cell"][:12]):
        assert word in shown


def test_the_same_command_again_is_answered_from_the_store(here, answer):
    _, first = answer("train", "mine", *TINY)
    cell = here / "attentest-store" / "cells" / first["cell"] / "cell.json"
    before = cell.read_bytes(), cell.stat().st_mtime_ns
    _, second = answer("train", "mine", *TINY)
    assert (cell.read_bytes(), cell.stat().st_mtime_ns) == before
    assert second["cell"] == first["cell"] and second["scores"] == first["scores"]
    _, other = answer("train", "mine", *TINY, "--seed", 1)
    assert other["cell"] != first["cell"]


def test_a_saved_model_gives_the_same_logits_as_the_stored_one(here, answer):
    _, said = answer("train", "mine", *TINY, "--out", here / "model")
    loaded = attentest.load(here / "model")
    stored = load_model(Store(here / "attentest-store"), said["cell"], "cpu")
    corpus = attentest.load_corpus("mine")
    texts = IndexedSplit(corpus.test, stored.vocabulary, corpus.labels)
    logits = split_logits(loaded, texts)
    assert logits.shape == (len(corpus.test), 1) and torch.equal(logits, split_logits(stored, texts))
    assert answer("train", "mine", *TINY, "--out", here / "model")[0] == 0, "a model may be written over"


def test_the_store_is_the_option_then_the_variable_then_a_folder_here(here, answer, monkeypatch):
    monkeypatch.setenv("ATTENTEST_STORE", str(here / "by-variable"))
    answer("train", "mine", *TINY)
    answer("train", "mine", *TINY, "--store", here / "by-option")
    monkeypatch.delenv("ATTENTEST_STORE")
    answer("train", "mine", *TINY)
    for name in ("by-variable", "by-option", "attentest-store"):
        _, listed = answer("list", "--store", here / name)
        assert [cell["stage"] for cell in listed["cells"] if cell["stage"] == "model"] == ["model"]


# --- corpora


def test_corpora_are_listed_with_those_of_the_user(here, answer, page):
    status, said = answer("corpora", "list")
    found = {corpus["name"]: corpus["status"] for corpus in said["corpora"]}
    assert status == 0 and found["mine"] == "registered"
    assert found["planted-keyword"] == "embedded" and found["sst"] == "downloadable"
    assert found["mimic-anemia"] == "needs credentials" and found["adr"] == "not redistributable"
    status, shown = page("corpora", "list")
    assert status == 0 and all(name in shown for name in found)


def test_a_corpus_is_described_by_its_counts(here, answer, page):
    status, said = answer("corpora", "describe", "mine")
    assert status == 0 and said["labels"] == ["neg", "pos"] and not said["query"]
    assert sum(sum(split.values()) for split in said["counts"].values()) == 60
    status, shown = page("corpora", "describe", "mine")
    assert status == 0 and "neg, pos" in shown
    status, shown = page("corpora", "describe", "sst")
    assert status == 0 and "downloadable" in shown and "nlp.stanford.edu" in shown


def test_adding_a_corpus_says_what_was_found(here, answer, page):
    words = ("corpora", "add", "again", here / "mine.csv", "--text", "text", "--label", "label")
    status, said = answer(*words)
    assert status == 0 and said["corpus"] == "again" and said["labels"] == ["neg", "pos"]
    assert sum(said["texts"].values()) == 60 and set(said["texts"]) == {"train", "dev", "test"}
    status, shown = page(*words)
    assert status == 0 and "attentest train again" in shown
    assert not (here / "data" / "registered" / "again.toml").exists(), "a data folder may be shared"
    status, said = answer("corpora", "remove", "again")
    assert status == 0 and said["removed"] == str(here / "own" / "attentest" / "registered" / "again.toml")
    assert "again" not in {entry["name"] for entry in answer("corpora", "list")[1]["corpora"]}
    assert (here / "mine.csv").exists()


def test_what_is_not_your_own_registration_is_not_removed(here, answer):
    for name, says in (("sst", "no table is registered"), ("mine", "--data-dir")):
        status, said = answer("corpora", "remove", name)
        assert status == 2 and says in said["error"]["message"]
    assert answer("corpora", "remove", "mine", "--data-dir", "data")[0] == 0


# --- study


def test_a_study_answers_with_the_fields_that_programs_rely_on(here, answer, page):
    status, said = answer("study", "tiny.toml", "--workers", 1)
    assert status == 0
    assert said["study"] == "tiny" and said["cells"] == said["done"] > 0
    assert said["failed"] == [] and said["seconds"] > 0
    assert {finding["experiment"] for finding in said["findings"]} == {"performance", "permutation"}
    [claim] = said["claims"]
    assert claim["verdict"] == "supported" and claim["p"] == claim["p_corrected"] < 0.05
    assert claim["p_refutes"] == claim["p_refutes_corrected"] > 0.9
    assert "test that the true value is below 0.1: p " in claim["reason"]
    [whole] = said["claim_verdicts"]
    assert whole.pop("says") == claim["says"] and whole.pop("statistic") == claim["statistic"]
    assert whole.pop("reason") == "of 1 grid point supported at 1" and whole.pop("mode") == "corrected"
    assert whole == {"verdict": "supported", "points": 1, "supported": 1, "refuted": 0, "undecided": 0}
    status, shown = page("study", "tiny.toml")
    assert status == 0 and "median output change" in shown
    assert "  supported: of 1 grid point supported at 1\n    supported " in shown
    assert "0 of them now" in shown, "what is in the store is not done again"


def test_corpora_and_seeds_of_a_study_can_be_chosen(here, answer):
    add(here / "data", "other", table(40))
    status, said = answer("study", "tiny.toml", "--engine", "inline", "--corpus", "other", "--seeds", 2)
    assert status == 0
    assert {(finding["corpus"], finding["seeds"]) for finding in said["findings"]} == {("other", 2)}


def test_a_plan_can_be_done_cell_by_cell_and_in_any_words(here, answer, page):
    status, said = answer("study", "tiny.toml", "--plan")
    assert status == 0 and said["done"] == 1, "a corpus is prepared while planning"
    keys = [cell["cell"] for cell in said["plan"]]
    assert len(keys) == said["cells"] - 1
    _, listed = answer("list")
    assert sorted(listed["planned"]) == sorted(keys) and not listed["failed"]
    status, shown = page("study", "tiny.toml", "--plan")
    lines = shown.splitlines()[: len(keys)]
    assert status == 0 and [line.split()[0] for line in lines] == [key[:12] for key in keys]
    assert "model" in lines[0] and "mine: average + additive, seed 0" in lines[0] and "not known" in lines[0]
    assert {cell["experiment"] for cell in said["plan"]} == {None, "performance", "permutation"}
    assert {cell["corpus"] for cell in said["plan"]} == {"mine"} and said["plan"][0]["seconds"] is None
    for number, key in enumerate(keys):
        status, done = answer("run-cell", key if number % 2 else key[:16])
        assert status == 0 and done["cell"] == key and not done["failed"]
    status, shown = page("run-cell", keys[0])
    assert status == 0 and "done" in shown
    status, said = answer("study", "tiny.toml", "--engine", "inline")
    assert status == 0 and said["computed"] == 0 and said["done"] == said["cells"]


def test_every_finding_can_be_concluded_again(here, answer, page):
    _, said = answer("study", "tiny.toml", "--engine", "inline")
    status, again = answer("conclude")
    assert status == 0 and again["same"] == 2 and not again["changed"] and not again["waiting"]
    plain = [{k: v for k, v in finding.items() if k != "cell"} for finding in said["findings"]]
    assert all({k: v for k, v in finding.items() if k != "cell"} in plain for finding in again["findings"])
    status, shown = page("conclude")
    assert status == 0 and "2 the same, 0 changed" in shown


def test_a_store_lists_its_cells(here, answer, page):
    answer("study", "tiny.toml", "--engine", "inline")
    status, said = answer("list")
    stages = [cell["stage"] for cell in said["cells"]]
    assert status == 0 and not said["failed"] and not said["planned"]
    assert sorted(set(stages)) == ["corpus", "finding", "model", "observation", "reading"]
    status, shown = page("list")
    assert status == 0 and f"{len(stages)} cells" in shown and "untrained" in shown


def test_a_cell_that_fails_is_listed_and_the_rest_is_finished(here, answer, capsys, monkeypatch):
    def observe(self, subject, rng):
        raise ArithmeticError("the moon was\nin the wrong place [/b]")

    words = ["study", "tiny.toml", "--engine", "inline"]
    with monkeypatch.context() as patch:
        patch.setattr(Permutation, "observe", observe)
        assert run([*words, "--json"]) == 1
        out, err = capsys.readouterr()
        said = json.loads(out)
        assert "the moon was" in err and "Traceback" not in err
        assert run(words) == 1
        assert "the moon was" in capsys.readouterr().out
    observation, finding = said["failed"]
    assert "the moon was" in observation["error"] and observation["cell"][:12] in finding["error"]
    assert {found["experiment"] for found in said["findings"]} == {"performance"}
    assert said["done"] == said["cells"] - 2
    _, listed = answer("list")
    assert [failure["cell"] for failure in listed["failed"]] == [observation["cell"]]
    status, said = answer(*words)
    assert status == 0 and said["computed"] == 2 and not said["failed"]
    assert answer("list")[1]["failed"] == []


# --- demo

DEMO = (
    STUDY.replace("average", "bilstm")
    + """
[[experiment]]
name = "importance"
parameters = { nulls = 2 }

[[experiment]]
name = "adversary"
parameters = { candidates = 2, steps = 5, searched = 4, matched = 2 }
"""
)


MORE = STUDY.partition("[[experiment]]")[0] + '[[experiment]]\nname = "uniform-baseline"'


def in_this_process(cells, planner, *, engine, watcher):
    """Instead of workers, each of which imports torch: they are tested with a study."""
    assert engine == "local"
    return run_cells(cells, planner, engine="inline", watcher=watcher)


@pytest.fixture
def small_demo(here, monkeypatch):
    """The demo on sixty short texts; one of its corpora goes by the name of the stand-in for bAbI."""
    (here / "demo.toml").write_text(DEMO)
    (here / "more.toml").write_text(MORE)
    monkeypatch.setattr(showcase, "STUDIES", ("demo.toml", "more.toml"))
    monkeypatch.setattr(showcase, "SHORT", ("demo.toml",))
    monkeypatch.setattr(gallery, "STAND_IN", "mine")
    monkeypatch.setattr(showcase, "run_cells", in_this_process)
    if find_spec("altair") is not None:  # to draw every figure takes most of the time
        monkeypatch.setattr("attentest.gallery.pictures.FIGURES", {})


def test_the_demo_shows_numbers_a_distribution_texts_and_pages(small_demo, here, answer, page, monkeypatch):
    status, said = answer("demo", "--full", "--store", "s", "--seeds", 1)
    assert status == 0 and not said["failed"] and said["store"] == "s"
    assert {"adversary", "uniform-baseline"} <= {row["experiment"] for row in said["findings"]}
    assert sum(said["histogram"]["shares"]) == pytest.approx(1) and said["histogram"]["n"] == 10
    [pair] = said["pairs"]
    assert [len(strip["weights"]) for strip in pair["strips"]] == [len(pair["tokens"])] * 3
    assert said["texts"] and said["published"] == [], "nobody has published a number about `mine`"
    if said["site"]:
        assert said["site"]["index"] == "s/site/index.html" and (here / "s/site/index.html").exists()
    monkeypatch.setattr(extra, "find_spec", lambda name: None)
    status, shown = page("demo", "--full", "--store", "s", "--seeds", 1)
    assert status == 0
    for words in ("tau gradient excess", "its null: values permuted", "Another attention, the same answer"):
        assert words in shown
    assert "furthest with the same output, JSD" in shown and "emax jsd unpaired" not in shown
    assert "pip install 'attentest[web]'" in shown, "without the pages it says how to have them"


def test_the_short_demo_is_one_screen_and_says_three_things(small_demo, answer, page):
    status, said = answer("demo", "--store", "s", "--seeds", 1)
    look = said["first_look"]
    assert status == 0 and len(look["weights"]) == len(look["other_weights"]) == len(look["tokens"])
    assert sum(look["other_weights"]) == pytest.approx(1) and look["says"]
    assert all({"test", "estimate", "null", "power"} <= set(test) for test in look["tests"])
    status, shown = page("demo", "--store", "s", "--seeds", 1)
    lines = shown.splitlines()
    assert status == 0 and len(lines) <= 24 and max(map(len, lines)) <= 80
    for words in (
        "where it looks",
        "very different attention",
        "models whose truth is known",
        "s/site/index.html",
    ):
        assert words in shown


def test_a_store_remembers_the_studies_that_ran_in_it(here, answer, page):
    assert answer("study", "tiny.toml", "--store", "s", "--engine", "inline")[0] == 0
    (here / "tiny.toml").unlink()
    status, said = answer("study", "tiny", "--store", "s", "--plan")
    assert status == 0 and said["study"] == "tiny" and said["plan"] == [], "its TOML stayed in the store"
    assert answer("study", "tiny", "--store", "elsewhere", "--plan")[0] == 2


def test_the_demo_prints_the_published_row_as_a_stand_in():
    row = {
        "model": "BiLSTM",
        "statistic": "importance/tau-gradient",
        "published": 0.23,
        "published_std": 0.19,
        "published_a": 0.25,
        "published_a_std": 0.16,
    }
    row |= {"ours": 0.301, "low": 0.289, "high": 0.311, "null": 0.446, "agrees": "not comparable"}
    row |= {"why": "babi-1-simulated stands in for the paper's data"}
    document = {name: [] for name in ("findings", "claims", "failed", "texts", "pairs")}
    document |= {"title": "t", "done": 0, "cells": 0, "computed": 0, "seconds": 0.0, "store": "s"}
    document |= {
        "device": "cpu",
        "histogram": None,
        "published": [row],
        "site": {"index": "s/site/index.html"},
    }
    console = Console(record=True, width=90, file=io.StringIO())
    show_demo(document, console)
    shown = console.export_text()
    assert re.search(
        r"BiLSTM +tau gradient +0\.23 ± 0\.19 +0\.25 ± 0\.16 +0\.301 +0\.289 to 0\.311 +0\.446", shown
    )
    assert "not comparable: babi-1-simulated stands in" in shown and "Open s/site/index.html" in shown


# --- the process


def test_help_of_every_command_answers_without_torch():
    commands = [[command.name or command.callback.__name__] for command in app.registered_commands]
    commands += [["corpora", command.name] for command in corpora.registered_commands]
    assert ["train"] in commands and ["run-cell"] in commands and ["corpora", "add"] in commands
    code = (
        "import sys\n"
        "from attentest.cli.main import run\n"
        f"for words in {[[], ['corpora'], *commands]!r}:\n"
        "    assert run([*words, '--help']) == 0, words\n"
        "sys.exit('torch' in sys.modules or 'pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: attentest") == len(commands) + 2


def wait_for(path, pattern, process):
    limit = time.monotonic() + 60
    while not any(path.glob(pattern)):
        assert process.poll() is None and time.monotonic() < limit, process.communicate()
        time.sleep(0.01)


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(here, answer):
    # No word says the label, so no epoch is perfect and the training lasts.
    add(here / "data", "noise", table().replace("an awful", "some").replace("a fine", "some"))
    words = ["train", "noise", "--epochs", "6", "--batch-size", "1", "--device", "cpu"]
    process = subprocess.Popen(
        [sys.executable, "-m", "attentest", *words, "--store", "broken", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"ATTENTEST_CHECKPOINT_SECONDS": "0"},
    )
    wait_for(here / "broken", "partial/*/state.safetensors", process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and not out
    assert err == "Interrupted. What is done is kept; the same command goes on from there.\n"
    [state] = (here / "broken").glob("partial/*/state.safetensors")
    notes = json.loads(bytes(load_file(state)["notes"].numpy()))
    assert (notes["epoch"], notes["step"]) > (1, 0) and not Store(here / "broken").failures()

    _, resumed = answer(*words, "--store", "broken")
    _, straight = answer(*words, "--store", "whole")
    assert resumed["cell"] == straight["cell"] and resumed["scores"] == straight["scores"]
    models = [here / name / "cells" / resumed["cell"] / "model.safetensors" for name in ("broken", "whole")]
    assert models[0].read_bytes() == models[1].read_bytes()
    assert not any((here / "broken").glob("partial/*/*"))
