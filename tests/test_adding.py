"""What CONTRIBUTING says of adding things is done here, to a copy of the package, and then used."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("altair")

ROOT = Path(__file__).parents[1]
GIVEN = Path(__file__).parent / "data" / "adding"
OLDER = ROOT / "results" / "third-run" / "wiegreffe-pinter-2019.parquet"
STUDY = """
study = "added"
title = "With what was added"
seeds = 1

[grid]
corpus = ["planted-reviews(cues=2,dev=16,distractors=0,length=24,negation=0.0,test=24,train=64)"]
encoder = ["average"]

[model]
hidden = 6
embedding = 6
epochs = 1
vectors = "random(1.0)"

[[experiment]]
name = "word-count"

[[experiment]]
name = "importance"
parameters = { nulls = 1, shown = 2 }

[[experiment]]
name = "explainers"
parameters = { sample = 3, steps = 2, permutations = 2, parts = 8, orders = 1, draws = 1 }
"""

# By the row of CONTRIBUTING: new files, and of files that are there the lines before which lines are put.
NEW = {
    "an experiment": {
        "experiments/word_count/__init__.py": "about.py",
        "experiments/word_count/observe.py": "observe.py",
        "experiments/word_count/conclude.py": "conclude.py",
    },
    "an importance": {"evidence/importances/embedding_norm.py": "embedding_norm.py"},
    "a column of findings": {},
}
LINES = {
    "an experiment": {
        "experiments/catalogue.py": {
            "CONCLUSIONS: dict": "from attentest.experiments.word_count import conclude as word_count\n",
            '    "performance": ': '    "word-count": word_count.CONCLUSION,\n',
        },
        "experiments/observers.py": {
            "EXPERIMENTS: dict": "from attentest.experiments.word_count.observe import WordCount\n",
            '    "performance": ': '    "word-count": WordCount,\n',
        },
    },
    "an importance": {
        "evidence/importances/names.py": {
            "}\nBY_CAPTUM": '    "embedding-norm": About(\n'
            '        title="the norm of the vector", says="how long the vector is", cheap=True\n    ),\n',
        },
        "evidence/importances/catalogue.py": {
            "EXPLAINERS: dict": "from attentest.evidence.importances.embedding_norm import embedding_norm\n",
            "}\nBY_CAPTUM": '    "embedding-norm": embedding_norm,\n',
        },
    },
    "a column of findings": {
        "statistics/record.py": {"    def __post_init__": "    largest: float = math.nan  # of any text\n\n"},
        "statistics/group_means.py": {
            "            mode=self.mode,": "            largest=max(defined, default=math.nan),\n"
        },
        "store/findings_file.py": {
            "}\nLATER = {": '    "largest": REAL,\n',
            "}  # columns of rows": ', "largest": 3',
        },
    },
}


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    """What a process found that has a copy of the package in which all three were added."""
    folder = tmp_path_factory.mktemp("added")
    package = folder / "src" / "attentest"
    shutil.copytree(ROOT / "src" / "attentest", package, ignore=shutil.ignore_patterns("__pycache__"))
    for files in NEW.values():
        for path, given in files.items():
            (package / path).parent.mkdir(exist_ok=True)
            shutil.copy(GIVEN / given, package / path)
    for files in LINES.values():
        for path, lines in files.items():
            text = (package / path).read_text(encoding="utf-8")
            for before, line in lines.items():
                assert text.count(before) == 1, (path, before)
                text = text.replace(before, line + before)
            (package / path).write_text(text, encoding="utf-8")
    (folder / "added.toml").write_text(STUDY)
    done = subprocess.run(
        [sys.executable, GIVEN / "uses.py", folder / "store", folder / "added.toml", OLDER],
        env={**os.environ, "PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_an_experiment_is_a_folder_and_a_line_in_two_catalogues(used):
    found = used["experiment"]
    assert set(found["findings"]) == {"overall", "untrained", "shuffled labels"}
    assert found["findings"]["overall"] > 1
    assert found["section"] == ["Word count", "How long are the texts?", 3]
    assert found["card"] == "Units of a text"


def test_an_importance_is_a_file_and_a_line_in_two_catalogues(used):
    found = used["importance"]
    assert "tau_attention_embedding-norm" in found["columns"]
    assert {"tau-attention-embedding-norm", "comprehensiveness-embedding-norm-excess"} <= {*found["measures"]}
    assert "embedding-norm" in found["audit"] and "lime" in found["audit"]
    assert found["card"] == "Agreement of attention with the norm of the vector"


def test_an_importance_that_is_added_is_in_the_experiment_importance_under_keys_of_its_own(used):
    found = used["importance"]
    assert found["parameter"] == "embedding-norm", "rows that have it are not those that have it not"
    columns = ("tau_{}", "p_{}", "overlap_{}", "distance_{}", "{}")
    assert {*found["observed"]} == {column.format("embedding-norm") for column in columns}
    assert found["whole"] == 2
    assert found["concluded"] == [
        "tau-embedding-norm",
        "top-k-distance-embedding-norm",
        "top-k-overlap-embedding-norm",
    ]
    assert found["null_of_tau"] == 0


def test_an_importance_that_is_added_is_in_the_explorer_and_on_the_live_page(used):
    lanes, columns, kept = used["importance"]["explored"]
    assert [lane["column"] for lane in lanes] == ["gradient", "loo", "embedding-norm"]
    assert [column["says"] for column in columns] == ["τ of attention and the norm of the vector"]
    assert kept == 2
    assert used["importance"]["offered"] == ["the norm of the vector"] and used["importance"]["interface"]
    scores, names = used["importance"]["live"]
    assert len(scores) == 3 and min(scores) > 0 and names == ["gradient", "leave-one-out", "embedding-norm"]


def test_a_column_of_findings_is_three_files_and_older_files_are_still_read(used):
    found = used["column"]
    assert found["concluded"] == found["shared"] > 1
    assert not found["older"] and found["completed"]
    assert len(LINES["a column of findings"]) == 3


ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \|", re.M)


@pytest.mark.parametrize("what", LINES)
def test_contributing_names_the_files_that_are_edited(what):
    rows = dict(ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    for path in LINES[what]:
        assert f"`{path}`" in rows[what]
    for path in NEW[what]:
        assert re.sub(r"word_count/.*|embedding_norm\.py", "NAME", path) in rows[what]


@pytest.mark.parametrize("what", dict(ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))))
def test_contributing_names_files_that_are_there(what):
    """Paths in the table are of the package, or of the repository."""
    rows = dict(ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    for path in re.findall(r"`([\w/]+\.(?:py|md|toml|csv))`", rows[what]):
        if "NAME" not in path and "/" in path:
            assert (ROOT / "src" / "attentest" / path).is_file() or (ROOT / path).is_file(), path
