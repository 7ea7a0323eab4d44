"""`attentest inspect`: tables for a person, JSON for a program, a page, and refusals that name options."""

import json

import pytest

from attentest.cli.main import run
from tests.families import LABELS, tiny, tokenizer

TEXT = "the unlikely film was not good"
FEW = ("--importance", "gradient", "--permutations", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model, path = tiny("bert"), tmp_path_factory.mktemp("bert")
    model.config.id2label = dict(enumerate(LABELS))
    model.save_pretrained(path)
    tokenizer().save_pretrained(path)
    return str(path)


def test_a_person_reads_tables_and_a_program_json(folder, capsys, tmp_path):
    page = tmp_path / "view.html"
    assert run(["inspect", folder, TEXT, *FEW, "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert all(len(line) <= 80 for line in said.splitlines() if not line.startswith("Written"))
    assert "gradient×input" in said and "Smallest flip" in said and "central 95 %" in said
    assert page.read_text().startswith("<!doctype html>")
    asked = ["inspect", folder, TEXT, *FEW, "--layer", "0", "--head", "1", "--labels", "x,y,z", "--json"]
    assert run(asked) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tokens"] == TEXT.split() and document["place"] == [0, 1]
    assert set(document["prediction"]["probabilities"]) == {"x", "y", "z"}
    assert len(document["importances"]["gradient"]["scores"]) == 6


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--layer", "best"], "--layer best"),
        (["--layer", "last"], "--layer 'last'"),
        (["--epsilon", "3"], "--epsilon 3.0"),
        (["--permutations", "0"], "--permutations 0"),
        (["--importance", "saliency"], "gradient, leave-one-out"),
        (["--html", "view.pdf"], ".html or .json"),
        (["--attention", "flows"], "--attention flows"),
    ],
)
def test_a_refusal_names_the_option(folder, capsys, asked, said):
    assert run(["inspect", folder, TEXT, *FEW, *asked]) == 2
    assert said in capsys.readouterr().err
