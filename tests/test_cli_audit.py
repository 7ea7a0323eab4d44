"""`attentest audit`: a folder, a factory, and every wrong input as one sentence with status 2."""

import csv
import json
import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import attentest as at
from attentest.claims.calibrated import UNKNOWN
from attentest.claims.criterion import SCOPE
from attentest.cli.main import run
from tests.families import LABELS, WORDS, tiny, tokenizer
from tests.planted_models import planted_texts
from tests.toys import toy_corpus, toy_model

pytestmark = pytest.mark.usefixtures("short_search")

FACTORY = """
from tests.planted_models import LABELS, Planted, factory

number = 3

def deaf():
    made = Planted(honest=True)
    made.decide = lambda states, weights: states.sum(1)
    return made
"""


def write_table(path, rows):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a table of texts, and a module of the user's own."""
    monkeypatch.chdir(tmp_path)
    write_table(tmp_path / "texts.csv", [(" ".join(e.tokens), e.label) for e in planted_texts(30)])
    (tmp_path / "mine.py").write_text(FACTORY)
    yield tmp_path
    sys.modules.pop("mine", None)


COLUMNS = ("--data", "texts.csv", "--text", "text", "--label", "label")


def test_a_factory_is_audited_and_everything_comes_out(here, capsys):
    asked = [
        "audit",
        "mine:factory",
        *COLUMNS,
        "--labels",
        "bad,good",
        "--budget",
        "quick",
        "--out",
        "audit.html",
    ]
    assert run([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {one["criterion"]: one["verdict"] for one in document["criteria"]}
    assert found["necessary"] == found["sufficient"] == "supported"
    assert document["texts"] == document["of"] == 30 and document["out"] == ["audit.html"]
    assert {"findings", "cards", "seconds", "left_out", "attention", "budget"} <= set(document)
    again = "attentest audit mine:factory --data texts.csv --text text --label label --labels bad,good"
    assert document["provenance"]["command"] == f"{again} --out audit.html --budget quick"
    assert (here / "audit.html").read_text().startswith("<!doctype html>")
    assert str(here) not in sys.path


def test_a_person_reads_sentences(here, capsys):
    assert run(["audit", "mine:factory", *COLUMNS, "--labels", "bad,good", "--budget", "quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    said = " ".join(" ".join(lines).split())
    assert said.startswith("Attention is a reliable pointer to the words") and "mine:factory: " in said
    assert "supported Without the words that attention points at, the output changes: without the" in said
    assert "not measured Is attention where people marked their reasons? These are texts without" in said
    assert SCOPE in said and UNKNOWN in said and "--out audit.html" in said
    assert not re.search(r"comprehensiveness|importance/|-excess", said), "no codes in sentences for people"


def test_words_that_people_marked_are_a_column(here, capsys):
    rows = [{"t": " ".join(e.tokens), "l": e.label, "why": list(e.rationale)} for e in planted_texts(30)]
    (here / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = ("mine:factory", "--data", "texts.jsonl", "--text", "t", "--label", "l", "--labels", "bad,good")
    assert run(["audit", *asked, "--budget", "quick", "--rationale", "why", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = {one["criterion"]: one["verdict"] for one in document["criteria"]}
    assert found["plausible"] == "supported" and "plausibility" in document["seconds"]
    assert "'because'" in refused(capsys, *asked, "--rationale", "because")
    (here / "texts.jsonl").write_text("\n".join(json.dumps({**row, "why": [99]}) for row in rows))
    assert "word 99 of a text of" in refused(capsys, *asked, "--rationale", "why")


@pytest.fixture
def folder(here):
    """A tiny BERT, saved as the library saves it, and a table in its words."""
    model = tiny("bert")
    model.config.id2label, model.config.label2id = (
        dict(enumerate(LABELS)),
        {n: i for i, n in enumerate(LABELS)},
    )
    model.save_pretrained(here / "bert")
    tokenizer("bert").save_pretrained(here / "bert")
    rng = np.random.default_rng(0)
    rows = [(" ".join(rng.choice(WORDS, size=rng.integers(3, 6))), "abc"[n % 3]) for n in range(30)]
    write_table(here / "texts.csv", rows)
    return here / "bert"


def test_a_folder_is_audited_with_a_head_of_ones_choice(folder, capsys):
    asked = ["audit", "bert", *COLUMNS, "--budget", "quick", "--head", "1", "--layer", "0", "--json"]
    assert run(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert "layer 0 of 0 to 2, head 1, over words" in document["attention"] and document["labels"] == list(
        LABELS
    )


def test_a_model_that_was_trained_here_is_audited(here, capsys):
    corpus = toy_corpus(lengths=(4, 5, 6, 7))
    at.save(toy_model(corpus, encoder="mlp"), here / "ours")
    write_table(here / "texts.csv", [(" ".join(e.tokens), e.label) for e in corpus.train] * 8)
    assert run(["audit", "ours", *COLUMNS, "--budget", "quick", "--json"]) == 0
    assert "additive attention over mlp" in json.loads(capsys.readouterr().out)["attention"]


def refused(capsys, *arguments):
    assert run(["audit", *arguments]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("attentest: ")
    assert run(["audit", *arguments, "--json"]) == 2
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])["error"]["message"]
    return said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere",), "no folder here"),
        (("no_such_module:factory", "--labels", "a,b"), "nothing under that name"),
        (("mine:nothing", "--labels", "a,b"), "nothing under that name"),
        (("mine:number", "--labels", "a,b"), "a function without arguments"),
        ((":factory",), "nothing under that name"),
        (("mine:factory",), "Give --labels no,yes"),
        (("mine:deaf", "--labels", "bad,good"), "ignores the weights"),
        (("mine:factory", "--labels", "bad,worse"), "does not know"),
        (("mine:factory", "--labels", "bad,good", "--layer", "1"), "a choice of layer"),
        (("mine:factory", "--labels", "bad,good", "--budget", "vast"), "--budget vast: got"),
        (("mine:factory", "--labels", "bad,good", "--texts", "1"), "--texts 1: got"),
        (("mine:factory", "--labels", "bad,good", "--too-long", "cut"), "--too-long cut: got"),
        (("mine:factory", "--labels", "bad,good", "--out", "audit.pdf"), "ends in .html, .md, .json"),
        (("mine:factory", "--labels", "bad,good", "--text", "review"), "review"),
    ],
)
def test_wrong_input_is_one_sentence(here, capsys, arguments, says):
    model, *more = arguments
    assert says in refused(capsys, model, *COLUMNS, *more)
    assert not list(here.glob("audit*"))


def _no_weights(folder):
    (folder / "model.safetensors").unlink()


def _pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def _brings_code(folder):
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**about, "auto_map": {"AutoModel": "code.Model"}}))


def _of_tokens(folder):
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**about, "architectures": ["BertForTokenClassification"]})
    )


def _regression(folder):
    about = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**about, "problem_type": "regression"}))


def _without_head(folder):
    save_file(
        {"bert.pooler.dense.bias": torch.zeros(16)}, folder / "model.safetensors", metadata={"format": "pt"}
    )


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        (_no_weights, "without weights"),
        (_pickled, "may run any program"),
        (_brings_code, "code of its own"),
        (_of_tokens, "BertForTokenClassification"),
        (_regression, "regression"),
        (_without_head, "no weights for"),
    ],
)
def test_a_spoilt_folder_is_one_sentence(folder, capsys, spoilt, says):
    spoilt(folder)
    assert says in refused(capsys, "bert", *COLUMNS)


def test_texts_and_labels_that_do_not_fit_are_one_sentence(folder, capsys):
    write_table(folder.parent / "texts.csv", [("the cat sat " * 300, "abc"[n % 3]) for n in range(30)])
    assert "at most 512" in refused(capsys, "bert", *COLUMNS)
    write_table(folder.parent / "texts.csv", [("the cat sat", "xyz"[n % 3]) for n in range(30)])
    assert "does not know" in refused(capsys, "bert", *COLUMNS)
