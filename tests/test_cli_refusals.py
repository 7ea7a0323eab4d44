"""Whatever a clumsy or hostile user gives: status 2, one sentence, no traceback, nothing half written."""

import gzip
import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import unicodedata

import pandas as pd
import pytest
from rich.console import Console

import attentest
from attentest.cli.main import run
from attentest.store.store import Store
from attentest.terminal.tables import heat_map, plain_table, strip
from tests.command_line import STUDY, TINY, add, table

ROWS = table()


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a data directory in which `mine` is registered, and an empty store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTEST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ATTENTEST_STORE", str(tmp_path / "store"))
    add(tmp_path / "data", "mine", ROWS)
    return tmp_path


@pytest.fixture
def refused(here, capsys):
    """Run a command twice, for a person and for a program: both must refuse it; the sentence."""

    def of(*words):
        words = list(map(str, words))
        before = sorted((here / "data").rglob("*"))
        assert run(words) == 2
        out, err = capsys.readouterr()
        assert not out and re.fullmatch(r"attentest: [^\n]+[.?]\n", err), err
        assert err[:-1].isprintable() and "Traceback" not in err
        assert run([*words, "--json"]) == 2
        out, silence = capsys.readouterr()
        assert not silence
        document = json.loads(out)
        assert list(document) == ["error"] and out.count("\n") == 1
        assert len(document["error"]["message"]) == len(err) - len("attentest: \n")
        assert sorted((here / "data").rglob("*")) == before
        check_nothing_is_half_written(here / "store")
        return err

    return of


def check_nothing_is_half_written(store):
    """A corpus is prepared while planning, and whole; no other cell, failure or remnant may be there."""
    cells = Store(store)
    assert {cells.about(key)["stage"] for key in cells.done()} <= {"corpus"}
    assert all(cells.is_whole(path.name) for path in store.glob("cells/*"))
    assert not any(store.glob("making/*")) and not any(store.glob("failures/*"))
    assert not any(store.glob("partial/*"))


# --- tables


def as_rows(suffix):
    """The good table in another format."""
    frame = pd.read_csv(io.StringIO(ROWS))
    if suffix == ".jsonl":
        return frame.to_json(orient="records", lines=True).encode()
    if suffix == ".parquet":
        return frame.to_parquet()
    return gzip.compress(GOOD) if suffix == ".csv.gz" else GOOD


def damaged(content):
    """Compressed bytes with one of them changed."""
    return content[:40] + bytes([content[40] ^ 0xFF]) + content[41:]


def lines(*rows):
    """JSON Lines of texts and labels."""
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows).encode()


GOOD, TWO = ROWS.encode(), [("a film", 1), ("a play", 2)]
SPOILT = {
    "a missing file": (".csv", None, "nothing at that path|No such file"),
    "an empty file": (".csv", b"", "an empty file"),
    "a header only": (".csv", b"text,label\n", "no rows"),
    "a wrong column": (".csv", GOOD.replace(b"text,", b"words,"), "needs one of 'words', 'label'"),
    "one class": (".csv", GOOD.replace(b",neg", b",pos"), "one label only"),
    "binary junk": (".csv", bytes(range(256)) * 20, "a NUL byte"),
    "UTF-16": (".csv", ROWS.encode("utf-16"), "text in UTF-16"),
    "Latin-1": (".csv", ROWS.replace("film", "café").encode("latin-1"), "not UTF-8"),
    "NUL bytes": (".csv", GOOD.replace(b"film", b"fi\0lm"), "line 2.*a NUL byte"),
    "ragged rows": (".csv", GOOD + b"one,two,three\n", "line 62.*3 fields"),
    "an open quotation mark": (".csv", GOOD + b'"open,pos\n', "line 62.*quotation marks"),
    "empty texts": (".csv", GOOD + b" ,pos\n", "no text in row 61"),
    "missing labels": (".csv", GOOD + b"a text,\n", "no label in row 61"),
    "a label for every row": (".csv", b"text,label\na b,1\na b,2\na b,3\n", "a different value in every row"),
    "numbers for texts": (".csv", b"text,label\n" + b"1,a\n2,b\n" * 9, "nothing but numbers"),
    "two rows": (".csv", b"text,label\na b,x\nc d,y\n", "2 texts to divide"),
    "a bad JSON line": (".jsonl", lines(*TWO) + b'{"text":\n', "line 3.*no JSON"),
    "a JSON line that is a list": (".jsonl", b"[1, 2]\n", "JSON that is a list"),
    "labels that are lists": (".jsonl", lines(("a film", [1]), ("a play", [2])), "neither words nor numbers"),
    "half characters": (".jsonl", lines(("half \ud800", 1), *TWO), "needs strings"),
    "half characters as labels": (".jsonl", lines(("a film", "\ud800"), *TWO), "neither words nor numbers"),
    "a false Parquet": (".parquet", GOOD, "no Parquet"),
    "no gzip": (".csv.gz", GOOD, "unreadable.*[Nn]ot a gzipped"),
    "half a gzip": (".csv.gz", gzip.compress(GOOD)[:-20], "unreadable"),
    "a damaged gzip": (".csv.gz", damaged(gzip.compress(GOOD)), "unreadable"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_a_table_that_cannot_be_used_is_not_registered(what, here, refused):
    suffix, content, says = SPOILT[what]
    file = here / f"new{suffix}"
    if content is not None:
        file.write_bytes(content)
    said = refused("corpora", "add", "new", file, "--text", "text", "--label", "label")
    assert re.search(says, said) and (str(file) in said or "corpus new" in said)
    assert not (here / "data" / "registered" / "new.toml").exists() and not (here / "store").exists()


@pytest.mark.parametrize("what", SPOILT)
def test_a_registered_table_that_was_spoilt_is_refused_when_it_is_used(what, here, refused):
    suffix, content, says = SPOILT[what]
    file = add(here / "data", "later", as_rows(suffix), suffix)
    file.unlink() if content is None else file.write_bytes(content)
    said = refused("train", "later", *TINY)
    assert re.search(says, said)
    assert not any((here / "store").glob("cells/*"))


@pytest.mark.parametrize(
    "words, says",
    [
        (("new", "mine.xlsx"), "ends in '.xlsx'"),
        (("new", "data"), "a folder"),
        (("new", "x" * 300 + ".csv"), "too long"),
        (("sst", "mine.csv"), "a name of the catalogue"),
        (("mine", "other.csv"), "another table than the one it stands for"),
        (("../new", "mine.csv"), "lower-case letters"),
        (("a name", "mine.csv"), "lower-case letters"),
        (("", "mine.csv"), "lower-case letters"),
        (("new", "mine.csv", "--query", "text"), "the same column"),
        (("new", "mine.csv", "--query", "ask"), "no column of that name"),
        (("new", "mine.csv", "--data-dir", "mine.csv"), "cannot be written"),
        (("new", "line\nbreak.csv"), "nothing at that path"),
        (("new", "\x1b[31m\u202e.csv"), "nothing at that path"),
    ],
)
def test_a_registration_that_cannot_be_is_refused(words, says, here, refused):
    shutil.copy("mine.csv", "mine.xlsx")
    shutil.copy("mine.csv", "other.csv")
    assert says in refused("corpora", "add", *words, "--text", "text", "--label", "label")


REGISTRATIONS = ["", "[[", "file = 3", "a = " + "[" * 20_000, "\0", "x" * 9_000 + " = 1"]


@pytest.mark.parametrize("content", REGISTRATIONS)
def test_a_spoilt_registration_is_refused_by_its_path(content, here, refused):
    (here / "data" / "registered" / "spoilt.toml").write_text(content)
    for words in (("corpora", "describe", "spoilt"), ("train", "spoilt")):
        assert "spoilt.toml" in refused(*words)


@pytest.mark.parametrize("name", ["spoilt", "a\nline", "\x1b[2J", "[red]", "\udcff"])
@pytest.mark.parametrize("content", REGISTRATIONS)
def test_a_spoilt_registration_is_listed_as_damaged_among_all_others(content, name, here, capsys):
    assert run(["corpora", "list", "--json"]) == 0
    before = json.loads(capsys.readouterr().out)["corpora"]
    assert before[-1]["name"] == "mine" and not any(entry["reason"] for entry in before)
    (here / "data" / "registered" / f"{name}.toml").write_text(content)
    assert run(["corpora", "list", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["corpora"]}
    spoilt = listed.pop(name)
    assert list(listed.values()) == before and set(spoilt) == set(before[0])
    assert spoilt["status"] == "damaged" and re.fullmatch(
        r"registration .*\.toml: got (something unreadable|a wrong or missing) .*Remove that file.*again\.",
        spoilt["reason"],
    )
    assert len(spoilt["reason"]) < len(str(here)) + 300
    assert run(["corpora", "list"]) == 0
    shown, silence = capsys.readouterr()
    assert not silence and "damaged" in shown and "registered" in shown and "planted-keyword" in shown
    assert "\x1b" not in shown and re.sub(r"\s", "", "Remove that file") in re.sub(r"\s", "", shown)


def test_damaged_files_of_a_publisher_are_listed_with_the_reason(here, capsys):
    (here / "data" / "sst").mkdir()
    (here / "data" / "sst" / "trees.zip").write_bytes(b"not a zip")
    assert run(["corpora", "list", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["corpora"]}
    assert listed["sst"]["status"] == "damaged" and "trees.zip: got something" in listed["sst"]["reason"]
    assert {name for name, entry in listed.items() if entry["reason"]} == {"sst"}


def test_a_registration_of_a_path_that_cannot_be_is_listed_as_absent(here, capsys):
    for name, file in (("long", "x" * 5_000), ("odd", "\\u0000")):
        content = f'file = "{file}"\ntext = "text"\nlabel = "label"\n'
        (here / "data" / "registered" / f"{name}.toml").write_text(content)
    assert run(["corpora", "list", "--json"]) == 0
    listed = {entry["name"]: entry["status"] for entry in json.loads(capsys.readouterr().out)["corpora"]}
    assert listed["long"] == listed["odd"] == "absent" and listed["mine"] == "registered"


# --- settings of a model


SETTINGS = [
    (("--encoder", "lstm"), "encoder 'lstm'.*one of bilstm, "),
    (("--attention", "full"), "attention 'full'.*one of additive, "),
    (("--projection", "hardmax"), "projection 'hardmax'.*one of softmax, "),
    (("--projection", "sparsegen(1)"), "a number below 1"),
    (("--projection", "sparsegen(nan)"), "a number below 1"),
    (("--projection", "gumbel-softmax(0)"), "a number above 0"),
    (("--projection", "softmax(3)"), "needs no parameter"),
    (("--projection", "sparsegen(x)"), r"a number, as in sparsegen\(0.5\)"),
    (("--projection", "sparsegen"), r"a number, as in sparsegen\(0.5\)"),
    (("--projection", "sparsegen("), "one of softmax, "),
    (("--projection", ""), "one of softmax, "),
    (("--projection", "stored"), "stored attention"),
    (("--attention", "last-state", "--projection", "sparsemax"), "needs no projection of its own"),
    (("--decoder", "linear"), "decoder 'linear'.*one of sigmoid, "),
    (("--decoder", "two-layer"), "2 labels without a query.*one of sigmoid, softmax"),
    (("--sizes", "large"), "one of code, paper"),
    (("--device", "tpu"), "auto, cpu or cuda"),
    (("--seed", "-1"), "seed: got -1.*whole number from 0"),
    (("--seed", str(2**64)), "whole number from 0"),
    (("--seed", "9" * 5000), "seed"),
    (("--seed", "1.5"), "'--seed'.*valid integer"),
    (("--epochs", "-1"), "epochs: got -1"),
    (("--epochs", str(10**12)), "from 0 to 1000000"),
    (("--batch-size", "0"), "batch_size: got 0"),
    (("--vectors", "absent.vec"), "No such file"),
    (("--vectors", "data"), "Is a directory"),
    (("--vectors", "random(x)"), r"random\(SCALE\)"),
    (("--vectors", "random(-1)"), r"random\(SCALE\)"),
    (("--store", ""), "'?--store'?: an empty name"),
    (("--store", "x" * 300), "too long"),
    (("--store", "nowhere://x"), "Protocol not known"),
]


@pytest.mark.parametrize("words, says", SETTINGS)
def test_a_setting_that_makes_no_model_is_refused(words, says, refused):
    assert re.search(says, refused("train", "mine", *TINY, *words))


@pytest.mark.parametrize("corpus", ["nowhere", "", "../mine", "[/red]", "\x1b[2J", "a\nb", "x" * 5000])
def test_an_unknown_corpus_is_refused_with_the_known_ones(corpus, here, refused):
    for words in (("train", corpus), ("corpora", "describe", corpus), ("study", "demo", "--corpus", corpus)):
        assert "planted-keyword" in refused(*words) and not (here / "store").exists()
    assert "trainDevTestTrees" in refused("train", "sst"), "an absent one with the way to get it"


VECTORS = "".join(f"{word} 0.1 0.2 0.3\n" for word in ("a", "an", "fine", "awful", "film"))


@pytest.mark.parametrize(
    "name, content, says",
    [
        ("empty.txt", b"", "no vectors in it"),
        ("words.txt", b"fine\nawful\n", "no numbers in line 2"),
        ("garbage.txt", b"\xff\xfe\x00 a\xc3 \x80 \n" * 9, "no vector for any"),
        ("letters.txt", b"fine a b c\n", "not a number in line 1"),
        ("short.txt", VECTORS.encode() + b"film 0.1 0.2\n", "2 numbers in line 6, 3 before"),
        ("long.txt", VECTORS.encode() + b"film 0.1 0.2 0.3 0.4\n", "4 numbers in line 6, 3 before"),
        ("two.txt", VECTORS.encode() + VECTORS.encode().replace(b"0.1", b"0.7"), "two vectors for '"),
        ("wide.txt", b"fine" + b" 0.1" * 20_000 + b"\n", "vectors of 20,000 numbers"),
        ("nan.txt", VECTORS.encode() + b"film 0.1 nan 0.2\n", "not finite in line 6"),
        ("huge.txt", VECTORS.encode() + b"film 0.1 1e39 0.2\n", "not finite in line 6"),
        ("foreign.vec", b"1 3\nzebra 0.1 0.2 0.3\n", "no vector for any"),
        ("false.gz", VECTORS.encode(), "[Nn]ot a gzipped file"),
        ("half.gz", gzip.compress(VECTORS.encode(), mtime=0)[:-12], "ended before"),
        ("damaged.gz", damaged(gzip.compress(VECTORS.encode() * 9, mtime=0)), "cannot be read"),
    ],
)
def test_vectors_that_cannot_be_read_are_refused(name, content, says, here, refused):
    (here / name).write_bytes(content)
    assert re.search(says, refused("train", "mine", *TINY, "--vectors", name))


def test_a_word_with_a_blank_in_it_does_not_spoil_its_vectors(here):
    twice = VECTORS  # the same vectors once more, which say nothing else
    (here / "ok.vec").write_text("6 3\n" + VECTORS + "film at@home 0.1 0.2 0.3\n" + twice)
    assert run(["train", "mine", *TINY, "--vectors", "ok.vec"]) == 0


# --- studies


BROKEN = [
    ('study = "tiny"', "study = ", "broken TOML"),
    ('study = "tiny"', "x = " + "[" * 20_000, "broken TOML"),
    ('study = "tiny"', 'study = "../tiny"', "should match pattern"),
    ("title", "titel", "title: field required"),
    ("[grid]", "seeds = 0\n[grid]", "greater than or equal to 1"),
    ("[grid]", "seeds = true\n[grid]", "a valid integer"),
    ("[grid]", 'seeds = "two"\n[grid]', "a valid integer"),
    ("[grid]", "colour = 3\n[grid]", "colour: extra inputs are not permitted"),
    ('corpus = ["mine"]', "corpus = []", "at least 1 item"),
    ('corpus = ["mine"]', 'corpus = "mine"', "a valid list"),
    ('corpus = ["mine"]', "corpus = [3]", "a valid string"),
    ('corpus = ["mine"]', 'corpus = ["nowhere"]', "corpus 'nowhere'"),
    ('encoder = ["average"]', "encoder = []", "at least 1 item"),
    ('encoder = ["average"]', 'encoder = ["lstm"]', "encoder 'lstm'"),
    ('encoder = ["average"]', 'attention = ["full"]', "attention 'full'"),
    ('encoder = ["average"]', 'projection = ["sparsegen(1)"]', "a number below 1"),
    ("hidden = 8", "hiden = 8", "model setting 'hiden'.*one of encoder, "),
    ("hidden = 8", 'hidden = "8"', "hidden: got '8'"),
    ("hidden = 8", "hidden = 8.5", "hidden: got 8.5"),
    ("hidden = 8", "hidden = true", "hidden: got True"),
    ("hidden = 8", "hidden = 4", "from 5"),
    ("hidden = 8", "hidden = 1979-05-27", "whole number"),
    ("hidden = 8", "vectors = 3", "vectors: got 3"),
    ("hidden = 8", "learning_rate = nan", "learning_rate: got nan"),
    ("hidden = 8", 'learning_rate = "fast"', "learning_rate: got 'fast'"),
    ("hidden = 8", "batch_size = 2.5", "batch_size: got 2.5"),
    ("hidden = 8", 'decoder = ["softmax"]', "decoder: got"),
    ("hidden = 8", 'freeze = ["ears"]', "part to freeze 'ears'"),
    ("hidden = 8", "freeze = 3", "freeze: got 3.*needs a list"),
    ("hidden = 8", "freeze = {}", "freeze: got {}.*needs a list"),
    ("hidden = 8", 'decoder = "affine"', "2 labels without a query"),
    ("hidden = 8", 'encoder = "cnn"', r"encoder in \[model\].*belongs in \[grid\]"),
    ("hidden = 8", "seed = 3", r"seed in \[model\]"),
    ("hidden = 8", 'guide = "abc"', r"guide in \[model\]"),
    ('"performance"', '"performance art"', "experiment 'performance art'.*one of performance, "),
    ('"performance"', '"performance"\nmode = "fast"', "'corrected' or 'as-published'"),
    ("permutations = 5", "shuffles = 5", "'shuffles'.*one of permutations"),
    ("permutations = 5", "permutations = 0", "at least 1"),
    ("permutations = 5", 'permutations = "5"', "a value like 100"),
    ("high < 0.1", "high is small", "comparisons of estimate"),
    ("high < 0.1", "__import__('os')", "comparisons of estimate"),
    ("permutation/median-output-change/overall", "permutation", "experiment/measure/group"),
]


@pytest.mark.parametrize("old, new, says", BROKEN)
def test_a_study_that_cannot_be_run_is_refused_before_anything_runs(old, new, says, here, refused):
    assert STUDY.count(old) == 1
    (here / "broken.toml").write_text(STUDY.replace(old, new))
    assert re.search(says, refused("study", "broken.toml", "--engine", "inline"))


@pytest.mark.parametrize(
    "words, says",
    [
        (("nowhere",), "one of calibration"),
        (("nowhere.toml",), "one of calibration"),
        (("",), "one of calibration"),
        (("[/x]",), "one of calibration"),
        (("data",), "one of calibration"),
        (("folder.toml",), "directory"),
        (("x" * 300 + ".toml",), "too long"),
        (("wide.toml",), "can't decode"),
        (("tiny.toml", "--engine", "steam"), "engine 'steam'.*one of local, inline"),
        (("tiny.toml", "--device", "tpu"), "auto, cpu or cuda"),
        (("tiny.toml", "--seeds", "0"), "'--seeds'"),
        (("tiny.toml", "--seeds", "100000"), "'--seeds'"),
        (("tiny.toml", "--workers", "0"), "'--workers'"),
        (("tiny.toml", "--corpus", "nowhere"), "corpus 'nowhere'"),
    ],
)
def test_a_wrong_word_about_a_study_is_refused(words, says, here, refused):
    (here / "tiny.toml").write_text(STUDY)
    (here / "wide.toml").write_text(STUDY, encoding="utf-16")
    (here / "folder.toml").mkdir()
    assert re.search(says, refused("study", *words))


def test_a_claim_about_an_unknown_statistic_is_undecided(here, capsys):
    (here / "tiny.toml").write_text(STUDY.replace("median-output-change", "joy"))
    assert run(["study", "tiny.toml", "--engine", "inline", "--json"]) == 0
    [claim] = json.loads(capsys.readouterr().out)["claims"]
    assert claim["verdict"] == "undecided" and "permutation/joy/overall" in claim["reason"]


# --- cells and stores


def test_a_cell_that_cannot_be_run_is_refused(here, capsys, refused):
    (here / "tiny.toml").write_text(STUDY)
    assert "no such folder" in refused("run-cell", "abc")
    assert "no such folder" in refused("list")
    assert "no such folder" in refused("conclude", "--store", "mine.csv")
    assert run(["study", "tiny.toml", "--plan", "--seeds", "8", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    keys = [cell["cell"] for cell in plan]
    first = next(key[0] for key in keys if sum(other[0] == key[0] for other in keys) > 1)
    assert "keys that begin so" in refused("run-cell", first)
    assert "no such key" in refused("run-cell", "")
    assert "no such key" in refused("run-cell", "../../mine.csv")
    assert "auto, cpu or cuda" in refused("run-cell", keys[0], "--device", "tpu")
    for stage in ("reading", "observation", "finding"):
        key = next(cell["cell"] for cell in plan if cell["stage"] == stage)
        assert re.search("inputs that do not exist yet.*attentest run-cell", refused("run-cell", key))


@pytest.mark.parametrize("store", ["mine.csv", "mine.csv/below"])
def test_a_store_that_is_a_file_is_refused_and_the_file_is_left_alone(store, here, refused):
    assert "Not a directory" in refused("train", "mine", *TINY, "--store", store)
    assert (here / "mine.csv").read_text() == ROWS


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere, so nothing is read-only to it")
@pytest.mark.parametrize("option", ["--store", "--out", "--data-dir"])
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_place_that_may_not_be_used_is_refused(mode, option, here, capsys):
    (here / "locked").mkdir(mode=mode)
    name = "new" if option == "--data-dir" else "mine"
    assert run(["train", name, *TINY, option, "locked/below"]) == 2
    out, err = capsys.readouterr()
    (here / "locked").chmod(0o700)
    assert not out and err.count("\n") == 1 and not any((here / "locked").iterdir())


@pytest.mark.parametrize("out", ["mine.csv", "data", "mine.csv/below", "x" * 300])
def test_a_model_that_cannot_be_saved_is_refused_and_nothing_is_written_over(out, here, capsys):
    before = sorted((here / "data").rglob("*"))
    for _ in range(2):
        assert run(["train", "mine", *TINY, "--out", out]) == 2
        assert re.fullmatch(r"attentest: model folder [^\n]+\.\n", capsys.readouterr().err)
    assert (here / "mine.csv").read_text() == ROWS and sorted((here / "data").rglob("*")) == before


def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(here):
    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))

    words = ["train", "mine", *TINY, "--out", "model"]
    command = [sys.executable, "-m", "attentest", *words]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_disk, check=False)
    assert done.returncode == 2 and not done.stdout
    assert re.fullmatch(r"attentest: store [^\n]*File too large[^\n]*\.\n", done.stderr), done.stderr
    check_nothing_is_half_written(here / "store")
    assert not (here / "model").exists()
    assert run(words) == 0, "with room again, the same command goes on"


# --- models from a folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a model, and nothing else of the place it was made in."""
    place = tmp_path_factory.mktemp("saved")
    add(place / "data", "mine", ROWS)
    where = ["--data-dir", str(place / "data"), "--store", str(place / "store")]
    assert run(["train", "mine", *TINY, *where, "--out", str(place / "model")]) == 0
    return place / "model"


def changed(**changes):
    """A function that writes other values into a folder's config.json; None takes one out."""

    def of(folder):
        about = json.loads((folder / "config.json").read_text())
        for name, value in changes.items():
            place = about if name in about else about["config"]
            place.pop(name, None) if value is None else place.update({name: value})
        (folder / "config.json").write_text(json.dumps(about))

    return of


def cut(name, size):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:size])


FOREIGN = {
    "no config": lambda folder: (folder / "config.json").unlink(),
    "no vocabulary": lambda folder: (folder / "vocabulary.json").unlink(),
    "no weights": lambda folder: (folder / "model.safetensors").unlink(),
    "no files at all": lambda folder: [path.unlink() for path in folder.iterdir()],
    "half the weights": cut("model.safetensors", 5000),
    "no bytes of weights": cut("model.safetensors", 0),
    "half the vocabulary": cut("vocabulary.json", 50),
    "half the config": cut("config.json", 50),
    "another vocabulary": lambda folder: (folder / "vocabulary.json").write_text('["a", "b"]'),
    "a foreign config": lambda folder: (folder / "config.json").write_text('{"model_type": "bert"}'),
    "a config that is a list": lambda folder: (folder / "config.json").write_text("[]"),
    "another format": changed(format="attentest-model-0"),
    "settings that are none": changed(config=3),
    "no settings": changed(config={}),
    "an unknown setting": changed(colour="red"),
    "another width": changed(hidden=64),
    "a width of no type": changed(hidden="wide"),
    "a broken width": changed(hidden=8.5),
    "a width beyond all numbers": changed(hidden=10**30),
    "no width": changed(embedding=None),
    "another encoder": changed(encoder="bilstm"),
    "another decoder": changed(decoder="softmax"),
    "a decoder that does not fit": changed(decoder="two-layer"),
    "no decoder": changed(decoder=None),
    "weights from elsewhere": changed(projection="stored"),
    "one label": changed(labels=["neg"]),
    "three labels": changed(labels=["neg", "pos", "new"]),
    "the same label twice": changed(labels=["neg", "neg"]),
    "labels that are numbers": changed(labels=[0, 1]),
    "labels that are none": changed(labels=3),
    "a query it was not made for": changed(has_query=True),
    "a query that is no answer": changed(has_query="no"),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_folder_that_holds_no_model_of_ours_is_refused(what, saved, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(saved, folder)
    FOREIGN[what](folder)
    with pytest.raises(attentest.Refusal, match="cannot be loaded") as caught:
        attentest.load(folder)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 800


@pytest.mark.parametrize("place", ["nowhere", "nowhere/at/all", "x" * 300, "a\0b"])
def test_a_model_that_is_not_there_is_refused(place, tmp_path):
    with pytest.raises(attentest.Refusal, match="cannot be loaded"):
        attentest.load(tmp_path / place)


# --- words of a command


@pytest.mark.parametrize("words", [[], ["corpora"]])
def test_a_command_alone_is_answered_with_its_help(words, capsys):
    assert run(words) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("Usage: attentest") and "Commands:" in err and "See `" not in err


@pytest.mark.parametrize(
    "words, says",
    [
        (["fly"], "No such command 'fly'"),
        (["corpora", "fly"], "No such command 'fly'. See `attentest corpora --help`."),
        (["--fly"], "No such option"),
        (["train"], "corpus"),
        (["train", "mine", "--fly"], "No such option"),
        (["train", "mine", "too", "many"], "unexpected extra argument"),
        (["train", "mine", "--seed", "one"], "'--seed'"),
        (["corpora", "add", "new", "mine.csv", "--text", "text"], "label"),
        (["run-cell"], "key"),
        (["study"], "name"),
    ],
)
def test_a_wrong_word_is_refused_with_the_place_to_look(words, says, refused):
    said = refused(*words)
    assert says in said and "--help`." in said


def test_an_option_without_its_value_is_refused(capsys):
    assert run(["train", "mine", "--json", "--seed"]) == 2
    out, err = capsys.readouterr()
    assert not err and "'--seed' requires an argument" in json.loads(out)["error"]["message"]


# --- texts that would steer a terminal


EVIL = "\x1b[2J \x1b]0;title\x07 [bold]loud[/bold] [/b] \u202eright to left\u202c \x00\x08\x9b31m"


def is_harmless(shown):
    return all(sign == "\n" or unicodedata.category(sign)[0] != "C" for sign in shown)


def rendered(thing):
    console = Console(file=io.StringIO(), width=200, color_system=None, markup=False)
    console.print(thing)
    return console.file.getvalue()


def test_no_token_can_steer_a_terminal():
    tokens = [*EVIL.split(" "), "x" * 10_000]
    weights = [0.1] * len(tokens)
    shown = rendered(heat_map(tokens, weights)) + rendered(strip("says", "x", tokens, weights, [0], tokens))
    shown += rendered(plain_table(["a", "b"], [tokens[:2], [EVIL, 3]]))
    assert is_harmless(shown) and "[bold]loud[/bold]" in shown and "x" * 150 in shown
    assert not is_harmless(EVIL), "the check can fail"


def test_a_hostile_corpus_is_shown_harmless(here, capsys):
    evil = EVIL.replace("\x00", "")
    rows = [{"text": f"{evil} {n} {'x' * 10_000}", "label": (evil, "[/b]")[n % 2]} for n in range(40)]
    path = here / "[" / "red].jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(map(json.dumps, rows)))
    claim = STUDY.replace("Shuffling", r"[/b] \u001b[2J").replace("A tiny study", r"[/b] \u001b[2J")
    (here / "[/evil].toml").write_text(claim.replace('"mine"', '"evil"'))
    for words in (
        ["corpora", "add", "evil", str(path), "--text", "text", "--label", "label"],
        ["corpora", "list"],
        ["corpora", "describe", "evil"],
        ["train", "evil", *TINY],
        ["study", "[/evil].toml", "--engine", "inline"],
        ["conclude"],
        ["list"],
        ["list", "--store", "[/red]\x1b[2J"],
    ):
        (here / "[/red]\x1b[2J").mkdir(exist_ok=True)
        assert run(words) == 0
        out, err = capsys.readouterr()
        assert out and not err and is_harmless(out), words
        assert run([*words, "--json"]) == 0
        out, err = capsys.readouterr()
        assert json.loads(out) and not err and out.isascii()


def test_progress_on_a_terminal_survives_hostile_names(here, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    for words in (["train", "[/red]\x1b[2J"], ["study", "[/red]\x1b[2J"]):
        assert run(words) == 2
        _, err = capsys.readouterr()
        assert "[/red]" in err and "\x1b[2J" not in err and "Traceback" not in err


def test_texts_of_one_token_are_counted_as_left_out(here, capsys):
    add(here / "data", "short", "text,label\n" + "fine,pos\nawful,neg\n" * 20)
    for encoder in ("average", "bilstm", "cnn"):
        assert run(["train", "short", *TINY, "--encoder", encoder]) == 0
    (here / "tiny.toml").write_text(STUDY.replace('"mine"', '"short"'))
    capsys.readouterr()
    assert run(["study", "tiny.toml", "--engine", "inline", "--json"]) == 0
    out = capsys.readouterr().out
    assert "NaN" not in out
    said = json.loads(out)
    overall = {found["measure"]: found for found in said["findings"] if found["group"] == "overall"}
    change = overall["median-output-change"]
    assert change["excluded"] == 6 and change["n"] == 0 and "one token" in change["why"]
    assert change["estimate"] is change["low"] is None
    assert [claim["verdict"] for claim in said["claims"]] == ["undecided"]
    assert run(["study", "tiny.toml", "--engine", "inline"]) == 0
    assert "6 texts left out (one token" in capsys.readouterr().out


def test_credentialed_texts_enter_a_store_only_when_asked(here, refused):
    for words in (("train", "mimic-anemia"), ("study", "demo", "--corpus", "mimic-diabetes")):
        assert "--include-text" in refused(*words)
        assert "no files of it" in refused(*words, "--include-text")
