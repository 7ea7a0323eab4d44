"""Pages that other processes draw are, byte for byte, those that this one draws."""

from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.gallery import drawing, site
from attentest.gallery.earlier import Earlier
from attentest.gallery.site import build
from attentest.store.store import Store
from attentest.studies.recipe import load_study
from tests.gallery import put, put_corpus


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "recipes", lambda more, held: {"demo": load_study("demo")})
    store = Store(tmp_path / "store")
    corpus = put_corpus(store, "sst")
    for encoder in ("average", "cnn"):
        put(store, "permutation", corpus, encoder=encoder)
    return store


@pytest.fixture
def spread(monkeypatch):
    """Two processes for two grid points, whatever the machine; what they drew."""
    drawn = []

    def told(*given):
        for file, made in drawing.drawn_apart(*given):
            drawn.append(file)
            yield file, made

    monkeypatch.setattr(site, "workers_for", lambda points, store: 2 if points else 0)
    monkeypatch.setattr(site, "drawn_apart", told)
    return drawn


def test_two_processes_draw_the_pages_that_one_draws(store, spread, monkeypatch):
    earlier = Earlier()
    files = build(store.url, {}, version="0", earlier=earlier, private=("imdb",))
    assert len(spread) == len(earlier.now) == 2 and len(set(spread)) == 2
    monkeypatch.setattr(site, "workers_for", lambda points, store: 0)
    alone = Earlier()
    assert files == build(store.url, {}, version="0", earlier=alone, private=("imdb",)) and len(spread) == 2
    assert earlier.notes(files) == alone.notes(files), "and the next report takes them alike"


def test_a_process_that_dies_costs_no_page(store, spread, monkeypatch):
    expected = build(store.url, {}, version="0")
    monkeypatch.setattr(drawing, "COMMAND", ["-c", "import sys; sys.stdin.readline()"])
    assert build(store.url, {}, version="0") == expected and len(spread) == 2


@pytest.mark.slow
def test_a_damaged_cell_is_left_out_wherever_it_is_found(store, spread):
    whole = build(store.url, {}, version="0")
    key = next(key for key in store.done() if store.holds(key, "rows.parquet"))
    (Path(store.root) / "cells" / key / "rows.parquet").write_bytes(b"spoilt")
    held = Store(store.url)
    assert build(held, {}, version="0") != whole and held.damaged


def test_few_pages_and_stores_in_memory_are_drawn_here(store):
    assert drawing.workers_for(drawing.WORTH, store) == 0
    assert drawing.workers_for(10**6, Store("memory://drawing")) == 0
