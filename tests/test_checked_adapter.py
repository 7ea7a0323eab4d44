"""Whatever the methods of an adapter do becomes one sentence: what was asked, what came, what is needed."""

import sys

import pytest
import torch

from attentest.auditing.run import audited
from attentest.cli.main import run
from attentest.foreign.adapter import AdaptedModel
from attentest.refusal import Refusal
from tests.planted_models import LABELS, Planted, planted_texts


def logits(change):
    """A module whose answers are changed alike, asked through its adapter or as always."""
    return {
        "decide": lambda self, states, weights: change(Planted.decide(self, states, weights)),
        "predict": lambda self, tokens, mask: self.decide(*self.attend(self.embedding(tokens), mask)),
    }


def attention(change):
    """An adapter whose attention is changed, and that answers under it."""

    def attend(self, vectors, mask):
        return change(*Planted.attend(self, vectors, mask), mask)

    return {"attend": attend, "predict": logits(None)["predict"]}


def raises(self, *given):
    raise RuntimeError("no such thing\x1b[31m")


def broken(methods):
    return type("Broken", (Planted,), methods)(honest=True)


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (logits(lambda out: out.detach().numpy()), "decide .*a numpy.ndarray, but needs a torch.Tensor"),
        (logits(lambda out: None), "decide .*logits that are None, but needs a torch.Tensor"),
        (logits(torch.Tensor.double), "decide .*float64, but needs float32"),
        (logits(torch.Tensor.half), "decide .*float16, but needs float32"),
        (logits(torch.Tensor.long), "decide .*int64, but needs float32"),
        (logits(torch.Tensor.detach), "decide .*without a gradient, but needs differentiable"),
        (logits(lambda out: out * torch.nan), "decide .*NaN or infinite, but needs finite"),
        (logits(lambda out: out + len(out)), "other answers to more texts at once"),
        (logits(lambda out: out + torch.rand(())), "another answer under its own weights"),
        ({"predict": lambda self, tokens, mask: None}, "predict .*logits that are None"),
        (attention(lambda states, weights, mask: (states, mask)), "attend .*bool, but needs float32"),
        (attention(lambda states, weights, mask: states), "attend .*a torch.Tensor, but needs a pair"),
        (attention(lambda states, weights, mask: None), "attend .*None, but needs a pair"),
        (
            attention(lambda states, weights, mask: (states.detach(), weights)),
            "attend .*states without a grad",
        ),
        (attention(lambda states, weights, mask: (states, 2 * weights)), "sum to 2, but needs .* sum to 1"),
        (attention(lambda states, weights, mask: (states, 0 * weights)), "sum to 0, but needs .* sum to 1"),
        (attention(lambda states, weights, mask: (states, weights.sigmoid() * mask)), "needs .* sum to 1"),
        (
            attention(lambda states, weights, mask: (states, (weights - 0.4) * mask)),
            "weight of -.*none below 0",
        ),
        (attention(lambda states, weights, mask: (states, weights * torch.nan)), "attend .*NaN or infinite"),
        (
            {"decide": lambda self, states, weights: Planted.decide(self, states, weights.mul_(1))},
            "decide of an adapter: got .*in ?place",
        ),
    ],
)
def test_a_result_that_does_not_fit_names_the_method_and_what_is_needed(methods, said):
    with pytest.raises(Refusal, match=said):
        AdaptedModel(broken(methods), LABELS)


@pytest.mark.parametrize("name", ["attend", "decide", "predict"])
def test_what_a_method_raises_is_told_with_its_own_traceback_below(name):
    with pytest.raises(Refusal, match=f"{name} of an adapter: got RuntimeError: no such thing") as caught:
        AdaptedModel(broken({name: raises}), LABELS)
    assert caught.value.below.count("File ") == 1 and "in raises" in caught.value.below
    assert caught.value.__notes__ == [caught.value.below] and caught.value.__suppress_context__


def test_an_adapter_cannot_end_the_program():
    with pytest.raises(Refusal, match="predict of an adapter: got SystemExit: 0"):
        AdaptedModel(broken({"predict": lambda self, tokens, mask: sys.exit(0)}), LABELS)


@pytest.mark.parametrize(
    ("number", "got"),
    [
        (lambda words: [1.7] * len(words), "a list of .*1.7 the first"),
        (lambda words: ["a"] * len(words), "a list of .*'a' the first"),
        (lambda words: [True] * len(words), "a list of"),
        (lambda words: None, "None"),
        (lambda words: [[1], [2, 3]], "a list of 2"),
        (lambda words: [1], "1 numbers for"),
        (lambda words: [-1] * len(words), "numbers from -1 to -1"),
        (lambda words: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_numbers_of_words_are_whole_and_have_vectors(number, got):
    model = AdaptedModel(broken({"numbers": lambda self, words: number(words)}), LABELS)
    with pytest.raises(Refusal, match=f"numbers of an adapter.*got {got}"):
        model.split(planted_texts(2))


def test_numbers_may_be_a_tensor_or_an_array():
    whole = AdaptedModel(Planted(honest=True), LABELS).split(planted_texts(2))
    made = {"numbers": lambda self, words: torch.tensor(Planted.numbers(self, words))}
    tensors = AdaptedModel(broken(made), LABELS).split(planted_texts(2))
    assert [row.tolist() for row in tensors.tokens] == [row.tolist() for row in whole.tokens]


@pytest.mark.parametrize(
    ("embedding", "got"),
    [
        (None, "None"),
        (torch.nn.Linear(2, 2), "a torch.nn.*Linear"),
        (torch.nn.Embedding(24, 2).half(), "numbers of the type float16"),
        (torch.nn.Embedding.from_pretrained(torch.full((24, 2), torch.nan)), "vectors that are NaN"),
    ],
)
def test_the_embedding_is_one_of_finite_numbers(embedding, got):
    adapter = Planted(honest=True)
    adapter.embedding = embedding
    with pytest.raises(Refusal, match=f"embedding of an adapter: got {got}"):
        AdaptedModel(adapter, LABELS)


def test_labels_are_different():
    with pytest.raises(Refusal, match="the labels good, good"):
        AdaptedModel(Planted(honest=True), ("good", "good"))


class Changing(Planted):
    """Something happens in it when it is asked so often after it was adopted."""

    after, calls, left = staticmethod(lambda out: out), 0, None

    def decide(self, states, weights):
        self.calls += 1
        out = super().decide(states, weights)
        return out if self.left is None or self.calls <= self.left else self.after(out)


@pytest.mark.parametrize(
    ("after", "said"), [(lambda out: out * 1.01, "other answers|another answer"), (raises, "RuntimeError")]
)
def test_an_adapter_that_changes_or_breaks_during_an_audit_refuses_the_whole_of_it(after, said):
    adapter = Changing(honest=True)
    adapter.after = after
    model = AdaptedModel(adapter, LABELS)
    assert audited(model, planted_texts(4), "quick", questions=["permutation"]).findings
    adapter.left = adapter.calls + 1
    with pytest.raises(Refusal, match=said):
        audited(model, planted_texts(4), "quick", questions=["permutation"])


def test_a_change_that_is_there_before_and_after_is_seen_at_the_end():
    adapter = Changing(honest=True)
    model = AdaptedModel(adapter, LABELS)
    model.capabilities.again()
    with torch.no_grad():
        adapter.embedding.weight *= 0.5
    with pytest.raises(Refusal, match="other answers to the same question than before"):
        model.capabilities.again()


def test_the_command_line_prints_the_sentence_and_the_users_traceback(tmp_path, monkeypatch, capsys):
    (tmp_path / "failing.py").write_text("def make():\n    raise RuntimeError('mine \\x1b[31m')\n")
    (tmp_path / "t.csv").write_text("text,label\na b,no\nb a,yes\n")
    monkeypatch.chdir(tmp_path)
    assert run(["audit", "failing:make", "--data", "t.csv", "--text", "text", "--label", "label"]) == 2
    first, *below = capsys.readouterr().err.splitlines()
    assert first.startswith("attentest: ") and "failing:make" in first and "RuntimeError: mine" in first
    assert [line for line in below if "failing.py" in line] and not [line for line in below if "\x1b" in line]
    assert "attentest/" not in "".join(below)
