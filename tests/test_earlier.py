"""A report that takes pages from the one before it is, byte for byte, the report made from nothing."""

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.gallery import pictures, site
from attentest.gallery.earlier import Earlier
from attentest.gallery.folder import MARKER, publish
from attentest.gallery.site import build
from attentest.store.store import Store
from attentest.studies.recipe import load_study
from tests.gallery import TEXTS, pictured_rows, put, put_corpus

NAMES = ("demo", "jain-wallace-2019")


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Drawings that cost nothing, and few studies."""
    monkeypatch.setattr(pictures, "svg_of", lambda spec: f'<svg width="1" height="2">{len(str(spec))}</svg>')
    monkeypatch.setattr(site, "recipes", lambda more, held: {name: load_study(name) for name in NAMES})


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("earlier") / "store")
    corpus = put_corpus(store, "sst")
    put(store, "permutation", corpus)
    put(store, "heat-map", corpus)
    put(store, "permutation", corpus, encoder="average")
    return store


@pytest.fixture
def held(stored, tmp_path):
    """A store that a test may change."""
    return Store(shutil.copytree(stored.url, tmp_path / "store"))


@pytest.fixture
def out(stored, tmp_path, _quick):
    """A folder with the report of that store."""
    first = Path(stored.url).parent / "site"
    if not first.exists():
        assert made(stored, first) == 0
    return shutil.copytree(first, tmp_path / "site")


def made(store, out, **asked):
    """The report in `out` made from what is there, which must be right; how many pages were taken."""
    earlier = Earlier.of(out)
    files = build(store.url, {}, version="0", earlier=earlier, **asked)
    publish(files, out, earlier.notes(files))
    assert files == build(store.url, {}, version="0", **asked)
    return earlier.taken


def test_of_an_unchanged_store_every_page_is_taken(held, out):
    assert made(held, out) == 2 and made(held, out) == 2


def test_of_an_unchanged_store_nothing_is_read_but_the_pages(held, out, monkeypatch):
    made(held, out)
    monkeypatch.setattr(Store, "read", None)  # whoever reads a cell fails
    earlier = Earlier.of(out)
    assert build(held.url, {}, version="0", earlier=earlier) and earlier.unchanged and earlier.taken == 2
    assert not (again := Earlier.of(out)).unchanged and again.stamp == earlier.stamp_now


@pytest.mark.parametrize(
    "change",
    [
        lambda store, key: (Path(store.root) / "cells" / key / "findings.parquet").touch(),
        lambda store, key: store.fail("f" * 64, "an error", "its traceback"),
    ],
    ids=["a file", "a failure"],
)
def test_whatever_changes_in_a_store_changes_its_stamp(change, held, out):
    made(held, out)
    change(held, next(key for key in held.done() if held.holds(key, "findings.parquet")))
    earlier = Earlier.of(out)
    assert build(held.url, {}, version="0", earlier=earlier) and not earlier.unchanged


def test_a_new_model_is_drawn_and_the_others_are_taken(held, out):
    put(held, "permutation", put_corpus(held, "mine"), encoder="cnn")
    assert made(held, out) == 2
    put(held, "permutation", put_corpus(held, "sst"), encoder="cnn")  # its verdicts correct those of others
    made(held, out)
    held.forget("cells", next(iter(finding_of(held, "cnn", "mine"))))
    assert made(held, out) == 3


def finding_of(store, encoder, corpus):
    told = store.descriptions()
    for key, about in told.items():
        config = about["config"]
        if about["stage"] == "finding" and (config["encoder"], config["corpus"]) == (encoder, corpus):
            yield key


def training(store):
    return next(key for key, about in store.descriptions().items() if "training.json" in about["files"])


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.forget("cells", training(store), "training.json"),
        lambda store: put(store, "heat-map", put_corpus(store, "sst"), pictured_rows(), encoder="average"),
        lambda store: put(store, "permutation", put_corpus(store, "sst"), epochs=99),
    ],
    ids=["a file that is gone", "another experiment", "another way of training"],
)
def test_what_a_page_is_made_from_changes_it(held, out, change):
    change(held)
    assert made(held, out) < 3


def test_other_wishes_make_other_pages(held, out):
    assert made(held, out, private=["sst"]) == 0
    assert made(held, out, private=["sst"], every_text=False) == 0


@pytest.mark.parametrize("way", ["edited", "deleted"])
def test_a_page_that_somebody_changed_is_made_again(held, out, way):
    page = next(out.glob("sst-*.html"))
    page.unlink() if way == "deleted" else page.write_text("nothing")
    assert made(held, out) == 1 and page.read_text() != "nothing"


@pytest.mark.parametrize("note", ["", "{}", '{"digests": [], "pages": {}}', None])
def test_a_damaged_note_is_as_good_as_none(held, out, note):
    marker = out / MARKER
    if note is None:  # of the right form, with pages that lack what they should have
        told = json.loads(marker.read_text())
        marker.write_text(json.dumps(told | {"pages": {key: {} for key in told["pages"]}}))
    else:
        marker.write_text(note)
    earlier = Earlier.of(out)
    assert build(held.url, {}, version="0", earlier=earlier)
    assert earlier.taken == 0 and TEXTS and Path(out).is_dir()
