"""Whole audits of causal language models and of models in half precision, from a folder to a page."""

import csv
import json
import re

import pytest
import torch

import attentest as at
from attentest.cli.main import run
from tests.families import LABELS, WORDS, tiny, tiny_causal, tokenizer

pytestmark = pytest.mark.usefixtures("short_search")

PROMPT = ("--task", "prompt", "--prompt", r"Review: {text}\nSentiment:", "--labels", " good, bad")
NEXT = ("--task", "next-token")
ROWS = [
    (" ".join(WORDS[(3 * n + k) % 10] for k in range(3 + n % 4)), ("good", "bad")[n % 2]) for n in range(10)
]
SINK = r"{:.1%} rests on the first token ('{}'), where causal language models have an attention sink"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A tiny GPT-2, saved as the library saves it, and a table of ten texts beside it."""
    where = tmp_path_factory.mktemp("causal")
    tiny_causal("gpt2").save_pretrained(where / "gpt2")
    tokenizer("gpt2").save_pretrained(where / "gpt2")
    with (where / "texts.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *ROWS])
    return where


def audited(folder, monkeypatch, capsys, *task):
    """The document, and the words of the page and of the model card."""
    monkeypatch.chdir(folder)
    asked = ["audit", "gpt2", *task, "--data", "texts.csv", "--budget", "quick", "--texts", "6"]
    assert run([*asked, "--out", "x.html", "--out", "x.md", "--store", "kept", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["out"] == ["x.html", "x.md"] and document["texts"] == 6
    page = re.sub(r"<[^>]+>", "", (folder / "x.html").read_text())
    return document, page.replace("&#x27;", "'"), (folder / "x.md").read_text().replace("\\[", "[")


def test_an_audit_behind_a_prompt_says_its_task_its_prompt_and_its_sink(folder, monkeypatch, capsys):
    document, page, card = audited(folder, monkeypatch, capsys, *PROMPT)
    resting = document["resting"]
    assert document["labels"] == ["good", "bad"] and not resting["is_unit"]
    assert resting["first"] + resting["around"] + resting["text"] == pytest.approx(1.0, rel=1e-5)
    for words in (page, card.replace("\\", "")):
        assert "the answer is which of the labels ' good', ' bad' comes next behind the prompt" in words
        assert "the rest of the prompt stays as it is" in words and "Review: {text}" in words
        assert "rests on the first token" in words and f"{resting['first']:.1%}" in words
    assert SINK.format(resting["first"], "[UNK]") in page, (
        "the prompt's first word is unknown to this tokenizer"
    )
    accuracy = [f for f in document["findings"] if f["experiment"] == "performance"]
    assert accuracy, "the labels of the table are the labels of the prompt"


def test_an_audit_of_the_next_token_wants_no_labels(folder, monkeypatch, capsys):
    document, page, card = audited(folder, monkeypatch, capsys, *NEXT, "--label", "label")
    why = document["left_out"]["performance"]
    assert "the probability of one token" in why and "column" not in why
    assert {"importance", "permutation", "adversary"} <= set(document["seconds"])
    assert document["resting"]["is_unit"] and "a unit like any other" in page
    assert any("Labels were not used" in note for note in document["notes"])
    for words in (page, card):
        assert "the answer is the probability of one token behind each text against all others" in words
        assert "where causal language models have an attention sink" in words


@pytest.mark.parametrize("task", [PROMPT, NEXT])
def test_one_text_says_the_same(folder, task, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    quick = ("--importance", "gradient", "--permutations", "5")
    assert run(["inspect", "gpt2", "the dog never ran home", *task, *quick, "--html", "view.html"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"Task {task[1]}: the answer is" in said and "have an attention sink" in said
    assert ("The token that is asked about is" in said) == (task is NEXT)
    assert f"Task {task[1]}: the answer is" in (folder / "view.html").read_text()


@pytest.mark.parametrize(
    ("family", "numbers"), [("bert", "bfloat16"), ("bert", "float16"), ("gpt2", "bfloat16")]
)
def test_a_whole_audit_in_half_precision_has_the_numbers_of_single_within_its_rounding(family, numbers):
    texts = [text for text, _ in ROWS]
    found = []
    for kind in (torch.float32, getattr(torch, numbers)):
        model = (tiny() if family == "bert" else tiny_causal("gpt2")).to(kind)
        asked = {"labels": LABELS} if family == "bert" else {"task": "next-token"}
        read = tokenizer(family)
        found.append(at.audit(model, texts, tokenizer=read, budget="quick", texts=6, **asked))
    single, half = found
    assert set(half.audit.seconds) == set(single.audit.seconds) and half.made["dtype"] == numbers
    assert half.left_out == single.left_out
    told = f"The model computes in {numbers}, whose rounding is"
    assert any(note.startswith(told) for note in half.said) and not any("rounding" in n for n in single.said)
    changes = [change_of(each) for each in found]
    assert changes[1] == pytest.approx(changes[0], abs=0.02), "how far permuted attention moves the answer"


def change_of(result):
    """How much permuted attention changes the output: the first finding of that question."""
    rows = result.findings
    own = rows[(rows["experiment"] == "permutation") & (rows["group"] == "overall")]
    return float(own["estimate"].iloc[0])
