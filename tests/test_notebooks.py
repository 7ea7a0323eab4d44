"""The notebooks: valid, without leftovers of whoever ran them last, run from top to bottom."""

import itertools
import json
import re

import pytest

from attentest.experiments.catalogue import CONCLUSIONS
from attentest.experiments.observers import EXPERIMENTS
from tests.notebooks import NOTEBOOKS, read_notebook, run_cells

pytest.importorskip("transformers", reason="needs the extra `hf`")

OF_EVERY_CELL = {"cell_type", "id", "metadata", "source"}


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    return read_notebook(request.param)


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


@pytest.fixture
def run_in(tmp_path, monkeypatch):
    """Runs a notebook by its name in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return lambda name: run_cells(read_notebook(next(one for one in NOTEBOOKS if one.stem == name)))


@pytest.mark.slow
def test_the_audit_runs_from_top_to_bottom(run_in, tmp_path, capsys):
    names = run_in("audit")
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


@pytest.mark.slow
def test_the_figure_of_jain_and_wallace_is_drawn_from_rows_of_both_models(run_in):
    names = run_in("reproduce-a-figure")
    assert not names["result"]["failed"] and [len(rows) for rows in names["rows"].values()] == [100, 100]
    assert names["chart"].to_dict()["title"]["text"] == "Permuted attention"


@pytest.mark.slow
def test_an_experiment_of_ones_own_has_findings_beside_its_controls(run_in, monkeypatch):
    for catalogue in (CONCLUSIONS, EXPERIMENTS):
        monkeypatch.setitem(catalogue, "upside-down", None)  # put back as it was, whatever the cells add
    findings = run_in("your-own-experiment")["findings"]
    own = findings[findings["experiment"] == "upside-down"]
    assert {"overall", "untrained", "shuffled labels"} <= set(own["group"])
    assert own["estimate"].between(0, 1).all() and own.query("group == 'overall'")["null"].notna().all()


@pytest.mark.slow
def test_a_model_of_ones_own_corpus_looks_at_the_words_that_decide(run_in):
    names = run_in("your-own-corpus")
    assert names["model"].record.scores["test"]["accuracy"] > 0.95
    assert all(criterion.sentence for criterion in names["result"].criteria)


def test_the_choice_of_a_test_rests_on_the_committed_table(run_in):
    names = run_in("which-test")
    assert len(names["neither"]) and not set(names["neither"]["test"]) & set(names["pointer"]["test"].head(8))
