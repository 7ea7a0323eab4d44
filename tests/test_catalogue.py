"""The catalogue: what can be loaded by name, from where, and what registers beside it."""

from __future__ import annotations

import os
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attentest.corpus.catalogue import CORPORA, data_dir, fingerprint, load_corpus
from attentest.corpus.fetch import archive
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.shelf import describe
from attentest.corpus.tables.registered import Registration, register, registrations
from attentest.refusal import Refusal

SLOW = {"babi-3-simulated": pytest.mark.slow}  # long stories, and every call of theirs is type-checked
EMBEDDED = [name for name, source in CORPORA.items() if source.status == "embedded"]
TREES = {
    split: "".join(f"({n % 5} (2 one) (2 two) (2 three) (2 four) (2 five) (2 w{n}))\n" for n in range(40))
    for split in ("train", "dev", "test")
}
WRITABLE = st.text(st.characters(exclude_categories=["Cs"]))
real = pytest.mark.skipif(not os.environ.get("ATTENTEST_DATA"), reason="ATTENTEST_DATA is not set")


def unpacked(data: Path) -> Path:
    (data / "sst" / "trees").mkdir(parents=True)
    for split, trees in TREES.items():
        (data / "sst" / "trees" / f"{split}.txt").write_text(trees)
    return data


def table(path: Path, extra: str = "") -> Path:
    path.write_text(f"text{extra},label\n" + "".join(f"some words,{'ab'[n % 2]}\n" for n in range(20)))
    return path


@pytest.mark.parametrize("name", [pytest.param(name, marks=SLOW.get(name, ())) for name in EMBEDDED])
def test_an_embedded_corpus_is_there_without_any_files(name, tmp_path):
    corpus = load_corpus(name, data_dir=tmp_path / "nothing")
    source = CORPORA[name]
    assert sum(len(split) for split in corpus.splits().values()) == source.size and not corpus.excluded
    assert corpus.family == source.family and corpus.has_query == (source.family in ("qa", "babi"))
    assert all(example.rationale for example in corpus.test)
    assert corpus.preparation["source"] == {"sha256": fingerprint(name)}


def test_every_entry_says_what_a_reader_needs_to_know():
    for name, source in CORPORA.items():
        assert all((source.title, source.cite, source.licence, source.how_to_get)), name
        assert (source.folder is None) == (source.status == "embedded")
        source.preparation.check()
    assert len({fingerprint(name) for name in EMBEDDED}) == len(EMBEDDED)


def test_a_part_of_a_corpus_is_described_as_one(tmp_path, monkeypatch):
    unpacked(tmp_path)
    assert describe("sst", tmp_path)["a part"].startswith("120 of the 11,855 texts that were published")
    monkeypatch.setitem(CORPORA, "sst", replace(CORPORA["sst"], size=120))
    assert "a part" not in describe("sst", tmp_path) and "a part" not in describe("planted-keyword")


def test_an_archive_without_files_is_damaged_and_no_absent_corpus(tmp_path):
    (tmp_path / "sst").mkdir()
    zipfile.ZipFile(tmp_path / "sst" / "trees.zip", "w").close()
    for call in (load_corpus, fingerprint, describe):
        with pytest.raises(Refusal, match=r"trees\.zip: got no files at all"):
            call("sst", **{"data" if call is describe else "data_dir": tmp_path})


def test_a_review_without_a_rating_in_its_name_is_refused(tmp_path):
    review = tmp_path / "imdb" / "aclImdb" / "train" / "pos" / "x.txt"
    review.parent.mkdir(parents=True)
    review.write_text("a good film")
    with pytest.raises(Refusal, match=r"x\.txt: got a rating of none by its name in pos"):
        load_corpus("imdb", data_dir=tmp_path)


def test_a_pipe_among_the_files_is_not_waited_for(tmp_path):
    os.mkfifo(unpacked(tmp_path) / "sst" / "trees" / "train.pipe")
    assert fingerprint("sst", tmp_path) and "train.pipe" not in Archive.open(tmp_path / "sst").names()


@pytest.mark.parametrize("read", ["read", "lines"])
def test_a_member_larger_than_any_corpus_has_is_refused_and_not_read_whole(read, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "LARGEST", 1 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.txt", b"0" * (2 << 20))
    with pytest.raises(Refusal, match=r"member zeros\.txt: got a (file|line) of 1 MB or more"):
        list(getattr(Archive.open(tmp_path / "bomb.zip"), read)("zeros.txt"))


def test_the_embedded_corpora_keep_their_keys():
    """A field more in a Document would change the fingerprint, and with it every key of every cell."""
    assert fingerprint("planted-keyword").startswith("7e257fb1ecc4eeec")
    assert fingerprint("babi-1-simulated").startswith("6edc6213b1e76c7c")


def test_absent_data_is_refused_with_the_place_and_the_way_to_get_it(tmp_path):
    (tmp_path / "imdb").mkdir()
    for name, source in ((name, source) for name, source in CORPORA.items() if source.folder):
        for call in (load_corpus, fingerprint):
            with pytest.raises(Refusal) as refused:
                call(name, data_dir=tmp_path)
            for part in (str(tmp_path / str(source.folder)), source.how_to_get, "ATTENTEST_DATA"):
                assert part in str(refused.value)


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path):
    register("mine", table(tmp_path / "t.csv"), text="text", label="label", data_dir=tmp_path)
    with pytest.raises(
        Refusal, match=r"corpus 'ssst'.*one of sst, imdb.*planted-keyvalue, planted-reviews, mine"
    ):
        load_corpus("ssst", data_dir=tmp_path)


def test_files_are_found_unpacked_or_in_any_archive_of_their_folder(tmp_path):
    plain = load_corpus("sst", data_dir=unpacked(tmp_path / "plain"))
    assert plain.counts()["train"] == {"negative": 16, "positive": 16} and plain.labels == (
        "negative",
        "positive",
    )
    assert plain.excluded == {"label neutral": 24}
    folder = tmp_path / "packed" / "sst"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "an-other.zip", "w") as other:
        other.writestr("README", "not this one")
    with zipfile.ZipFile(folder / "trees.zip", "w") as packed:
        for split, trees in TREES.items():
            packed.writestr(f"trees/{split}.txt", trees)
    assert load_corpus("sst", data_dir=tmp_path / "packed").train == plain.train


def test_a_fingerprint_changes_with_the_files_and_with_nothing_else(tmp_path):
    data = unpacked(tmp_path)
    before = fingerprint("sst", data)
    (data / "sst" / "notes.txt").write_text("a file that is not read")
    assert (
        fingerprint("sst", data)
        == before
        == load_corpus("sst", data_dir=data).preparation["source"]["sha256"]
    )
    (data / "sst" / "trees" / "dev.txt").write_text(TREES["dev"].replace("w7", "w8"))
    assert fingerprint("sst", data) != before


def test_mode_and_tokeniser_are_in_the_record_and_wrong_ones_are_refused(tmp_path):
    data = unpacked(tmp_path)
    assert load_corpus("sst", data_dir=data, mode="as-published").preparation["mode"] == "as-published"
    for wrong in ({"mode": "fast"}, {"tokeniser": "bpe"}):
        with pytest.raises(Refusal, match="not in the catalogue"):
            load_corpus("sst", data_dir=data, **wrong)


def test_the_data_directory_is_the_argument_then_the_variable_then_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.setenv("ATTENTEST_DATA", "~/data")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_dir("/given") == Path("/given") and data_dir() == Path("/home/ann/data")
    monkeypatch.setenv("ATTENTEST_DATA", "")
    assert data_dir() == tmp_path / "attentest"
    monkeypatch.setenv("XDG_DATA_HOME", "not/absolute")
    assert data_dir() == Path("/home/ann/.local/share/attentest")


def test_a_registered_table_loads_by_its_name_and_follows_its_file(tmp_path):
    path = table(tmp_path / "t.csv")
    corpus = register("my-reviews", path, text="text", label="label", data_dir=tmp_path)
    assert load_corpus("my-reviews", data_dir=tmp_path) == corpus and corpus.name == "my-reviews"
    assert registrations(tmp_path)["my-reviews"].file == str(path)
    before = fingerprint("my-reviews", tmp_path)
    path.write_text(path.read_text() + "more words,a\n")
    assert fingerprint("my-reviews", tmp_path) != before
    path.unlink()
    for call in (load_corpus, fingerprint):
        with pytest.raises(Refusal, match=r"t\.csv"):
            call("my-reviews", data_dir=tmp_path)


def test_a_name_stands_for_one_table_only(tmp_path):
    path = table(tmp_path / "t.csv")
    register("mine", path, text="text", label="label", data_dir=tmp_path)
    register("mine", path, text="text", label="label", data_dir=tmp_path)
    with pytest.raises(Refusal, match=r"another table.*t\.csv.*remove .*mine\.toml"):
        register("mine", table(tmp_path / "u.csv"), text="text", label="label", data_dir=tmp_path)
    assert sorted(file.name for file in (tmp_path / "registered").iterdir()) == ["mine.toml"]


@pytest.mark.parametrize(
    "name", ["sst", "", "a/b", "../a", "A", "a b", "-a", "a.toml", "é", "a" * 65, "con\n"]
)
def test_a_name_that_is_taken_or_no_slug_is_refused(name, tmp_path):
    with pytest.raises(Refusal, match="Choose another name"):
        register(name, table(tmp_path / "t.csv"), text="text", label="label", data_dir=tmp_path)


def test_what_cannot_be_read_is_not_registered(tmp_path):
    with pytest.raises(Refusal, match="no column of that name"):
        register("mine", table(tmp_path / "t.csv"), text="txt", label="label", data_dir=tmp_path)
    with pytest.raises(Refusal, match="not UTF-8"):
        register("mine", tmp_path / "t\udcff.csv", text="text", label="label", data_dir=tmp_path)
    assert registrations(tmp_path) == {}
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Refusal, match="cannot be written"):
        register("mine", tmp_path / "t.csv", text="text", label="label", data_dir=tmp_path / "file")


SPOILT = ["file = ", 'file = "a"\ntext = "b"\n', 'file = "a"\ntext = 1\nlabel = "c"\n', "\xff"]


@pytest.mark.parametrize("content", SPOILT)
def test_a_registration_that_someone_spoilt_is_refused_by_its_path(content, tmp_path):
    (tmp_path / "registered").mkdir()
    (tmp_path / "registered" / "mine.toml").write_bytes(content.encode("latin-1"))
    with pytest.raises(Refusal, match=r"mine\.toml.*Remove that file"):
        load_corpus("mine", data_dir=tmp_path)
    register("other", table(tmp_path / "t.csv"), text="text", label="label", data_dir=tmp_path)
    found = registrations(tmp_path)
    assert isinstance(found["mine"], Refusal) and found["other"].file == str(tmp_path / "t.csv")
    assert load_corpus("other", data_dir=tmp_path).name == "other"


@given(WRITABLE, st.none() | WRITABLE)
def test_any_path_and_column_survive_the_registration_file(odd, query):
    registration = Registration(file=odd, text=odd, label="\x7f\\\"'\n\t\x00", query=query)
    assert Registration(**tomllib.loads(registration.to_toml())) == registration


def test_an_odd_column_name_loads_again(tmp_path):
    path = table(tmp_path / "t\"'\\.csv", extra=" é\\")
    register("mine", path, text="text é\\", label="label", data_dir=tmp_path)
    assert len(load_corpus("mine", data_dir=tmp_path).labels) == 2


@pytest.mark.realdata
@real
@pytest.mark.parametrize("mode", ["corrected", "as-published"])
def test_sst_has_the_published_sizes_to_within_three_of_each_class(mode):
    corpus = load_corpus("sst", mode=mode)
    counts = corpus.counts()
    published = {"train": (3034, 3321), "test": (863, 862)}
    for split, sizes in published.items():
        for label, size in zip(corpus.labels, sizes, strict=True):
            assert abs(counts[split][label] - size) <= 3
    assert abs(len(corpus.dev) - 822) <= 3
    assert corpus.excluded["label neutral"] == 1624 + 229 + 389


@pytest.mark.realdata
@real
def test_the_other_real_corpora_prepare_as_the_papers_say():
    news = load_corpus("20news")
    assert {len(news.test), len(news.dev)} == {363, 291} and len(news.train) == 1163
    assert all(6 < len(e.tokens) < 500 for e in news.train)
    for task, train in ((1, 10_000), (2, 10_000), (3, 1_925)):
        stories = load_corpus(f"babi-{task}")
        assert len(stories.test) == 1_000 and len(stories.dev) == int(0.15 * train + 0.5)
        assert len(stories.train) + len(stories.dev) == train and not stories.excluded
        assert stories.train[0].sentences and stories.train[0].rationale


@pytest.mark.realdata
@pytest.mark.slow
@real
def test_imdb_keeps_short_reviews_and_a_fifth_of_its_test_split():
    corpus = load_corpus("imdb")
    outside, lengths = (
        corpus.excluded["test text outside the sample"],
        ("400 tokens or more", "6 tokens or fewer"),
    )
    used = len(corpus.train) + len(corpus.dev) + len(corpus.test)
    assert used + outside + sum(corpus.excluded[why] for why in lengths) == 50_000
    assert len(corpus.test) == int(0.2 * (len(corpus.test) + outside) + 0.5)
    assert len(corpus.dev) == int(0.2 * (len(corpus.dev) + len(corpus.train)) + 0.5)
