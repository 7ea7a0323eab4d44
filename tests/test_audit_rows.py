"""An audit takes every row of a table as it is written, in Python and on the command line alike."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import attentest as at
from attentest.auditing import run as auditing
from attentest.auditing.subject import audited_subject
from attentest.cli.main import run
from attentest.corpus.anonymised import anonymised
from attentest.corpus.document import Document
from attentest.corpus.files import from_files, to_files
from attentest.corpus.preparation import Preparation, prepare
from attentest.corpus.vocabulary import UNK
from attentest.foreign.loading import adopt
from attentest.gallery.writing import as_json
from attentest.model.reader import split_logits
from tests.families import SPECIAL, tiny, tokenizer, tokenizers

pytestmark = pytest.mark.usefixtures("short_search")

LABELS = ("bad", "good")
GOOD, BAD = ("great", "lovely", "a joy"), ("dull", "awful", "a bore")
SHAPES = ("It's {}.", "It isn't {}!", 'He said: "{}..."', "I'd call it  {}.\n", "You don't find it {}?")


def reviews(count, seed=0):
    """Raw reviews with contractions, marks, case and double blanks; a negation turns the label around."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        shape, good = str(rng.choice(SHAPES)), bool(rng.random() < 0.5)
        said = str(rng.choice(GOOD if good else BAD))
        said = said.upper() if rng.random() < 0.3 else said
        start = str(rng.choice(["", "The Café... ", "Well, "]))
        found.append((start + shape.format(said), LABELS[good != ("n't" in shape)]))
    return found


def byte_level(texts):
    """A byte-level BPE tokenizer as RoBERTa has it, trained on the texts."""
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE())
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420,
        special_tokens=list(SPECIAL),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pieces.train_from_iterator(texts, trainer)
    return tokenizer("roberta", pieces=pieces)


@pytest.fixture(scope="module")
def trained():
    """A small RoBERTa that learnt from raw reviews, and its tokenizer."""
    rows = reviews(300, seed=1)
    texts, labels = zip(*rows, strict=True)
    own = byte_level(texts)
    names = {"id2label": dict(enumerate(LABELS)), "label2id": {name: n for n, name in enumerate(LABELS)}}
    model = tiny("roberta", scale=0.1, vocab_size=len(own), num_labels=2, num_hidden_layers=2, **names)
    encoded = own(list(texts), padding=True, return_tensors="pt")
    wanted = torch.tensor([LABELS.index(label) for label in labels])
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(**encoded).logits, wanted).backward()
        optimiser.step()
    return model.eval(), own


def written(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("review", "verdict"), *rows])
    return path


def table(path):
    return at.read_table(path, text="review", label="verdict")


@torch.no_grad()
def called_directly(trained, rows):
    model, own = trained
    return torch.cat([model(**own(text, return_tensors="pt")).logits for text, _ in rows])


def test_a_byte_level_model_keeps_its_accuracy(trained, tmp_path):
    rows = reviews(120, seed=2)
    own = called_directly(trained, rows)
    corpus = table(written(tmp_path / "reviews.csv", rows))
    adopted = adopt(*trained)
    found = split_logits(adopted, adopted.split(corpus.rows))
    torch.testing.assert_close(found, own, atol=1e-5, rtol=1e-5)
    assert torch.equal(found.argmax(1), own.argmax(1))
    right = own.argmax(1) == torch.tensor([LABELS.index(label) for _, label in rows])
    assert right.float().mean() > 0.9, "the model has learnt something that can be lost"
    joined = [replace(row, text=None) for row in corpus.rows]
    lost = split_logits(adopted, adopted.split(joined)).argmax(1) != own.argmax(1)
    assert lost.any(), "words that are joined with blanks are other texts"


def test_python_and_the_command_line_audit_the_same(trained, tmp_path, capsys):
    rows = reviews(26, seed=3)
    path = written(tmp_path / "reviews.csv", rows)
    model, own = trained
    for part in (model, own):
        part.save_pretrained(tmp_path / "roberta")
    result = at.audit(model, table(path), tokenizer=own, budget="quick")
    asked = ["--data", str(path), "--text", "review", "--label", "verdict", "--budget", "quick"]
    page = tmp_path / "audit.html"
    assert run(["audit", str(tmp_path / "roberta"), *asked, "--out", str(page), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["ids"] == list(result.ids) == [f"row-{n}" for n in range(1, 27)]
    assert document["texts"] == document["of"] == 26 == result.document["of"]
    assert document["findings"] == json.loads(as_json(result.document))["findings"]
    assert ", ".join(result.ids) in page.read_text(encoding="utf-8")
    accuracy = result.findings.query("measure == 'accuracy' and group == 'overall'")["estimate"].item()
    labels = torch.tensor([LABELS.index(label) for _, label in rows])
    assert accuracy == pytest.approx(
        (called_directly(trained, rows).argmax(1) == labels).double().mean().item()
    )


def test_a_budget_of_fewer_texts_names_those_it_took(trained, tmp_path, monkeypatch):
    corpus = table(written(tmp_path / "reviews.csv", reviews(30, seed=4)))
    monkeypatch.setitem(auditing.BUDGETS, "quick", replace(auditing.BUDGETS["quick"], texts=4))
    monkeypatch.setattr(auditing, "QUESTIONS", {"performance": auditing.QUESTIONS["performance"]})
    result = at.audit(trained[0], corpus, tokenizer=trained[1], budget="quick")
    assert result.ids == ("row-1", "row-10", "row-20", "row-30") and result.document["of"] == 30


def test_a_table_splits_and_lower_cases_for_training_only(tmp_path):
    rows = reviews(40)
    path = written(tmp_path / "reviews.csv", rows)
    corpus = table(path)
    assert [row.id for row in corpus.rows] == [f"row-{n}" for n in range(1, 41)]
    assert [(row.text, row.label) for row in corpus.rows] == rows
    for split in corpus.splits().values():
        for example in split:
            assert example.text == corpus.rows[int(example.id[4:]) - 1].text
            assert all(token == token.lower() for token in example.tokens)
    assert sum(map(len, corpus.splits().values())) == 40
    capitals = [row for row in corpus.rows if "Café" in row.tokens]
    assert capitals and all("Café" in row.text for row in capitals)
    lowered = at.read_table(path, text="review", label="verdict", lower=True)
    assert [row.text for row in lowered.rows] == [text.lower() for text, _ in rows]
    assert all(token == token.lower() for row in lowered.rows for token in row.tokens)


def test_rows_are_never_left_out(tmp_path):
    rows = [*reviews(20), ("!!!", "good"), ("Oh my. " * 30, "bad")]
    settings = {"letters_only": True, "shorter_than": 50}
    path = written(tmp_path / "reviews.csv", rows)
    corpus = at.read_table(path, text="review", label="verdict", **settings)
    assert sum(corpus.excluded.values()) == 2 and len(corpus.rows) == 22
    assert corpus.rows[20].text == "!!!" and corpus.rows[20].tokens == ("!", "!", "!")


def test_pairs_keep_both_raw_texts(tmp_path):
    rows = [{"t": f"It's Number {n}.", "q": f"Isn't  it {n}?", "l": "ab"[n % 2]} for n in range(12)]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    corpus = at.read_table(path, text="t", label="l", query="q")
    assert [(row.text, row.query_text) for row in corpus.rows] == [(row["t"], row["q"]) for row in rows]
    assert corpus.rows[0].query == ("Is", "n't", "it", "0", "?")


def test_texts_that_are_published_as_tokens_have_no_raw_text():
    documents = [
        Document(id=f"{n}", text=("It", "'s") if n % 3 else "It's  -LRB- ok", label="ab"[n % 2])
        for n in range(24)
    ]
    for brackets, raw in ((False, {None, "It's  -LRB- ok"}), (True, {None})):
        corpus = prepare("toy", documents, Preparation(brackets=brackets))
        assert {example.text for split in corpus.splits().values() for example in split} == raw


def test_what_is_stored_of_a_corpus_has_no_raw_text(tmp_path):
    corpus = table(written(tmp_path / "reviews.csv", reviews(30)))
    bare = replace(
        corpus,
        rows=None,
        **{name: tuple(replace(e, text=None) for e in split) for name, split in corpus.splits().items()},
    )
    files = to_files(corpus)
    assert files == to_files(bare)
    again = from_files(files.__getitem__)
    assert again == corpus and again.rows is None and again.test[0].text is None


def test_words_that_are_cut_out_of_a_corpus_are_not_in_its_raw_texts(tmp_path):
    corpus = anonymised(table(written(tmp_path / "reviews.csv", reviews(60))), "great lovely")
    assert corpus.rows is None
    for example in corpus.train:
        assert example.text is None or "great" not in example.text.lower()


def test_a_model_of_ours_reads_rows_in_the_case_it_was_trained_on(tmp_path):
    corpus = table(written(tmp_path / "reviews.csv", reviews(60)))
    model = at.train(corpus, encoder="average", attention="additive", projection="softmax", seed=0, epochs=1)
    texts = audited_subject(model, corpus.rows).texts
    wanted = [model.vocabulary.numbers([t.lower() for t in row.tokens]) for row in corpus.rows]
    assert all(np.array_equal(*both) for both in zip(texts.tokens, wanted, strict=True))
    assert any((model.vocabulary.numbers(row.tokens) == UNK).any() for row in corpus.rows)
    assert [example.id for example in texts.examples] == [row.id for row in corpus.rows]


class Listening:
    """An adapter that keeps the words it is asked to number."""

    def __init__(self):
        self.heard = []
        self.embedding = torch.nn.Embedding(50, 3)
        self.out = torch.nn.Linear(3, 2)

    def numbers(self, words):
        self.heard.append(tuple(words))
        return [1 + len(word) % 40 for word in words]

    def attend(self, vectors, mask):
        return vectors, vectors.sum(-1).masked_fill(~mask, float("-inf")).softmax(-1)

    def decide(self, states, weights):
        return self.out((weights[..., None] * states).sum(1))

    def predict(self, tokens, mask):
        return self.decide(*self.attend(self.embedding(tokens), mask))


def test_an_adapter_gets_words_with_their_case(tmp_path):
    corpus = table(written(tmp_path / "reviews.csv", reviews(24)))
    adapter = Listening()
    at.audit(adapter, corpus, labels=LABELS, budget="quick")
    assert set(adapter.heard) == {row.tokens for row in corpus.rows}
    assert len(adapter.heard) == 24, "an audit numbers every text once"
