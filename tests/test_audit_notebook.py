"""The notebook of an audit: valid, without leftovers of whoever ran it last, run from top to bottom."""

import itertools
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="needs the extra `hf`")

NOTEBOOK = Path(__file__).parents[1] / "docs" / "audit.ipynb"
OF_EVERY_CELL = {"cell_type", "id", "metadata", "source"}


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def code_of(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_it_is_a_notebook_of_the_fourth_format(notebook):
    assert notebook["nbformat"] == 4 and notebook["nbformat_minor"] >= 5
    assert set(notebook) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert notebook["metadata"]["kernelspec"].keys() >= {"name", "display_name"}
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"[\w-]{1,64}", name) for name in names)
    for cell in notebook["cells"]:
        more = {"execution_count", "outputs"} if cell["cell_type"] == "code" else set()
        assert cell["cell_type"] in ("code", "markdown") and set(cell) == OF_EVERY_CELL | more
        assert all(isinstance(line, str) and line.endswith("\n") for line in cell["source"][:-1])
        assert cell["source"] and not cell["source"][-1].endswith("\n")


def test_it_holds_no_outputs_and_says_what_comes_before_every_step(notebook):
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds[0] == "markdown" and ("code", "code") not in itertools.pairwise(kinds)
    for cell in notebook["cells"]:
        assert cell.get("execution_count") is None and not cell.get("outputs")


@pytest.mark.slow
def test_it_runs_from_top_to_bottom(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, code in enumerate(code_of(notebook)):
        exec(compile(code, f"<cell {number}>", "exec"), names)
    result, said = names["result"], capsys.readouterr().out
    assert result.audit.texts == len(names["marked"]) > 20, "enough texts for a verdict"
    assert all(criterion.sentence in said for criterion in result.criteria)
    assert result.audit.seconds and result.left_out and "<svg" in result._repr_html_()
    assert said.count("most weight on") == 4
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert {"plausibility", "agreement"} <= result.audit.seconds.keys(), "words are marked"
    assert "a tiny BERT" in page and json.loads((tmp_path / "audit.json").read_text())["texts"] > 20
    accuracy = result.findings.query("measure == 'accuracy' and group == 'overall'")["estimate"].item()
    assert accuracy > 0.9, "the tiny classifier has learnt its four words"
