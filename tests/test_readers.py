"""Readers and archives: each publisher's layout, packed and unpacked, whole and damaged."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from attentest.corpus.catalogue import CORPORA, load_corpus
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.preparation import Preparation, prepare
from attentest.corpus.readers import babi, imdb, newsgroups, sst
from attentest.corpus.single import reviews
from attentest.refusal import Refusal
from tests.packed import REVIEWS, TREES, packed

POST = "From: ann\nSubject: Re: game\n\nbob@x.edu writes:\n> you said\n| and this\nA fine gäme.\n\n--\nAnn\n"
POSTS = {
    f"./20news-bydate-{split}/rec.sport.{group}/{number}": POST
    for split, number in (("train", 104421), ("test", 7))
    for group in ("baseball", "hockey")
}
STORY = (
    "1 Mary moved to the hall.\n2 John took the milk.\n3 Where is Mary? \thall\t1\n4 Mary went out.\n"
    "5 Where is Mary?\tOut\t1 4\n1 Ann slept.\n2 Where is Ann, é?\tbed\t1\n"
)
TALES = {f"tasks_1-20_v1-2/en-10k/qa1_one-fact_{split}.txt": STORY for split in ("train", "test")} | {
    "tasks_1-20_v1-2/en/qa1_one-fact_train.txt": "not ours"
}
LAYOUTS = {
    "sst": (TREES, sst.read, "utf-8"),
    "imdb": (REVIEWS, imdb.read, "utf-8"),
    "20news": (POSTS, newsgroups.read, "latin-1"),
    "babi": (TALES, partial(babi.read, task=1), "utf-8"),
}


@pytest.mark.parametrize("kind", ["folder", "gzipped", ".tar", ".tar.gz", ".tar.xz", ".zip"])
@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_layout_reads_alike_however_it_is_packed(corpus, kind, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    (tmp_path / "plain").mkdir()
    plain = list(read(Archive.open(packed("folder", tmp_path / "plain", files, encoding))))
    (tmp_path / "other").mkdir()
    other = list(read(Archive.open(packed(kind, tmp_path / "other", files, encoding))))
    assert plain and sorted(other, key=lambda d: d.id) == sorted(plain, key=lambda d: d.id)


def documents(corpus: str, top: Path):
    files, read, encoding = LAYOUTS[corpus]
    return {document.id: document for document in read(Archive.open(packed("folder", top, files, encoding)))}


def test_sst_takes_its_label_from_the_root_and_keeps_the_neutral_for_counting(tmp_path):
    found = documents("sst", tmp_path)
    assert {id: (d.text, d.label, d.split) for id, d in found.items()} == {
        "train-1": ("Very good -LRB-", "positive", "train"),
        "train-2": ("So so", "neutral", "train"),
        "dev-1": ("bad .", "negative", "dev"),
        "test-1": ("fine 8\u00a01\\/2", "positive", "test"),
    }


BROKEN = ["(3 (2 a) (2 b)", "(3 (2 a)) (2 b)", "(3 a b)", "(3 )", "3 a", "()", "(3 (2 a) b)", ")", "(2 (3 ))"]


@pytest.mark.parametrize("line", [*BROKEN, "(7 a)", "(x a)", "(33 a)"])
def test_a_tree_that_does_not_add_up_is_refused_with_its_line(line, tmp_path):
    files = TREES | {"trees/dev.txt": f"(0 bad)\n{line}\n"}
    with pytest.raises(Refusal, match=r"trees/dev.txt, line 2: .* a root from 0 to 4.* get it again"):
        list(sst.read(Archive.open(packed("folder", tmp_path, files))))


def test_a_tree_may_be_deeper_than_the_stack_and_costs_no_more_than_its_length():
    depth = 200_000
    root, words = sst.leaves("(1 " * depth + "deep" + ")" * depth) or ("", ())
    assert (root, words) == ("1", ("deep",))
    assert sst.leaves("(1 " * depth + "deep" + ")" * (depth - 1)) is None


def test_imdb_names_a_review_by_its_path_and_reads_breaks_as_lines(tmp_path):
    found = documents("imdb", tmp_path)
    assert len(found) == 8 and found["test/neg/231_1"].text == "neg film\n\nnumber 231, é"
    assert (found["test/neg/231_1"].label, found["test/neg/231_1"].split) == ("negative", "test")


def test_a_post_keeps_only_what_its_writer_wrote(tmp_path):
    found = documents("20news", tmp_path)["20news-bydate-train/rec.sport.baseball/104421"]
    assert (found.text, found.label, found.split) == ("A fine gäme.", "baseball", "train")


def test_a_line_of_dashes_far_from_the_end_is_a_table_and_not_a_signature():
    rows = "\n".join(f"team {n}" for n in range(40))
    assert newsgroups.own_words(f"From: x\n\nscores\n------\n{rows}\n") == f"scores\n------\n{rows}"
    assert newsgroups.own_words("From: x\nno blank line") == ""


def test_babi_tells_the_story_without_its_questions_and_points_at_the_support(tmp_path):
    found = documents("babi", tmp_path)
    assert list(found) == [f"{split}-{n}" for split in ("test", "train") for n in ("1-1", "1-2", "2-1")]
    second = found["train-1-2"]
    assert " ".join(second.text) == "mary moved to the hall . john took the milk . mary went out ."
    assert (second.query, second.label) == (("where", "is", "mary", "?"), "out")
    assert second.sentences == (0, 6, 11) and second.rationale == (0, 1, 2, 3, 4, 5, 11, 12, 13, 14)
    assert found["train-2-1"].text == ("ann", "slept", ".")


@pytest.mark.parametrize(
    "line, needs",
    [
        ("Mary moved.", "N sentence"),
        ("5 Mary moved.", "a line numbered 3"),
        ("3 Where is Mary?\thall", "N question"),
        ("3 Where is Mary?\thall\tone", "N question"),
        ("3 Where is Mary?\thall\t9", "sentences of the story so far"),
        ("99999999999999999999 Mary moved.", "N sentence"),
    ],
)
def test_a_malformed_story_line_is_refused_with_its_number(line, needs, tmp_path):
    files = {name: f"1 Mary sat.\n2 John sat.\n{line}\n" for name in TALES}
    with pytest.raises(Refusal, match=rf"line 3: .*{needs}"):
        list(babi.read(Archive.open(packed("folder", tmp_path, files)), task=1))


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_layout_with_a_part_missing_is_refused_by_the_name_of_the_part(corpus, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    part = {name: text for name, text in files.items() if "test" not in name.split("aclImdb")[-1]}
    with pytest.raises(Refusal, match=r"got no [^ ]*test.*download the whole archive again"):
        list(read(Archive.open(packed(".tar.gz", tmp_path, part, encoding))))


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_the_archive_of_another_corpus_is_refused(corpus, tmp_path):
    other = TREES if corpus == "imdb" else REVIEWS
    with pytest.raises(Refusal, match=r"a\.zip: got no .*the publisher's files under their own names"):
        list(LAYOUTS[corpus][1](Archive.open(packed(".zip", tmp_path, other))))


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_gzipped_file_that_was_cut_short_is_refused_by_its_name(corpus, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    path = packed("gzipped", tmp_path, files, encoding)
    for file in path.rglob("*.gz"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(Refusal, match=r"undamaged.*get it again"):
        list(read(Archive.open(path)))


@pytest.mark.parametrize("corpus, encoding", [("sst", "latin-1"), ("imdb", "latin-1"), ("babi", "latin-1")])
def test_a_wrong_encoding_is_refused_by_the_name_of_the_file(corpus, encoding, tmp_path):
    files, read, _ = LAYOUTS[corpus]
    with pytest.raises(Refusal, match=r"member .*got a byte that is not utf-8"):
        list(read(Archive.open(packed("folder", tmp_path, files, encoding))))


def test_a_post_in_utf_16_is_refused_though_every_byte_is_latin_1(tmp_path):
    with pytest.raises(Refusal, match=r"rec\.sport\.\w+/\d+: got a NUL byte.*text in latin-1.*get it again"):
        list(newsgroups.read(Archive.open(packed("folder", tmp_path, POSTS, "utf-16"))))


NOTHING = ("", "\n \r\n")
SPLITS = {
    "sst": ("train.txt", "dev.txt", "test.txt"),
    "imdb": ("train/neg", "train/pos", "test/neg", "test/pos"),
    "20news": tuple(
        f"{split}/rec.sport.{sport}" for split in ("train", "test") for sport in ("baseball", "hockey")
    ),
    "babi": ("en-10k/qa1_one-fact_train.txt", "en-10k/qa1_one-fact_test.txt"),
}


@pytest.mark.parametrize("nothing", NOTHING)
@pytest.mark.parametrize(
    "corpus, part", [(corpus, part) for corpus, parts in SPLITS.items() for part in parts]
)
def test_an_empty_split_is_refused_and_none_is_made_up_for_it(corpus, part, nothing, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    emptied = {name: nothing if part in name else text for name, text in files.items()}
    with pytest.raises(Refusal, match=rf"{part}\S*: got nothing in it, but needs .*get it again"):
        list(read(Archive.open(packed("folder", tmp_path, emptied, encoding))))


@pytest.mark.parametrize("corpus, part", [(c, part) for c in ("imdb", "20news") for part in SPLITS[c]])
def test_an_empty_folder_is_refused_as_one_that_is_not_there(corpus, part, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    path = packed("folder", tmp_path, files, encoding)
    for file in [file for file in path.rglob("*") if part in file.as_posix() and file.is_file()]:
        file.unlink()
    with pytest.raises(Refusal, match=rf"got no [^ ]*{part}/ID.*the whole archive again"):
        list(read(Archive.open(path)))


@pytest.mark.parametrize("part", SPLITS["babi"])
def test_a_story_that_asks_nothing_is_no_split(part, tmp_path):
    files = {name: "1 Mary sat.\n2 John sat.\n" if part in name else text for name, text in TALES.items()}
    with pytest.raises(Refusal, match=rf"{part}, line 2: got the end, and no question before it"):
        list(babi.read(Archive.open(packed("folder", tmp_path, files)), task=1))


@pytest.mark.parametrize("part", SPLITS["20news"])
def test_a_group_that_only_quotes_is_no_part_of_the_corpus(part, tmp_path):
    files = {name: "From: x\n\n> quoted\n" if part in name else text for name, text in POSTS.items()}
    with pytest.raises(Refusal, match=rf"bydate-{part}: got posts without words of their own only"):
        list(newsgroups.read(Archive.open(packed("folder", tmp_path, files))))


def enough(corpus: str) -> dict[str, str]:
    """A layout with enough texts, and long enough ones, to become a corpus."""
    words = " ".join(f"(2 word{n})" for n in range(8))
    trees = "".join(f"({(0, 4)[n % 2]} {words})\n" for n in range(20))
    sides = (("neg", 1), ("pos", 10))
    return {
        "sst": {name: trees for name in TREES},
        "imdb": {
            f"aclImdb/{split}/{side}/{n}_{rating}.txt": f"One<br />two three four 5 six {side}. Number {n}!"
            for split in ("train", "test")
            for side, rating in sides
            for n in range(20)
        },
        "babi": TALES,
    }[corpus]


# What is there but of no use: neutral sentences, and reviews that are too short or too long.
USELESS = [
    ("sst", "dev.txt", "(2 (2 so) (2 so))\n", "an empty dev split"),
    ("sst", "test.txt", "(4 fine)\n", "an empty test split"),
    ("sst", "train.txt", "(2 (2 so) (2 so))\n", "no texts to train on .1 left out: label neutral"),
    ("imdb", "/test/", "short", "an empty test split"),
    ("imdb", "/test/", "long " * 400, "an empty test split"),
    ("imdb", "/train/", "short", "no texts to train on .40 left out: 6 tokens or fewer"),
]


@pytest.mark.parametrize("corpus, part, text, says", USELESS)
def test_a_split_without_a_usable_text_is_not_drawn_from_another(corpus, part, text, says, tmp_path):
    files = {name: text if part in name else whole for name, whole in enough(corpus).items()}
    (tmp_path / corpus).mkdir()
    packed("folder", tmp_path / corpus, files)
    with pytest.raises(Refusal, match=rf"corpus {corpus}: got {says}"):
        load_corpus(corpus, data_dir=tmp_path)


def test_a_split_that_the_layout_lacks_is_still_drawn_from_train(tmp_path):
    for corpus, sizes in (("imdb", (32, 8, 8)), ("babi", (2, 1, 3))):
        (tmp_path / corpus).mkdir()
        packed("folder", tmp_path / corpus, enough(corpus))
        found = load_corpus({"babi": "babi-1"}.get(corpus, corpus), data_dir=tmp_path)
        assert tuple(len(split) for split in found.splits().values()) == sizes


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_files_that_are_there_twice_are_refused_by_an_id(corpus, tmp_path):
    files, read, encoding = LAYOUTS[corpus]
    twice = files | {f"copy/{name}": text for name, text in files.items()}
    documents = read(Archive.open(packed("folder", tmp_path, twice, encoding)))
    with pytest.raises(Refusal, match=r"text '\S+': got an id that occurs twice.*second copy"):
        prepare(corpus, documents, Preparation())


def test_a_review_that_is_there_twice_is_noticed_even_outside_the_sample(tmp_path):
    files = enough("imdb")
    for n, name in enumerate(name for name in files if "/test/" in name):
        folder = tmp_path / str(n) / "imdb"
        folder.mkdir(parents=True)
        packed(".zip", folder, files | {f"copy/{name}": files[name]})
        with pytest.raises(Refusal, match="occurs twice"):
            load_corpus("imdb", data_dir=tmp_path / str(n))


@pytest.mark.parametrize("name", ["neg/1_0", "neg/1_5", "neg/1_10", "pos/1_4", "pos/1_6", "pos/1_11"])
@pytest.mark.parametrize("rated", [True, False])
def test_a_rating_that_is_none_of_its_side_is_refused(name, rated, tmp_path):
    files = REVIEWS | {f"aclImdb/train/{name}.txt": "a film"}
    with pytest.raises(Refusal, match=rf"{name}\.txt: got a rating of \d+ in {name[:3]}, .*one of"):
        list(imdb.read(Archive.open(packed("folder", tmp_path, files)), rated=rated))


# --- one review


@pytest.mark.parametrize("kind", ["folder", "gzipped", ".tar.gz", ".zip"])
def test_one_review_is_what_the_corpus_has_or_would_have_outside_its_sample(kind, tmp_path):
    (tmp_path / "imdb").mkdir()
    packed(kind, tmp_path / "imdb", enough("imdb"))
    corpus = load_corpus("imdb", data_dir=tmp_path)
    source = CORPORA["imdb"]
    documents = source.origin.reader(source.origin.find(tmp_path))
    whole = prepare("whole", documents, replace(source.preparation, test_sample=None), labels=source.labels)
    inside = {example.id: example for split in corpus.splits().values() for example in split}
    everything = {example.id: example for split in whole.splits().values() for example in split}
    assert len(inside) == 48 and len(everything) == 80 and inside.items() <= everything.items()
    for id, example in everything.items():
        assert reviews([id], tmp_path) == {id: example}
    assert reviews(everything, tmp_path) == everything
    tokens = reviews(["test/neg/7_1"], tmp_path)["test/neg/7_1"].tokens
    assert tokens[:5] == ("one", "two", "three", "four", "qqq")


@pytest.mark.parametrize(
    "name", ["test/neg/231_2", "neg/231_1", "231_1", "aclImdb/test/neg/231_1", "test/neg/231_1.txt", ".*", ""]
)
def test_a_review_that_is_not_in_the_archive_is_not_found(name, tmp_path):
    (tmp_path / "imdb").mkdir()
    longer = {key: 3 * f"{text} again and again. " for key, text in REVIEWS.items()}
    packed(".tar.gz", tmp_path / "imdb", longer)
    assert reviews([name, "test/neg/231_1"], tmp_path).keys() == {"test/neg/231_1"}


def test_a_review_that_the_corpus_leaves_out_is_not_found_and_without_an_archive_all_are_refused(tmp_path):
    (tmp_path / "imdb").mkdir()
    with pytest.raises(
        Refusal, match=r"'test/neg/231_1': got no files of IMDB in .*aclImdb_v1\.tar\.gz.*ATTENTEST_DATA"
    ):
        reviews(["test/neg/231_1"], tmp_path)
    packed(".zip", tmp_path / "imdb", enough("imdb") | {"test/neg/99_1.txt": "short"})
    assert reviews(["test/neg/99_1", "test/neg/7_1"], tmp_path).keys() == {"test/neg/7_1"}


def test_a_damaged_review_is_refused_and_not_left_out(tmp_path):
    (tmp_path / "imdb").mkdir()
    packed(".zip", tmp_path / "imdb", enough("imdb") | {"test/neg/99_1.txt": " "})
    with pytest.raises(Refusal, match="nothing in it"):
        reviews(["test/neg/99_1"], tmp_path)


@pytest.mark.parametrize("kind", [".tar", ".tar.gz", ".tar.xz", ".zip"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.85])
def test_an_archive_that_was_cut_short_is_refused_by_its_name(kind, share, tmp_path):
    files = {f"aclImdb/train/neg/{n}_1.txt": os.urandom(300).hex() for n in range(40)}
    path = packed(kind, tmp_path, files)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(Refusal, match=rf"a{kind}.*undamaged.*get it again"):
        list(imdb.read(Archive.open(path)))


def test_a_tar_cut_between_two_members_is_not_taken_for_a_shorter_one(tmp_path):
    path = packed(".tar", tmp_path, {name: "x" * 512 for name in ("a", "b", "c")})
    path.write_bytes(path.read_bytes()[: 2 * 1024])
    with pytest.raises(Refusal, match="unexpected end"):
        list(Archive.open(path).names())


@pytest.mark.parametrize("kind", [".tar", ".tar.gz", ".tar.xz", ".zip"])
def test_a_spoilt_byte_is_noticed(kind, tmp_path):
    path = packed(kind, tmp_path, {name: os.urandom(256).hex() for name in ("a", "b", "c")})
    content = bytearray(path.read_bytes())
    content[1024 + 5 if kind == ".tar" else len(content) // 2] ^= 0xFF  # in a tar only headers are checked
    path.write_bytes(content)
    with pytest.raises(Refusal, match="undamaged"):
        list(Archive.open(path).members())


def test_a_page_saved_in_place_of_an_archive_is_refused(tmp_path):
    for kind in (".tar.gz", ".tar.xz", ".zip", ".tar", ".gz"):
        path = tmp_path / f"a{kind}"
        path.write_text("<html>not found</html>")
        with pytest.raises(Refusal, match="undamaged"):
            Archive.open(path).read("a")


def test_a_wrong_encoding_and_a_missing_member_are_refused(tmp_path):
    archive = Archive.open(packed(".zip", tmp_path, {"a.txt": "gäme"}, "latin-1"))
    with pytest.raises(Refusal, match=r"member a.txt: got a byte that is not utf-8"):
        archive.text("a.txt")
    with pytest.raises(Refusal, match=r"not utf-8"):
        list(archive.lines("a.txt"))
    assert archive.text("a.txt", encoding="latin-1") == "gäme"
    for read in (archive.read, lambda name: list(archive.lines(name))):
        with pytest.raises(Refusal, match=r"got no b\.txt"):
            read("b.txt")
    for path in (tmp_path / "nowhere", tmp_path / "a.rar"):
        (tmp_path / "a.rar").write_text("")
        with pytest.raises(Refusal, match=r"\.tar\.gz.*Check the path"):
            Archive.open(path)


def test_nothing_is_written_for_a_member_that_climbs_out_and_litter_is_skipped(tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    path = packed(".tar.gz", inside, {"../evil": "x", "__MACOSX/._a": "y", "b/._a": "z", "c.txt": "1\n2\n"})
    archive = Archive.open(path)
    assert list(archive.names()) == ["../evil", "c.txt"] and archive.read("../evil") == b"x"
    assert list(archive.lines("c.txt")) == ["1\n", "2\n"]
    assert not (tmp_path / "evil").exists() and list(inside.iterdir()) == [path]
    single = tmp_path / "one.txt.gz"
    single.write_bytes(gzip.compress(b"alone"))
    assert {found.string: content for found, content in Archive.open(single).members()} == {
        "one.txt": b"alone"
    }


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("ATTENTEST_DATA"), reason="ATTENTEST_DATA is not set")
@pytest.mark.parametrize(
    "place, read, expected",
    [
        ("sst", sst.read, {"train": (3310, 1624, 3610), "dev": (428, 229, 444), "test": (912, 389, 909)}),
        pytest.param(
            "imdb/aclImdb_v1.tar.gz",
            imdb.read,
            {"train": (12500, 12500), "test": (12500, 12500)},
            marks=pytest.mark.slow,
        ),
        ("20news/20news-bydate.tar.gz", newsgroups.read, {"train": (597, 600), "test": (397, 399)}),
        ("babi", partial(babi.read, task=1), {"train": 10_000, "test": 1_000}),
        pytest.param(
            "babi", partial(babi.read, task=2), {"train": 10_000, "test": 1_000}, marks=pytest.mark.slow
        ),
        pytest.param(
            "babi", partial(babi.read, task=3), {"train": 1_925, "test": 1_000}, marks=pytest.mark.slow
        ),
    ],
)
def test_the_real_files_hold_as_many_texts_as_their_publishers_say(place, read, expected):
    counts = Counter(
        (d.split, d.label) for d in read(Archive.open(Path(os.environ["ATTENTEST_DATA"]) / place))
    )
    labels = sorted({label for _, label in counts})
    for split, sizes in expected.items():
        found = [counts[split, label] for label in labels]
        assert sum(found) == sizes if isinstance(sizes, int) else tuple(found) == sizes
    assert {split for split, _ in counts} == set(expected)


@pytest.mark.realdata
@pytest.mark.skipif(not os.environ.get("ATTENTEST_DATA"), reason="ATTENTEST_DATA is not set")
def test_the_review_of_the_papers_first_figure_is_read_from_the_real_archive():
    review = reviews(["test/neg/231_1"])["test/neg/231_1"]
    assert review.label == "negative" and review.sentences == (0, 34, 46) and len(review.tokens) == 57
    sentences = " ".join(review.tokens).split(" . ")
    assert sentences[0].startswith("after qqq minutes watching the movie i was asking myself what to do :")
    assert sentences[1:] == [
        "i finally watched the movie : what a waste of time",
        "maybe i am not a qqq years old kid anymore !",
    ]
