"""What people hold texts and models in: every form gives the same texts, and what was guessed is said."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import attentest as at
from attentest.auditing.held import held_model, name_of
from attentest.auditing.room import with_room
from attentest.auditing.texts import fitted, given_texts
from attentest.corpus.example import UNLABELLED
from attentest.corpus.tables.table import read_table
from attentest.model.seam import label_numbers
from attentest.refusal import Refusal
from tests.planted_models import LABELS, Planted, planted_texts

pytestmark = pytest.mark.usefixtures("short_search")

ROWS = [{"sentence": f"number {n} is fine", "label": "ab"[n % 2], "note": n} for n in range(12)]
PAIRS = [(row["sentence"], row["label"]) for row in ROWS]
TEXTS = [row["sentence"] for row in ROWS]


class Split:
    """What a `datasets.Dataset` shows of itself: columns by name, and features that name its classes."""

    class ClassLabel:
        names = ("a", "b")

    column_names = ("sentence", "label")

    @property
    def features(self):
        return {"sentence": None, "label": self.ClassLabel()}

    def __getitem__(self, name):
        return [row["sentence"] if name == "sentence" else "ab".index(row["label"]) for row in ROWS]


class FrameSplit(Split):
    """One that makes a data frame of itself, as the library's does."""

    def to_pandas(self):
        return pd.DataFrame({name: self[name] for name in self.column_names})


def _written(folder, name):
    path = folder / name
    pd.DataFrame(ROWS).to_csv(path, index=False)
    return path


FORMS = {
    "a path": lambda folder: _written(folder, "t.csv"),
    "a path as a string": lambda folder: str(_written(folder, "t.csv")),
    "a data frame": lambda folder: pd.DataFrame(ROWS),
    "an Arrow table": lambda folder: pa.Table.from_pylist(ROWS),
    "a list of dicts": lambda folder: ROWS,
    "a generator of dicts": lambda folder: (row for row in ROWS),
    "a list of pairs": lambda folder: PAIRS,
    "lists of two": lambda folder: [list(pair) for pair in PAIRS],
    "a dict of columns": lambda folder: {"text": TEXTS, "label": [label for _, label in PAIRS]},
    "a dataset": lambda folder: Split(),
    "a dataset with pandas": lambda folder: FrameSplit(),
}


def shown(given):
    return [(each.id, each.tokens, each.label, each.text) for each in given.examples]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_texts(form, tmp_path):
    given = fitted(given_texts(FORMS[form](tmp_path)), ("a", "b"))
    assert shown(given) == shown(given_texts(ROWS))
    assert [each.id for each in given.examples] == [f"row-{n}" for n in range(1, 13)]
    assert given.about["form"] and len(given.about["sha256"]) == 64


@pytest.mark.parametrize("form", ["a list of strings", "a series", "a data frame of texts"])
def test_labels_are_optional(form):
    data = {"a list of strings": TEXTS, "a series": pd.Series(TEXTS)}.get(form, pd.DataFrame({"text": TEXTS}))
    given = given_texts(data)
    assert {each.label for each in given.examples} == {UNLABELLED}
    assert fitted(given, ("x", "y")) is given


def test_texts_keep_the_ids_they_have():
    frame = pd.DataFrame(ROWS, index=[f"r{n}" for n in range(12)])
    assert given_texts(frame).examples[3].id == "r3"
    named = given_texts(frame.assign(id=[f"own{n}" for n in range(12)]))
    assert named.examples[3].id == "own3" and "called by the column 'id'" in named.notes[1]
    assert given_texts(frame.assign(id="one")).examples[3].id == "r3"  # no id at all, if all are alike


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ((0, 1), "numbers, taken in the model's own order of classes: 0 is NO, 1 is yes."),
        (("no", "YES"), "in any case: YES is yes, no is NO."),
        (("LABEL_0", "LABEL_1"), "numbers, taken in the model's own order of classes: LABEL_0 is NO"),
    ],
)
def test_labels_are_matched_with_the_models_and_that_is_said(written, says):
    given = given_texts([{"text": "one", "label": written[n % 2]} for n in range(4)])
    found = fitted(given, ("NO", "yes"))
    assert [each.label for each in found.examples] == ["NO", "yes", "NO", "yes"] and says in found.notes[-1]


def test_names_for_a_model_whose_classes_are_numbered_go_by_the_datas_own_order():
    found = fitted(given_texts(Split()), ("LABEL_0", "LABEL_1"))
    assert [each.label for each in found.examples][:2] == ["LABEL_0", "LABEL_1"]
    assert "0 is LABEL_0" in found.notes[-1]


def test_guessed_labels_that_do_not_fit_are_left_out_and_named_ones_are_refused():
    given = fitted(given_texts(ROWS), ("x", "y"))
    assert {each.label for each in given.examples} == {UNLABELLED}
    assert "'label' was not used: it holds 2 labels: a, b; the model has 2 labels: x, y" in given.notes[-1]
    named = fitted(given_texts(ROWS, label="label"), ("x", "y"))
    with pytest.raises(Refusal, match="does not know"):
        label_numbers(named.examples, ("x", "y"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (5, "a int"),
        ([], "an empty list"),
        ([1, 2], "a int as item 1"),
        (["a", ("b", "c")], "a tuple as item 2"),
        ({"test": Split(), "train": Split()}, "a dict whose 'test' is no column"),
        ({"text": ["a", "b"], "label": ["c"]}, "columns of several lengths"),
        (pd.DataFrame({"words": TEXTS}), r"text='\.\.\.'"),
        (pd.DataFrame({"text": range(5)}), "in row 1"),
        ([*planted_texts(2), "a text"], "a str among examples"),
    ],
)
def test_what_holds_no_texts_is_one_sentence(data, says):
    with pytest.raises(Refusal, match=says):
        given_texts(data)


def test_a_split_of_a_dataset_has_to_be_chosen():
    splits = SimpleNamespace(column_names={"train": ["text"], "test": ["text"]})
    with pytest.raises(Refusal, match=r"data\['train'\]"):
        given_texts(splits)


@pytest.mark.parametrize("word", ["NA", "nan", " NaN ", "inf", "-inf", "null", "None", float("inf")])
def test_a_label_that_reads_as_none_is_a_question(word):
    rows = [{"text": f"word {n}", "label": [word, "x", "y"][n % 3]} for n in range(30)]
    for read in (read_table, given_texts):
        with pytest.raises(Refusal, match=r"in 10 rows: a class, or missing\?.*missing='class'"):
            read(rows)
    kept = read_table(rows, missing="class")
    assert str(word).strip() in kept.labels and kept.preparation["source"]["missing"] == "class"
    dropped = read_table(rows, missing="drop")
    assert dropped.labels == ("x", "y") and dropped.excluded["label that reads as none"] == 10
    given = given_texts(rows, missing="drop")
    assert [each.id for each in given.examples][:2] == ["row-2", "row-3"]
    assert "10 rows were left out" in given.notes[-1]


@pytest.mark.parametrize("nothing", ["\u200b", "\u00a0", " ", "\ufeff", None, float("nan")])
def test_signs_that_nobody_sees_are_no_class(nothing):
    rows = [{"text": f"word {n}", "label": [nothing, "x", "y"][n % 3]} for n in range(30)]
    with pytest.raises(Refusal, match="no label in row 1 and 9 more"):
        read_table(rows)
    with pytest.raises(Refusal, match="no label"):
        read_table(rows, missing="class")
    assert read_table(rows, missing="drop").labels == ("x", "y")


@pytest.mark.parametrize("pair", [("1.10", "1.1"), ("007", "7"), ("15", "1.5e1")])
def test_one_number_in_two_spellings_is_a_question(pair):
    rows = [(f"word {n}", (*pair, "x")[n % 3]) for n in range(30)]
    with pytest.raises(Refusal, match="which are one number"):
        read_table(rows)


def test_texts_are_composed_and_marks_still_found():
    rows = [{"text": f"un cafe\u0301 {n}", "label": n % 2, "why": ["CAFE\u0301"]} for n in range(30)]
    corpus = read_table(rows, text="text", label="label", rationale="why")
    assert "caf\u00e9" in corpus.train[0].tokens and corpus.train[0].rationale == (1,)
    assert corpus.preparation["source"]["reader"] == 2
    assert "caf\u00e9" in given_texts(rows).examples[0].text


def test_a_corpus_a_model_and_a_result_fit_one_screen():
    corpus = at.load_corpus("planted-keyword")
    assert repr(corpus).startswith("Corpus('planted-keyword', classification:") and len(repr(corpus)) < 200
    model = at.train([(f"{'good' if n % 2 else 'bad'} word{n % 3}", n % 2) for n in range(40)], epochs=1)
    assert "parameters on cpu" in repr(model) and len(repr(model)) < 400
    assert model.labels == ("0", "1")


@pytest.fixture(scope="module")
def result():
    """A data frame of ids and texts, with labels as numbers, under an adapter."""
    texts = planted_texts(24)
    rows = [{"id": e.id, "text": " ".join(e.tokens), "label": LABELS.index(e.label)} for e in texts]
    return at.audit(Planted(honest=True), pd.DataFrame(rows), labels="bad, good", budget="quick", texts=20)


def test_a_data_frame_is_audited_and_what_was_guessed_is_in_the_result(result):
    document = result.document
    assert document["texts"] == 20 and document["of"] == 24 and document["ids"][0] == "t0"
    assert "0 is bad, 1 is good" in " ".join(document["notes"]) and document["data"]["form"] == "data frame"
    asked = {"budget": "quick", "texts": 20, "seed": 0, "too_long": "refuse", "task": "classify"}
    assert document["settings"] == {**asked, "device": "cpu"}
    assert "performance" in document["seconds"] and len(repr(result).splitlines()) < 20
    assert json.loads(json.dumps(document["data"]))["columns"] == {
        "text": "text",
        "label": "label",
        "id": "id",
    }


def test_the_same_texts_as_examples_give_the_same_findings(result):
    again = at.audit(
        Planted(honest=True),
        [replace(example, rationale=None) for example in planted_texts(24)],
        labels=LABELS,
        budget="quick",
        texts=20,
    )
    pd.testing.assert_frame_equal(again.findings, result.findings)


def test_without_labels_only_accuracy_is_not_measured(result):
    rows = [" ".join(e.tokens) for e in planted_texts(24)]
    bare = at.audit(Planted(honest=True), rows, labels=LABELS, budget="quick", texts=20)
    assert "texts without labels" in bare.left_out["performance"]
    assert set(bare.document["seconds"]) == set(result.document["seconds"]) - {"performance"}
    overall = lambda found: found[(found["group"] == "overall") & (found["experiment"] != "performance")]  # noqa: E731
    np.testing.assert_allclose(overall(bare.findings)["estimate"], overall(result.findings)["estimate"])


class Pipeline:
    """What a text-classification pipeline shows of itself."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer

    def preprocess(self, text):
        return self.tokenizer(text)

    def __call__(self, text):
        raise AssertionError("nobody needs its answers")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    families = pytest.importorskip("tests.families")
    folder = tmp_path_factory.mktemp("models") / "bert"
    model, tokenizer = families.tiny("bert"), families.tokenizer("bert")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder, model, tokenizer


def test_a_path_a_pipeline_and_its_parts_are_one_model(bert):
    folder, model, tokenizer = bert
    held = [
        held_model(folder),
        held_model(str(folder)),
        held_model(Pipeline(model, tokenizer)),
        held_model(model, tokenizer=tokenizer),
    ]
    states = [each.tensors() for each in held]
    for other in states[1:]:
        assert all(np.array_equal(other[name].numpy(), states[0][name].numpy()) for name in states[0])
    assert name_of(folder) == str(folder)
    assert name_of(Pipeline(model, tokenizer)) == "BertForSequenceClassification"
    with pytest.raises(Refusal, match="a tokenizer of its own"):
        held_model(folder, tokenizer=tokenizer)


def test_a_pipeline_of_the_library_is_taken(bert):
    pipeline = pytest.importorskip("transformers").pipeline
    held = held_model(pipeline("text-classification", model=bert[1], tokenizer=bert[2]))
    assert held.labels == ("LABEL_0", "LABEL_1", "LABEL_2")


def test_texts_that_are_too_long_are_cut_or_left_out_only_if_asked(bert):
    model = held_model(bert[0])
    given = given_texts(["the cat sat", "far home " * 400, "a film"]).examples
    kept, found = with_room(model, given, "skip")
    assert [each.id for each in kept] == ["row-1", "row-3"] and found.ids == ("row-2",)
    assert found.sentence == (
        "1 of 3 texts was longer than the 512 places that the model has positions for, and was left out."
    )
    cut, found = with_room(model, given, "truncate")
    assert cut[1].text == " ".join(["far home"] * 255) and cut[1].id == "row-2" and len(cut[1].tokens) == 510
    assert model.split(cut).lengths.max() == 510
    with pytest.raises(Refusal, match="too_long='truncate'"):
        model.split(with_room(model, given, "refuse")[0])
    assert found.document["texts"] == 1 and found.document["ids"] == ["row-2"]


def test_what_a_model_cannot_be_is_refused_from_its_settings_alone(tmp_path, monkeypatch):
    """No weight is read: there are none in the folder but a file of that name."""
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["BertForTokenClassification"]}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    monkeypatch.setattr(
        "attentest.auditing.api.given_texts", lambda *given, **more: pytest.fail("texts were read")
    )
    for where in (tmp_path, str(tmp_path)):
        with pytest.raises(Refusal, match="classifies tokens"):
            at.audit(where, ROWS)
    with pytest.raises(Refusal, match="no folder here"):
        at.audit(Path("nowhere"), ROWS)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"budget": "vast"}, "budget='vast': got a word that is none of them, but needs one of quick"),
        ({"too_long": "cut"}, "too_long='cut'"),
        ({"missing": "maybe"}, "missing='maybe'"),
        ({"texts": 1}, "texts=1: got 1, but needs a whole number of at least 2"),
        ({"texts": True}, "texts=True"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_an_option_is_refused_by_its_name(given, says):
    with pytest.raises(Refusal, match=says):
        at.audit("nowhere", "nothing.csv", **given)
