"""Readers of the larger and the guarded corpora: each layout, packed and unpacked, whole and damaged."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import os
import tracemalloc
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from attentest.corpus.catalogue import CORPORA, fingerprint, load_corpus
from attentest.corpus.fetch.archive import ANY, Archive
from attentest.corpus.preparation import Preparation, prepare
from attentest.corpus.readers import adr, cnn, eraser, imdb, mimic, reviews, snli
from attentest.corpus.shelf import describe, entries
from attentest.refusal import Refusal
from tests.packed import REVIEWS, TREES, packed


def table(*rows: tuple[str, ...]) -> str:
    file = io.StringIO()
    csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return file.getvalue()


def pair(id: str, label: str = "neutral", **more: object) -> str:
    said = {"gold_label": label, "sentence1": "Two men é sit .", "sentence2": "They sleep .", "pairID": id}
    return json.dumps(said | more, ensure_ascii=False) + "\n"


def question(answer: str = "@entity1", passage: str = "@entity1 met @entity12 , é @entity1-based") -> str:
    names = "@entity1:Ann\n@entity12:Bob\n@entity3:Cam"
    return f"http://a.b/c\n\n{passage}\n\n@placeholder met @entity12\n\n{answer}\n\n{names}"


def marked(id: str, *spans: tuple[int, int], label: str = "NEG", **more: object) -> str:
    evidence = [[{"docid": id, "start_token": a, "end_token": b, "text": "x"}] for a, b in spans]
    said = {"annotation_id": id, "classification": label, "evidences": evidence, "query": "Is it good ?"}
    return json.dumps(said | more) + "\n"


PAIRS = {
    "snli_1.0/snli_1.0_train.jsonl": pair("a", "entailment") + pair("b", "-") + "\n" + pair("c"),
    "snli_1.0/snli_1.0_dev.jsonl": pair("d", "contradiction"),
    "snli_1.0/snli_1.0_test.jsonl": pair("e"),
    "snli_1.0/snli_1.0_train.txt": "not read",
}
YELP = {
    "yelp_review_full_csv/train.csv": table(("5", r"Fine é.\n\nVery \"fine\" caf\u00e9 \ud83d\ude00\ud83d"))
    + table(("1", "Two\nlines, \\size")),
    "yelp_review_full_csv/test.csv": table(("2", "so so")),
    "yelp_review_full_csv/readme.txt": "not read",
}
AMAZON = {
    f"amazon_review_full_csv/{s}.csv": table(("3", "A é", "B"), ("4", "", "C")) for s in ("train", "test")
}
YAHOO = {
    f"yahoo_answers_csv/{split}.csv": table(("1", "", "", "why é"), ("10", "t", "c", "a"))
    for split in ("train", "test")
}
NEWS = {
    f"ag_news_csv/{split}.csv": table(*((str(n), "Title é", r"dwindling\nation, \$3") for n in range(1, 5)))
    for split in ("train", "test")
}
CLOZE = {f"cnn/questions/{part}/ab12.question": question() for part in ("training", "validation", "test")}
TWEETS = {"tweets.tsv": '12\t34\t1\tOh "no é\n12\t35\t0\tfine\n\n36\tYES\tdizzy\r\n', "ids.txt": "not read"}
CODES = table(
    ("ROW_ID", "SUBJECT_ID", "HADM_ID", "SEQ_NUM", "ICD9_CODE"),
    *(("1", "9", hadm, "1", code) for hadm, code in (("100", "25000"), ("100", "2851"), ("101", "28521"))),
    *(("1", "9", hadm, "1", code) for hadm, code in (("102", "2852"), ("102", "2851"), ("103", ""))),
)
HEADER = ("ROW_ID", "HADM_ID", "CATEGORY", "DESCRIPTION", "TEXT")
NOTES = table(
    HEADER,
    ("1", "100", "Discharge summary", "Addendum", "also"),
    ("2", "100", "Discharge summary", "Report", 'Said "é",\nthen left.'),
    ("3", "100", "Nursing", "Report", "slept"),
    ("4", "100", "Discharge summary", "Report", "again"),
    ("5", "101", "Discharge summary", "Report", "b"),
    ("6", "102", "Discharge summary", "Report", "c"),
    ("7", "103", "Discharge summary", "Report", "d"),
    ("8", "104", "Discharge summary", "Report", "e"),
    ("9", "", "Discharge summary", "Report", "f"),
)
PATIENTS = {"mimiciii/1.4/NOTEEVENTS.csv": NOTES, "mimiciii/1.4/DIAGNOSES_ICD.csv": CODES}
LISTS = {
    "train_50_hadm_ids.csv": "100\n101\n",
    "dev_50_hadm_ids.csv": "102\n",
    "test_50_hadm_ids.csv": "103\n",
}
FILMS = {
    "movies/train.jsonl": marked("a.txt", (0, 2), (1, 3), (4, 4)),
    "movies/val.jsonl": marked("b.txt", (4, 5), label="POS"),
    "movies/test.jsonl": marked("c.txt"),
    **{f"movies/docs/{name}.txt": "not good é\n\ndull .\n" for name in "abcd"},
}
read_films = partial(eraser.read, name="movies", labels=eraser.SENTIMENT)
read_diabetes = partial(mimic.read, codes={"diabetes": "25000"}, otherwise="no diabetes", lists=True)
read_anemia = partial(mimic.read, codes={"chronic": "2852", "acute": "2851"})
LAYOUTS = {
    "snli": (PAIRS, snli.read),
    "yelp": (YELP, reviews.YELP.read),
    "amazon": (AMAZON, reviews.AMAZON.read),
    "yahoo": (YAHOO, reviews.YAHOO.read),
    "agnews": (NEWS, reviews.AGNEWS.read),
    "imdb-ratings": (REVIEWS, partial(imdb.read, rated=True)),
    "cnn": (CLOZE, cnn.read),
    "adr": (TWEETS, adr.read),
    "mimic-diabetes": (PATIENTS | LISTS, read_diabetes),
    "mimic-anemia": (PATIENTS, read_anemia),
    "movies": (FILMS, read_films),
}


def documents(corpus: str, top: Path, *, kind: str = "folder", **spoilt: str):
    """What the reader finds in a layout, of which some files may be replaced by their endings."""
    files, read = LAYOUTS[corpus]
    files = {
        name: next((text for end, text in spoilt.items() if name.endswith(end)), content)
        for name, content in files.items()
    }
    top.mkdir(exist_ok=True)
    return list(read(Archive.open(packed(kind, top, files))))


@pytest.mark.parametrize("kind", ["gzipped", ".tar", ".tar.gz", ".tar.xz", ".zip"])
@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_layout_reads_alike_however_it_is_packed(corpus, kind, tmp_path):
    plain = documents(corpus, tmp_path / "plain")
    other = documents(corpus, tmp_path / "other", kind=kind)
    assert plain and sorted(other, key=lambda d: d.id) == sorted(plain, key=lambda d: d.id)


def test_snli_attends_the_premise_and_keeps_the_undecided_for_counting(tmp_path):
    found = {d.id: d for d in documents("snli", tmp_path)}
    assert (found["a"].text, found["a"].query) == ("Two men é sit .", "They sleep .")
    assert {id: (d.label, d.split) for id, d in found.items()} == {
        "a": ("entailment", "train"),
        "b": ("undecided", "train"),
        "c": ("neutral", "train"),
        "d": ("contradiction", "dev"),
        "e": ("neutral", "test"),
    }


def test_a_field_of_a_review_is_read_as_the_text_it_stands_for(tmp_path):
    first, second, other = sorted(documents("yelp", tmp_path), key=lambda d: (d.split != "train", d.id))
    assert first.text == 'Fine é.\n\nVery "fine" café 😀\ufffd' and first.label == "5 stars"
    assert (second.id, second.text, second.label) == ("train-2", "Two\nlines, \\size", "1 star")
    assert (other.id, other.split, other.label) == ("test-1", "test", "2 stars")


def test_titles_and_bodies_are_lines_of_one_text_and_empty_ones_are_left_out(tmp_path):
    assert [d.text for d in documents("amazon", tmp_path / "a")] == ["A é\nB", "C"] * 2
    found = documents("yahoo", tmp_path / "b")
    assert [(d.text, d.label) for d in found[:2]] == [
        ("why é", "society & culture"),
        ("t\nc\na", "politics & government"),
    ]


def test_a_bare_backslash_in_ag_news_is_where_two_lines_were_joined(tmp_path):
    found = documents("agnews", tmp_path)
    assert [d.label for d in found[:4]] == ["world", "sports", "business", "science & technology"]
    assert found[0].text == "Title é\ndwindling nation,  $3"


def test_a_review_may_be_labelled_by_the_rating_in_its_name(tmp_path):
    found = {d.id: d.label for d in documents("imdb-ratings", tmp_path)}
    assert found["test/neg/231_1"] == "rated 1" and found["train/pos/7_10"] == "rated 10"
    assert "IMDB-10" in CORPORA["imdb-ratings"].title and set(found.values()) < set(imdb.RATINGS)


def test_the_candidates_of_a_cloze_question_are_the_entities_of_its_passage(tmp_path):
    found = {d.id: d for d in documents("cnn", tmp_path)}
    assert {id: d.split for id, d in found.items()} == {
        "training/ab12": "train",
        "validation/ab12": "dev",
        "test/ab12": "test",
    }
    first = found["test/ab12"]
    assert first.text == ("@entity1", "met", "@entity12", ",", "é", "@entity1-based")
    assert first.query == ("@placeholder", "met", "@entity12") and first.label == "@entity1"
    assert first.candidates == ("@entity1", "@entity12")


def test_a_tweet_is_the_last_column_and_its_label_the_one_before(tmp_path):
    found = [(d.id, d.text, d.label, d.split) for d in documents("adr", tmp_path)]
    assert found == [
        ("tweets-1", 'Oh "no é', "yes", None),
        ("tweets-2", "fine", "no", None),
        ("tweets-4", "dizzy", "yes", None),
    ]
    files = {f"adr_{name}.tsv": "0\tfine\n" for name in ("Train", "valid", "test", "x")}
    split = {d.id: d.split for d in adr.read(Archive.open(packed(".zip", tmp_path, files)))}
    assert split == {"adr_Train-1": "train", "adr_valid-1": "dev", "adr_test-1": "test", "adr_x-1": None}


def test_a_summary_is_labelled_by_the_codes_of_its_admission_and_the_rest_is_only_counted(tmp_path):
    found = documents("mimic-anemia", tmp_path)
    assert {d.id: (d.text, d.label) for d in found if d.text} == {
        "100": ('Said "é",\nthen left.', "acute"),
        "101": ("b", "chronic"),
    }
    assert Counter(d.label for d in found if not d.text) == {
        "none: a further note of the admission": 2,
        "acute and chronic": 1,
        "neither chronic nor acute": 1,
        "none: no diagnoses": 2,
    }


def test_diabetes_is_one_code_and_its_splits_are_those_of_the_lists_where_there_are_any(tmp_path):
    found = {d.id: (d.label, d.split) for d in documents("mimic-diabetes", tmp_path / "a") if d.text}
    assert found == {
        "100": ("diabetes", "train"),
        "101": ("no diabetes", "train"),
        "102": ("no diabetes", "dev"),
        "103": ("no diabetes", "test"),
    }
    (tmp_path / "b").mkdir()
    free = list(read_diabetes(Archive.open(packed("folder", tmp_path / "b", PATIENTS))))
    assert {d.id: d.label for d in free if d.text} == {id: label for id, (label, _) in found.items()}
    assert {d.split for d in free} == {None}
    (tmp_path / "b" / "test_50_hadm_ids.csv").write_text("103\n")
    with pytest.raises(Refusal, match=r"no dev_50_hadm_ids\.csv, no train_50"):
        list(read_diabetes(Archive.open(tmp_path / "b")))
    listed = documents("mimic-diabetes", tmp_path / "c", **{"train_50_hadm_ids.csv": "101\n"})
    assert Counter(d.label for d in listed)["none: not in the lists"] == 3 + 2
    with pytest.raises(Refusal, match=r"dev_50_hadm_ids\.csv, line 2: got 'HADM'"):
        documents("mimic-diabetes", tmp_path / "d", **{"dev_50_hadm_ids.csv": "102\nHADM\n"})
    with pytest.raises(Refusal, match=r"dev_50_hadm_ids\.csv: got no admission with a summary"):
        documents("mimic-diabetes", tmp_path / "e", **{"dev_50_hadm_ids.csv": "999\n"})


def test_the_header_of_a_table_may_be_in_small_letters(tmp_path):
    small = {
        name: text.replace(",".join(f'"{n}"' for n in HEADER), ",".join(HEADER).lower())
        for name, text in PATIENTS.items()
    }
    assert [d.id for d in read_anemia(Archive.open(packed(".zip", tmp_path, small))) if d.text] == [
        "100",
        "101",
    ]


def test_evidence_becomes_the_rationale_and_lines_become_sentences(tmp_path):
    found = {d.id: d for d in documents("movies", tmp_path)}
    assert set(found) == {"a.txt", "b.txt", "c.txt"}
    first = found["a.txt"]
    assert first.text == ("not", "good", "é", "dull", ".") and first.sentences == (0, 3)
    assert (first.rationale, first.label, first.split, first.query) == ((0, 1, 2), "negative", "train", None)
    assert (found["b.txt"].rationale, found["b.txt"].label, found["b.txt"].split) == ((4,), "positive", "dev")
    assert (found["c.txt"].rationale, found["c.txt"].split) == ((), "test")


def test_any_other_set_of_eraser_is_read_by_its_name_with_its_own_labels_and_queries(tmp_path):
    files = {
        "boolq/train.jsonl": marked("1", (0, 1), label="True", docids=["x"])
        + marked("2", label="False", docids=["docs/one"]),
        "boolq/val.jsonl": marked("3", label="True", docids=["docs/one"]),
        "boolq/test.jsonl": json.dumps(
            json.loads(marked("4", label="True")) | {"evidences": [], "docids": None}
        ),
        **{f"boolq/docs/{name}": "some text ." for name in ("1", "4", "docs/one")},
    }
    found = {
        d.id: d for d in eraser.read(Archive.open(packed(".tar", tmp_path, files)), name="boolq", query=True)
    }
    assert {id: d.label for id, d in found.items()} == {"1": "True", "2": "False", "3": "True", "4": "True"}
    assert found["1"].rationale == (0,) and found["2"].query == "Is it good ?"


# --- what can be wrong with a file

WRONG = {
    "a label of SNLI that is none": (
        "snli",
        "dev.jsonl",
        pair("d") + pair("f", "maybe"),
        r"line 2: got the label 'maybe'",
    ),
    "six stars": (
        "yelp",
        "test.csv",
        table(("1", "a"), ("6", "b")),
        r"line 2: got stars '6', but needs a number from 1 to 5",
    ),
    "no stars": ("amazon", "test.csv", table(("", "a", "b")), r"line 1: got stars ''"),
    "an eleventh topic": ("yahoo", "train.csv", table(("11", "", "", "a")), r"got topic '11'.*from 1 to 10"),
    "a fifth kind of news": ("agnews", "train.csv", table(("5", "a", "b")), r"got class '5'"),
    "a tweet that is perhaps": ("adr", "tweets.tsv", "1\tok\n9\tmaybe\toh\n", r"line 2: got '9.tmaybe.toh'"),
    "a line without a tab": ("adr", "tweets.tsv", "no tab\n", r"line 1: .*last two columns"),
    "a label of ERASER that is none": (
        "movies",
        "val.jsonl",
        marked("b.txt", label="MEH"),
        r"line 1: got the label 'MEH', but needs one of NEG, POS",
    ),
    "a ragged review": (
        "yelp",
        "train.csv",
        '"1","a\nb"\n"2","a","b"\n',
        r"train\.csv, line 3: got 3 fields, but needs 2: stars, text",
    ),
    "a review that does not end": (
        "yelp",
        "train.csv",
        '"1","a"\n"2","a\nb\n',
        r"line 3: got wrong quotation marks",
    ),
    "a ragged note": (
        "mimic-anemia",
        "NOTEEVENTS.csv",
        NOTES + '"1","2"\n',
        r"NOTEEVENTS\.csv, line 12: got 2 fields",
    ),
    "a ragged diagnosis": (
        "mimic-anemia",
        "DIAGNOSES_ICD.csv",
        CODES + '"1"\n',
        r"DIAGNOSES_ICD\.csv, line 8: got 1 fields",
    ),
    "notes without texts": (
        "mimic-anemia",
        "NOTEEVENTS.csv",
        table(("HADM_ID", "CATEGORY")),
        r"line 1: got no column TEXT",
    ),
    "no JSON": ("snli", "dev.jsonl", pair("d") + "{'a': 1}\n", r"dev\.jsonl, line 2: got no JSON"),
    "JSON that is a list": ("snli", "dev.jsonl", "[1]\n", r"line 1: got JSON that is a list"),
    "JSON too deep to read": ("snli", "dev.jsonl", "[" * 100_000 + "\n", r"line 1: got no JSON"),
    "a pair without an id": ("snli", "dev.jsonl", pair("d", pairID=None), r"got no pairID"),
    "a sentence that is a number": (
        "snli",
        "dev.jsonl",
        pair("d", sentence1=7),
        r"a sentence1 that is a int",
    ),
    "evidence past the end": (
        "movies",
        "train.jsonl",
        marked("a.txt", (3, 6)),
        r"train\.jsonl, line 1: got evidence from token 3 to 6, but needs evidence within the 5",
    ),
    "evidence before the beginning": (
        "movies",
        "train.jsonl",
        marked("a.txt", (-1, 2)),
        r"evidence from token -1",
    ),
    "evidence that runs backwards": ("movies", "train.jsonl", marked("a.txt", (3, 2)), r"from token 3 to 2"),
    "evidence that is no object": (
        "movies",
        "train.jsonl",
        marked("a.txt", evidences=["x"]),
        r"got no docid",
    ),
    "evidence that is nothing": (
        "movies",
        "train.jsonl",
        marked("a.txt", evidences=None),
        r"got no evidences",
    ),
    "evidence in two documents": (
        "movies",
        "train.jsonl",
        marked("a.txt", evidences=[[{"docid": "a.txt"}], [{"docid": "b.txt"}]]),
        r"evidence in 2 documents",
    ),
    "a question with too few blocks": (
        "cnn",
        ".question",
        "http://a.b\n\ntext\n",
        r"ab12\.question: got 2 blocks",
    ),
    "an answer that is nowhere": (
        "cnn",
        ".question",
        question("@entity3"),
        r"got the answer '@entity3'.*in the passage",
    ),
    "an answer that only begins alike": (
        "cnn",
        ".question",
        question(passage="@entity12"),
        r"got the answer '@entity1'",
    ),
    "a question that asks nothing": (
        "cnn",
        ".question",
        question().replace("@placeholder", "x"),
        r"without @placeholder",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_with_a_file_is_said_with_its_place(what, tmp_path):
    corpus, end, content, says = WRONG[what]
    with pytest.raises(Refusal, match=says) as refused:
        documents(corpus, tmp_path, **{end: content})
    assert str(tmp_path) in str(refused.value) and "get it again" in str(refused.value)


PARTS = [
    *(("snli", f"{split}.jsonl") for split in ("train", "dev", "test")),
    *(
        (name, f"{split}.csv")
        for name in ("yelp", "amazon", "yahoo", "agnews")
        for split in ("train", "test")
    ),
    ("adr", "tweets.tsv"),
    *(("mimic-diabetes", f"{split}_50_hadm_ids.csv") for split in ("train", "dev", "test")),
    ("mimic-anemia", "NOTEEVENTS.csv"),
    ("mimic-anemia", "DIAGNOSES_ICD.csv"),
    *(("movies", f"{split}.jsonl") for split in ("train", "val", "test")),
]


@pytest.mark.parametrize("corpus, end", PARTS)
def test_an_empty_file_is_refused_and_no_split_is_made_up_for_it(corpus, end, tmp_path):
    for n, nothing in enumerate(("", "\n\n")):
        with pytest.raises(Refusal, match=rf"{end}: got nothing in it.*at least one record"):
            documents(corpus, tmp_path / str(n), **{end: nothing})


FOLDERS = [
    *(("cnn", f"questions/{part}/") for part in ("training", "validation", "test")),
    *(("imdb-ratings", f"{part}/{side}/") for part in ("train", "test") for side in ("neg", "pos")),
]


@pytest.mark.parametrize("nothing", ["", "\n\n"])
@pytest.mark.parametrize("corpus, folder", FOLDERS)
def test_a_folder_of_empty_files_is_no_split_either(corpus, folder, nothing, tmp_path):
    files, read = LAYOUTS[corpus]
    emptied = {name: nothing if folder in name else text for name, text in files.items()}
    with pytest.raises(Refusal, match=rf"{folder}\w+\.\w+: got (nothing in it|1 blocks), .*get it again"):
        list(read(Archive.open(packed("folder", tmp_path, emptied))))


@pytest.mark.parametrize("corpus, part", [*PARTS, *FOLDERS, ("movies", "docs/b.txt")])
def test_a_layout_with_a_part_missing_is_refused_by_the_name_of_the_part(corpus, part, tmp_path):
    files, read = LAYOUTS[corpus]
    kept = {name: text for name, text in files.items() if part not in name}
    missing = "*.tsv" if corpus == "adr" else part
    with pytest.raises(Refusal, match="the whole archive again") as refused:
        list(read(Archive.open(packed(".tar.gz", tmp_path, kept))))
    assert "got no " in str(refused.value) and missing in str(refused.value)


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_the_archive_of_another_corpus_is_refused(corpus, tmp_path):
    with pytest.raises(Refusal, match=r"a\.zip: got no .*the publisher's files under their own names"):
        list(LAYOUTS[corpus][1](Archive.open(packed(".zip", tmp_path, TREES))))


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_gzipped_file_that_was_cut_short_is_refused_by_its_name(corpus, tmp_path):
    path = packed("gzipped", tmp_path, LAYOUTS[corpus][0])
    for file in path.rglob("*.gz"):
        file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(Refusal, match=r"undamaged.*get it again"):
        list(LAYOUTS[corpus][1](Archive.open(path)))


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_a_wrong_encoding_is_refused_by_the_name_of_the_file(corpus, tmp_path):
    files = {name: text.replace("😀", "") for name, text in LAYOUTS[corpus][0].items()}
    with pytest.raises(Refusal, match=r"member .*got a byte that is not utf-8"):
        list(LAYOUTS[corpus][1](Archive.open(packed("folder", tmp_path, files, "latin-1"))))


TWICE = {
    "snli": pair("a", "entailment") + pair("a"),
    "movies": marked("a.txt") + marked("a.txt", label="POS"),
}


@pytest.mark.parametrize("corpus", TWICE)
def test_an_id_that_occurs_twice_is_refused_by_the_corpus(corpus, tmp_path):
    twice = documents(corpus, tmp_path, **{"train.jsonl": TWICE[corpus]})
    with pytest.raises(Refusal, match=r"text 'a.*an id that occurs twice"):
        prepare(corpus, twice, Preparation())


@pytest.mark.parametrize("corpus", LAYOUTS)
def test_files_that_are_there_twice_are_refused_by_an_id(corpus, tmp_path):
    files, read = LAYOUTS[corpus]
    twice = files | {f"copy/{name}": text for name, text in files.items()}
    with pytest.raises(Refusal, match=r"text '.+': got an id that occurs twice.*second copy"):
        prepare(corpus, read(Archive.open(packed("folder", tmp_path, twice))), Preparation())


def test_a_text_of_any_length_fits_a_field(tmp_path):
    before = csv.field_size_limit()
    found = documents("yelp", tmp_path, **{"train.csv": table(("1", "x" * 300_000))})
    assert max(len(d.text) for d in found) == 300_000 and csv.field_size_limit() == before


# --- by name

SIDES = "One two three four five six seven eight"
MANY = range(40)
SMALL = {
    "agnews": {
        f"ag_news_csv/{split}.csv": table(*((str(1 + n % 4), "T", f"{SIDES} {n}") for n in MANY))
        for split in ("train", "test")
    },
    "snli": PAIRS,
    "cnn": {
        f"questions/{part}/{n}.question": question(("@entity1", "@entity12")[n % 2])
        for part in ("training", "validation", "test")
        for n in MANY
    },
    "adr": {"all.tsv": "".join(f"{n}\t{n % 2}\t{SIDES}\n" for n in MANY)},
    "mimic": {
        "NOTEEVENTS.csv": table(
            HEADER, *((str(n), str(n), "Discharge summary", "Report", SIDES) for n in MANY)
        ),
        "DIAGNOSES_ICD.csv": table(
            ("HADM_ID", "ICD9_CODE"), *((str(n), ("25000", "2851", "28529", "4019")[n % 4]) for n in MANY)
        ),
    },
}


def shelved(folder: str, data: Path) -> Path:
    (data / folder).mkdir(parents=True)
    packed("gzipped" if folder == "mimic" else ".zip", data / folder, SMALL[folder])
    return data


@pytest.mark.parametrize(
    "name, folder, sizes, excluded",
    [
        ("agnews", "agnews", (17, 3, 20), {"label sports": 20, "label science & technology": 20}),
        ("snli", "snli", (2, 1, 1), {"label undecided": 1}),
        ("cnn", "cnn", (40, 40, 40), {}),
        ("adr", "adr", (27, 5, 8), {}),
        ("mimic-diabetes", "mimic", (27, 5, 8), {}),
        ("mimic-anemia", "mimic", (14, 2, 4), {"label neither chronic nor acute": 20}),
    ],
)
def test_a_corpus_loads_by_its_name_and_counts_what_it_leaves_out(name, folder, sizes, excluded, tmp_path):
    corpus = load_corpus(name, data_dir=shelved(folder, tmp_path))
    assert (len(corpus.train), len(corpus.dev), len(corpus.test)) == sizes and corpus.excluded == excluded
    source = CORPORA[name]
    assert corpus.family == source.family and corpus.has_query == (source.family in ("nli", "qa"))
    assert corpus.labels == (source.labels or ("@entity1", "@entity12"))
    assert {entry["name"]: entry["status"] for entry in entries(tmp_path)}[name] == "here"


def test_tweets_keep_their_case_and_other_texts_do_not(tmp_path):
    assert load_corpus("adr", data_dir=shelved("adr", tmp_path)).train[0].tokens[0] == "One"
    assert load_corpus("agnews", data_dir=shelved("agnews", tmp_path)).train[0].tokens[:2] == ("t", "one")


@pytest.mark.parametrize(
    "name, status, apply",
    [
        ("mimic-anemia", "needs credentials", "Apply for credentialed access at https://physionet.org"),
        ("adr", "not redistributable", "Ask the authors"),
        ("snli", "local", "Download"),
    ],
)
def test_a_corpus_that_must_be_applied_for_says_so(name, status, apply, tmp_path):
    assert CORPORA[name].status == status and apply in describe(name, tmp_path)["how to get"]
    shown = "downloadable" if status == "local" else status
    assert {entry["name"]: entry["status"] for entry in entries(tmp_path)}[name] == shown
    assert describe(name, tmp_path)["status"] == shown
    with pytest.raises(Refusal, match=apply):
        load_corpus(name, data_dir=tmp_path)


@pytest.mark.parametrize("kind", ["gzipped", ".tar.gz", ".zip"])
def test_digests_are_those_of_the_unpacked_content_whatever_its_size(kind, tmp_path):
    archive = Archive.open(packed(kind, tmp_path, PAIRS))
    expected = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in PAIRS.items()}
    assert dict(archive.digests(ANY)) == expected


def test_the_fingerprint_of_an_unpacked_corpus_is_that_of_its_content(tmp_path):
    shelved("mimic", tmp_path)
    before = fingerprint("mimic-anemia", tmp_path)
    for file in (tmp_path / "mimic").rglob("*.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    assert fingerprint("mimic-anemia", tmp_path) == before


@pytest.mark.slow
def test_notes_are_streamed_in_memory_that_does_not_grow_with_the_file(tmp_path):
    admissions, words = 600, 'The patient was admitted with ""chest pain"",\nand then left. ' * 8_000
    codes = ((str(n), "2851" if n % 2 else "28521") for n in range(admissions))
    (tmp_path / "DIAGNOSES_ICD.csv").write_text(table(("HADM_ID", "ICD9_CODE"), *codes))
    with (tmp_path / "NOTEEVENTS.csv").open("w") as file:
        file.write(",".join(HEADER) + "\n")
        for n in range(admissions):
            file.write(f'{n},{n},"Discharge summary","Report","{n} {words}"\n')
    size = (tmp_path / "NOTEEVENTS.csv").stat().st_size
    tracemalloc.start()
    try:
        counts = Counter(document.label for document in read_anemia(Archive.open(tmp_path)))
        digests = list(Archive.open(tmp_path).digests())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 250e6 and counts == {"acute": 300, "chronic": 300} and len(digests) == 2
    assert peak < 30e6


# --- the real files

real = pytest.mark.skipif(not os.environ.get("ATTENTEST_DATA"), reason="ATTENTEST_DATA is not set")


@pytest.mark.realdata
@real
@pytest.mark.parametrize(
    "name, sizes",
    [
        ("snli", (23_530, 9_842, 9_824)),
        ("yelp", (5_000, 0, 5_000)),
        ("amazon", (5_000, 0, 7_600)),
        ("yahoo", (4_000, 0, 418)),
        ("movies", (1_600, 200, 199)),
    ],
)
def test_the_real_files_hold_as_many_texts_as_they_should(name, sizes):
    origin = CORPORA[name].origin
    archive = origin.find(Path(os.environ["ATTENTEST_DATA"]))
    counts = Counter(document.split for document in origin.reader(archive))
    assert tuple(counts[split] for split in ("train", "dev", "test")) == sizes


@pytest.mark.realdata
@pytest.mark.slow
@real
def test_the_real_corpora_prepare_with_the_labels_of_their_publishers():
    pairs = load_corpus("snli")
    assert pairs.counts()["test"] == {"contradiction": 3237, "entailment": 3368, "neutral": 3219}
    assert not pairs.excluded and len(pairs.dev) == 9_842
    for name, labels in (("yelp", 5), ("amazon", 5), ("yahoo", 2)):
        corpus = load_corpus(name)
        assert len(corpus.labels) == labels and set(corpus.labels) <= {*reviews.STARS, *reviews.YAHOO.labels}
        assert len(corpus.dev) == int(0.15 * (len(corpus.dev) + len(corpus.train)) + 0.5)
        assert not corpus.excluded and all(example.sentences for example in corpus.test)
    films = load_corpus("movies")
    assert films.counts()["train"] == {"negative": 800, "positive": 800} and not films.excluded
    assert [e.id for e in films.train if not e.rationale] == ["posR_161.txt"] and films.train[0].sentences


@pytest.mark.realdata
@pytest.mark.slow
@real
def test_the_ratings_of_imdb_are_eight():
    corpus = load_corpus("imdb-ratings")
    assert len(corpus.train) + len(corpus.dev) == len(corpus.test) == 25_000 and not corpus.excluded
    assert corpus.labels == imdb.RATINGS and all(corpus.counts()["dev"].values())
