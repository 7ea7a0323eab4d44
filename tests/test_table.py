"""Tables of the user's: every format, and a sentence for everything that can be wrong with one."""

from __future__ import annotations

import csv
import gzip
import json
import math

import pandas as pd
import pytest

from attentest.corpus.tables.table import read_table
from attentest.refusal import Refusal

ROWS = [
    {"review": f'text number {n},\nwith "quotes" & ümlauts', "stars": 1 + n % 5, "ask": f"how good {n}?"}
    for n in range(40)
]


def written(path, rows=ROWS):
    """Rows as a file of the format that its name asks for."""
    frame = pd.DataFrame(rows)
    suffix = path.name.split(".", 1)[1].lower()
    if suffix.startswith(("csv", "tsv")):
        frame.to_csv(path, index=False, sep="," if suffix.startswith("csv") else "\t")
    elif suffix.startswith("jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path)
    return path


def texts(corpus) -> dict[str, tuple]:
    return {e.id: (e.tokens, e.label, e.query) for e in (*corpus.train, *corpus.dev, *corpus.test)}


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "csv.gz", "tsv.gz", "jsonl.gz", "parquet", "CSV"])
def test_every_format_gives_the_same_corpus(suffix, tmp_path):
    columns = {"text": "review", "label": "stars", "query": "ask"}
    corpus = read_table(written(tmp_path / f"reviews.{suffix}"), **columns)
    same = read_table(written(tmp_path / "other.csv"), **columns)
    assert texts(corpus) == texts(same) and len(texts(corpus)) == 40
    assert corpus.name == "reviews" and corpus.labels == ("1", "2", "3", "4", "5") and corpus.has_query
    assert corpus.train[0].sentences is not None and corpus.family == "nli"
    assert corpus.preparation["source"]["columns"] == columns
    assert len(corpus.preparation["source"]["sha256"]) == 64


def test_a_long_text_a_byte_order_mark_and_quoted_lines_are_read(tmp_path):
    path = tmp_path / "t.csv"
    limit = csv.field_size_limit()
    lines = ["text,label"] + [f'"one\nand {"long " * 60_000}",{"ab"[n % 2]}' for n in range(6)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, "", ""]).encode())
    assert len(read_table(path, text="text", label="label").train[0].tokens) == 60_002
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize(
    "values, names",
    [
        ([5, 4], ("4", "5")),
        ([5.0, 4.0], ("4", "5")),
        (["5.0", "5", "10"], ("5", "10")),
        ([0.5, 1.0], ("0.5", "1")),
        ([True, False], ("False", "True")),
        ([" pos", "neg "], ("neg", "pos")),
        (["+1", "1e0", "-0.0", "0", "1"], ("0", "1")),
        (["cafe\u0301", "caf\u00e9", "tea"], ("caf\u00e9", "tea")),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_labels_become_names_in_the_order_people_count(values, names, suffix, tmp_path):
    rows = [{"t": "some words", "l": values[n % len(values)]} for n in range(18)]
    path = tmp_path / f"t.{suffix}"
    if suffix == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    assert read_table(path if suffix == "jsonl" else written(path, rows), text="t", label="l").labels == names


def test_a_split_column_is_followed_and_what_it_lacks_is_drawn(tmp_path):
    rows = [{"t": f"word {n}", "l": n % 2, "s": ["Train", "validation", "test"][n % 3]} for n in range(30)]
    corpus = read_table(written(tmp_path / "t.csv", rows), text="t", label="l", split="s")
    assert [len(s) for s in corpus.splits().values()] == [10, 10, 10]
    assert {e.id for e in corpus.dev} == {f"row-{n}" for n in range(2, 31, 3)}
    rows = [row | {"s": row["s"].replace("validation", "train")} for row in rows]
    corpus = read_table(written(tmp_path / "t.csv", rows), text="t", label="l", split="s", dev_share=0.3)
    assert [len(s) for s in corpus.splits().values()] == [14, 6, 10]


def test_shares_seed_and_settings_reach_the_preparation(tmp_path):
    path = written(tmp_path / "t.csv")
    first = read_table(path, text="review", label="stars", seed=1, name="mine", test_share=0.25, lower=False)
    assert (first.name, len(first.test), first.preparation["lower"]) == ("mine", 10, False)
    again = read_table(path, text="review", label="stars", seed=1, name="mine", test_share=0.25, lower=False)
    other = read_table(path, text="review", label="stars", seed=2, name="mine", test_share=0.25, lower=False)
    assert first == again and first.test != other.test
    with pytest.raises(Refusal, match=r"'lowercase'.*one of brackets, digits.*spelling"):
        read_table(path, text="review", label="stars", lowercase=True)
    with pytest.raises(Refusal, match=r"dev_share: got 2\.0"):
        read_table(path, text="review", label="stars", dev_share=2.0)


GOOD = "text,label\n" + "".join(f"some words,{'ab'[n % 2]}\n" for n in range(20))
JSON = "".join(json.dumps({"text": "some words", "label": "ab"[n % 2]}) + "\n" for n in range(20))
PARQUET = b"PAR1" + bytes(200) + b"PAR1"
# The file's name, its bytes, and what the refusal must say: the thing, and the way out.
BAD = {
    "empty file": ("t.csv", b"", r"t\.csv: got an empty file.*Check the path"),
    "only blanks": ("t.csv", b"\n\n", r"column 'text': got no column"),
    "header only": ("t.csv", b"text,label\n", r"got no rows.*Check the file"),
    "empty lines of JSON": ("t.jsonl", b"\n\n", r"got no rows"),
    "wrong column": (
        "t.csv",
        GOOD.replace("text", "Texte").encode(),
        r"'Texte', 'label'.*mean 'Texte'",
    ),
    "wrong column in JSON": ("t.jsonl", b'{"txt": "a", "label": 1}\n', r"'txt', 'label'.*mean 'txt'"),
    "column twice": ("t.csv", GOOD.replace("label", "text", 1), r"two columns of that name"),
    "semicolons": ("t.csv", GOOD.replace(",", ";"), r"separated by ';': save the table with commas"),
    "one class": ("t.csv", GOOD.replace(",b", ",a"), r"one label only \('a'\).*Name the column"),
    "binary": (
        "t.csv",
        bytes(range(255, 100, -2)) * 9,
        r"line 1: got a byte that is not UTF-8.*Save",
    ),
    "image": ("t.csv", b"\x89PNG\r\n\x1a\n\0\0\0", r"got a byte that is not UTF-8"),
    "latin-1": ("t.csv", (GOOD + "gr\xfcn,a\n").encode("latin-1"), r"line 22: got a byte that is not UTF-8"),
    "UTF-16": ("t.csv", GOOD.encode("utf-16"), r"line 1: got text in UTF-16.*Save the table as UTF-8"),
    "UTF-16 without mark": ("t.csv", GOOD.encode("utf-16-le"), r"line 1: got a NUL byte"),
    "NUL": ("t.csv", GOOD + "a\0b,a\n", r"line 22: got a NUL byte"),
    "too many fields": (
        "t.csv",
        GOOD + "a,b,a\n",
        r"line 22: got 3 fields, but needs 2.*quotation",
    ),
    "too few fields": ("t.tsv", b"text\tlabel\na\n", r"line 2: got 1 fields, but needs 2"),
    "open quote": ("t.csv", GOOD + '"never closed,a\n', r"line 22: got wrong quotation marks"),
    "empty texts": ("t.csv", GOOD + ",a\n  ,b\n", r"no text in row 21 and 1 more.*2 of 22 rows"),
    "missing label": ("t.csv", GOOD + "words,\n", r"no label in row 21, .*1 of 21 rows"),
    "null label": ("t.jsonl", JSON + '{"text": "a"}\n', r"no label in row 21"),
    "NaN label": ("t.jsonl", JSON + '{"text": "a", "label": NaN}\n', r"no label in row 21"),
    "list label": (
        "t.jsonl",
        JSON + '{"text": "a", "label": [1]}\n',
        r"neither words nor numbers",
    ),
    "bad JSON": ("t.jsonl", JSON + "{'text'\n", r"line 21: got no JSON.*Mend that line"),
    "JSON list": ("t.jsonl", b"[1, 2]\n", r"line 1: got JSON that is a list.*one JSON object on each line"),
    "a field twice": (
        "t.jsonl",
        b'{"text": "a", "text": "b", "label": 1}\n',
        r"line 1: got no JSON \(two fields",
    ),
    "deep JSON": ("t.jsonl", b"[" * 100_000, r"line 1: got no JSON"),
    "number for text": (
        "t.jsonl",
        JSON + '{"text": 7, "label": "a"}\n',
        r"a int \('7'\) in row 21",
    ),
    "half a sign": ("t.jsonl", JSON + '{"text": "\\ud800", "label": "a"}\n', r"in row 21"),
    "numbers for texts": (
        "t.csv",
        GOOD.replace("some words", "1.5").encode(),
        r"'text': got nothing but numbers",
    ),
    "false Parquet": ("t.parquet", GOOD, r"t\.parquet: got something that is no Parquet"),
    "spoilt Parquet": ("t.parquet", PARQUET, r"no Parquet"),
    "false gzip": ("t.csv.gz", GOOD, r"something unreadable.*compress it again"),
    "cut gzip": ("t.csv.gz", gzip.compress(GOOD.encode())[:-9], r"undamaged"),
    "unknown suffix": (
        "t.xlsx",
        b"PK",
        r"ends in '\.xlsx', but needs .*\.csv, \.tsv.*convert",
    ),
    "two rows": ("t.csv", b"text,label\none,a\ntwo,b\n", r"got 2 texts.*at least 3 texts of one label"),
    "a label for each row": ("t.csv", b"text,label\na,x\nb,y\nc,z\n", r"a different value in every row"),
}


@pytest.mark.parametrize("name, content, says", BAD.values(), ids=BAD)
def test_a_bad_table_is_refused_in_one_sentence(name, content, says, tmp_path):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(Refusal, match=says) as refused:
        read_table(path, text="text", label="label")
    assert str(path) in str(refused.value) or "corpus t" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_the_good_tables_that_the_bad_ones_spoil_are_good(tmp_path):
    for name, content in {"t.csv": GOOD, "t.jsonl": JSON}.items():
        (tmp_path / name).write_text(content)
        assert len(read_table(tmp_path / name, text="text", label="label").train) == 14


@pytest.mark.parametrize("place, says", [("no.csv", "nothing at that path"), ("", "a folder")])
def test_a_path_that_is_no_file_is_refused(place, says, tmp_path):
    with pytest.raises(Refusal, match=rf"{says}.*Check the path"):
        read_table(tmp_path / place, text="text", label="label")


def test_columns_of_other_kinds_are_refused(tmp_path):
    rows = [{"text": "words", "number": float(n), "label": n % 2, "split": "holdout"} for n in range(12)]
    path = written(tmp_path / "t.parquet", rows)
    with pytest.raises(Refusal, match=r"'number': got a float \('0\.0'\) in row 1"):
        read_table(path, text="number", label="label")
    with pytest.raises(Refusal, match="a different value in every row"):
        read_table(path, text="text", label="number")
    with pytest.raises(Refusal, match=r"got 'holdout' in row 1, but needs one of train.*Mend"):
        read_table(path, text="text", label="label", split="split")
    with pytest.raises(Refusal, match=r"the same column as text and as label.*another column"):
        read_table(path, text="text", label="text")
    missing = written(tmp_path / "u.parquet", [row | {"text": None} for row in rows[:1]] + rows)
    with pytest.raises(Refusal, match=r"no text in row 1"):
        read_table(missing, text="text", label="label")


def test_more_labels_than_anyone_predicts_are_refused(tmp_path):
    rows = [{"text": "some words", "label": n // 2 + math.pi} for n in range(2002)]
    with pytest.raises(Refusal, match=r"1001 different values in 2002 rows, but needs from 2 to 1000 labels"):
        read_table(written(tmp_path / "t.csv", rows), text="text", label="label")
