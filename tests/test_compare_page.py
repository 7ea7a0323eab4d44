"""The comparison on the pages of a report: verdicts, version A, sizes apart."""

from xml.etree import ElementTree

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.gallery import pictures, site
from tests.comparing import SHELF, TAU, a_study, finding, line, put, put_corpus


def test_the_page_of_a_study_shows_every_verdict_and_sizes_apart(tmp_path, store, monkeypatch):
    monkeypatch.setattr(pictures, "FIGURES", {})
    monkeypatch.setattr(site, "to_svg", lambda chart: "<svg/>")
    counts = {"train": {"negative": 3034, "positive": 9}, "test": {"negative": 912, "positive": 1}}
    put_corpus(store, "sst", counts)
    taus = {"predicted=negative": (0.34, 0.01), "predicted=positive": (0.36, 0.2)}
    put(store, [finding(group=group, estimate=e, seed_std=s) for group, (e, s) in taus.items()])
    put(store, [finding(estimate=0.1, seed_std=0.01)], encoder="average")
    study = a_study(
        tmp_path,
        [
            line("SST", TAU, "0.36", "0", std="0.21"),
            line("SST", TAU, "0.43", "0", table="Table2_proceedings"),
            line("SST", TAU, "0.36", "1"),
            line("SST", TAU, "0.60", "0", model="Average"),
            line("SST", TAU, "0.60", "0", attention="dot", source="recalled"),
            line("SST", "train_size", "3034", "0", table="Table1", model=""),
            line("SST", "test_size", "911", "0", table="Table1", model=""),
        ],
    )
    put(store, [finding()], attention="dot")
    files = site.build(store.url, SHELF, version="1", studies=[study])
    page = ElementTree.fromstring(files["study-ours.html"].removeprefix("<!doctype html>\n"))
    said = [
        (span.get("class"), span.text) for span in page.iter("span") if "verdict" in span.get("class", "")
    ]
    agreement = ["agrees", "differs", "cannot tell", "recalled"]
    assert said[:4] == [(f"verdict {word.split()[0]}", f"1 {word}") for word in agreement]
    assert sorted(said[4:]) == sorted(
        (f"verdict {word.split()[0]}", word) for word in [*agreement, "same", "differs"]
    )
    shown = " ".join(" ".join(page.itertext()).split())
    assert "4 pairs: 1 agrees 1 differs 1 cannot tell 1 recalled" in shown
    assert "2 sizes and counts, apart: 1 same, 1 differs." in shown
    assert "version A" in shown and "P(agrees if equal)" in shown and "by 1 " in shown
    rows = [" ".join(" ".join(row.itertext()).split()) for row in page.iter("tr")]
    assert any("0.36 ± 0.21 0.43 0.340" in row for row in rows), "version A stands beside version B"
    index = " ".join(
        " ".join(ElementTree.fromstring(files["index.html"].partition("\n")[2]).itertext()).split()
    )
    assert "1 agrees, 1 differs, 1 cannot tell, 1 recalled; sizes: 1 same, 1 differs; 0 missing" in index
    for old in ("disagrees", "differs by"):
        assert old not in files["study-ours.html"] + files["study-ours.csv"] + files["study-ours.md"]
