"""`make gallery` builds pages of everything under results/, and its front page leads to each study."""

import re
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

pytest.importorskip("altair")

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "docs"))

import gallery  # noqa: E402
from attentest.store.importing import findings_files  # noqa: E402


def test_every_file_of_findings_belongs_to_a_run():
    found = {file for run in gallery.runs(ROOT / "results") for file in findings_files(run.folder)}
    others = {"calibration.parquet"}  # rows of audits: a page of their own
    assert found == {file for file in (ROOT / "results").rglob("*.parquet") if file.name not in others}


def test_a_study_outside_the_package_is_called_by_its_name():
    assert gallery.title("vectors") != "vectors"
    assert gallery.title("my-study") == "my-study"


@pytest.mark.slow
def test_all_results_become_pages(tmp_path):
    out = tmp_path / "gallery"
    (out / "left").mkdir(parents=True)  # of an earlier build
    done = gallery.build(ROOT / "results", out)
    front = (out / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'(?:href|src)="([^"]+)"', front)
    assert not (out / "left").exists()
    assert all((out / link).is_file() for link in links)
    for run in done:
        for file in findings_files(run.folder):
            page = f"{run.name}/study-{file.stem}.html"
            keys = {key[:12] for key in pq.read_table(file, columns=["cell"])["cell"].unique().to_pylist()}
            catalogue = (out / run.name / "catalogue.html").read_text(encoding="utf-8")
            assert page in links
            assert all(key in catalogue for key in keys), "every cell is on a page"
