"""What `heat-map` reads beyond its corpus is part of its key: the same key holds the same bytes."""

import shutil
from dataclasses import replace

import pytest

from attentest.bench.corpora import OUTSIDE, planned_outside
from attentest.bench.plan import Planner, spelled
from attentest.bench.study import run_cells
from attentest.corpus.catalogue import load_corpus
from attentest.corpus.files import from_text, to_text
from attentest.experiments.heat_map.observe import HeatMap
from attentest.model.config import ModelConfig
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.store.tables import from_parquet

TINY = ModelConfig(encoder="average", hidden=8, embedding=8, epochs=0)


@pytest.fixture
def data(tmp_path):
    """IMDB's layout with a few reviews; the test split of its corpus is a sample of them."""
    for split in ("train", "test"):
        for side, rating in (("neg", 1), ("pos", 10)):
            folder = tmp_path / "data" / "imdb" / "aclImdb" / split / side
            folder.mkdir(parents=True)
            for number in range(20):
                text = f"one two three four five six {side} film number {number}"
                (folder / f"{number}_{rating}.txt").write_text(text)
    return tmp_path / "data"


@pytest.fixture
def ids(data):
    """A review inside the corpus, and one that its sample leaves out."""
    inside = {
        example.id for split in load_corpus("imdb", data_dir=data).splits().values() for example in split
    }
    every = [f"test/neg/{number}_1" for number in range(20)]
    return next(id for id in every if id in inside), next(id for id in every if id not in inside)


def planned(store, data, texts):
    """The planner, and the cell of a heat map of these texts under an untrained model."""
    planner = Planner(store, data_dir=str(data))
    corpus = planner.corpus("imdb")
    config, where = planner.resolve(TINY, corpus)
    return planner, planner.observation(HeatMap(texts=texts, permutations=3), config, corpus, where)


def rows_of(store, planner, cell):
    outcome = run_cells([cell], planner, engine="inline")
    assert outcome.failed == {}
    return store.read(cell.key, "rows.parquet")


def test_a_key_that_reads_only_the_corpus_says_nothing_of_other_texts(tmp_path, data, ids):
    """These are the keys that there were before texts beyond the corpus had a place in them."""
    for texts in (f"imdb:{ids[0]}", "sst:test-2110", f"imdb:{ids[0]} sst:test-2110 imdb:nowhere", ""):
        _, cell = planned(Store(str(tmp_path / "store")), data, texts)
        assert cell.config == spelled(HeatMap(texts=texts, permutations=3)) and cell.where == {}


def test_a_text_beyond_the_corpus_is_in_the_key_by_its_content(tmp_path, data, ids):
    inside, outside = ids
    store = Store(str(tmp_path / "store"))
    texts = f"imdb:{outside} imdb:{inside} imdb:nowhere"
    _, cell = planned(store, data, texts)
    assert cell.config.keys() - spelled(HeatMap()).keys() == {OUTSIDE}
    (example,) = planned_outside(cell)
    assert example.id == outside and example.tokens[-1] == example.tokens[-1].lower() == "qqq"
    without = replace(cell, config={k: v for k, v in cell.config.items() if k != OUTSIDE}, where={})
    assert without.key != cell.key, "a picture of fewer texts is another cell"
    assert replace(cell, where={}).key == cell.key


def test_the_same_key_holds_the_same_bytes_wherever_it_is_done(tmp_path, data, ids, monkeypatch):
    """Planned where the files are, done where they are not: the observation opens no archive."""
    texts = " ".join(f"imdb:{id}" for id in reversed(ids))
    here, there = (Store(str(tmp_path / name)) for name in ("here", "there"))
    first, cell = planned(here, data, texts)
    rows = rows_of(here, first, cell)
    assert list(from_parquet(rows)["id"]) == [*reversed(ids)]
    second, again = planned(there, data, texts)
    assert again.key == cell.key
    shutil.rmtree(data)
    monkeypatch.setenv("ATTENTEST_DATA", str(tmp_path / "nowhere"))
    assert rows_of(there, second, again) == rows


def test_without_the_files_nothing_is_planned_and_nothing_written(tmp_path, data, ids):
    store = Store(str(tmp_path / "store"))
    planner = Planner(store, data_dir=str(data))
    corpus = planner.corpus("imdb")
    config, where = planner.resolve(TINY, corpus)
    before = store.done()
    shutil.rmtree(data / "imdb")
    with pytest.raises(Refusal, match="no files of it in"):
        planner.observation(HeatMap(texts=f"imdb:{ids[1]}"), config, corpus, where)
    with pytest.raises(Refusal, match="no files of it in"):
        planned(store, data, f"imdb:{ids[1]}")
    assert store.done() == before and store.plans() == []


def test_files_that_changed_since_the_corpus_was_planned_are_refused(tmp_path, data, ids):
    planner = Planner(Store(str(tmp_path / "store")), data_dir=str(data))
    corpus = planner.corpus("imdb")
    config, where = planner.resolve(TINY, corpus)
    (data / "imdb" / "aclImdb" / f"{ids[1]}.txt").write_text("one two three four five six seven eight")
    with pytest.raises(Refusal, match="another source or preparation"):
        planner.observation(HeatMap(texts=f"imdb:{ids[1]}"), config, corpus, where)


@pytest.mark.parametrize(
    ("where", "says"),
    [({}, "a plan without its texts"), ({OUTSIDE: "[]"}, "other texts beyond its corpus than its key means")],
)
def test_a_plan_with_other_texts_than_its_key_is_refused_and_nothing_is_written(
    tmp_path, data, ids, where, says
):
    store = Store(str(tmp_path / "store"))
    planner, cell = planned(store, data, f"imdb:{ids[1]}")
    planner.cells[cell.key] = replace(cell, where=where)
    with pytest.raises(Refusal, match=says):
        run_cells([cell], planner, engine="inline")
    assert not store.has(cell.key)


def test_texts_are_the_same_after_they_were_spelled_out(data):
    examples = load_corpus("imdb", data_dir=data).test
    marked = replace(examples[0], rationale=(1, 2), query=("why", "é"), candidates=("a", "b"))
    assert from_text(to_text([marked, *examples])) == (marked, *examples)
    assert to_text([marked]) == to_text([marked]) != to_text(examples[:1])
