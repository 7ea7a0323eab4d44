"""An audit that was killed goes on where it was, ends as it would have, and says how far it is."""

import json
import os
import signal
import subprocess
import sys

import pytest
import torch

from attentest.auditing.api import audit
from attentest.auditing.pace import Pace
from attentest.auditing.questions import QUESTIONS
from attentest.store.store import Store
from attentest.terminal.progress import foretelling
from tests.families import tiny, tokenizer

pytestmark = pytest.mark.usefixtures("short_search")

TEXTS = [("a good film that nobody saw", "LABEL_1"), ("not a film at all , is it", "LABEL_0")] * 3
PROGRAM = """
import os, signal, sys
from attentest.auditing.api import audit
from tests.test_audit_resumed import TEXTS, model_and_tokenizer
from dataclasses import replace
from attentest.auditing.questions import BUDGETS
BUDGETS["quick"] = replace(BUDGETS["quick"], searched=4, steps=5)
model, tokenizer = model_and_tokenizer()
def watcher(question, share, left):
    if question.startswith(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
audit(model, TEXTS, tokenizer=tokenizer, budget="quick", store=sys.argv[1], watcher=watcher)
"""


def model_and_tokenizer():
    return tiny("bert"), tokenizer("bert")


def asked(monkeypatch):
    """Which questions are really asked, in their order."""
    names, inner = [], Pace.rows_of

    def rows_of(self, name, observed):
        names.append(name)
        return inner(self, name, observed)

    monkeypatch.setattr(Pace, "rows_of", rows_of)
    return names


def told(result):
    document = json.loads(json.dumps(result.document, default=str))
    for changing in ("seconds", "date", "made", "provenance"):
        document.pop(changing, None)
    return document


def test_a_killed_audit_goes_on_and_ends_with_the_same_numbers(tmp_path, monkeypatch):
    torch.set_num_threads(1)
    model, words = model_and_tokenizer()
    whole = audit(model, TEXTS, tokenizer=words, budget="quick", store=tmp_path / "whole")
    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "killed"), "Permuted"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    store = Store(tmp_path / "killed")
    before = {store.cell(key).config["question"] for key in store.done()}
    assert before == {"performance", "importance", "agreement"}
    names = asked(monkeypatch)
    again = audit(model, TEXTS, tokenizer=words, budget="quick", store=tmp_path / "killed")
    assert not before & set(names) and "permutation" in names and "erasure" in names
    assert told(again) == told(whole)
    assert again.findings.equals(whole.findings)
    names.clear()
    third = audit(model, TEXTS, tokenizer=words, budget="quick", store=tmp_path / "killed")
    assert names == ["plausibility"], "which was refused: no text has marks"
    assert told(third) == told(whole) and third.audit.seconds == again.audit.seconds
    plain = audit(model, TEXTS, tokenizer=words, budget="quick")
    assert plain.findings.equals(whole.findings), "a store changes no number"


@pytest.mark.parametrize("change", ["seed", "texts", "weights", "marks", "head"])
def test_whatever_an_answer_depends_on_is_part_of_its_name(tmp_path, monkeypatch, change):
    model, words = model_and_tokenizer()
    options = {"tokenizer": words, "budget": "quick", "store": tmp_path}
    names = asked(monkeypatch)
    monkeypatch.setattr("attentest.auditing.run.QUESTIONS", {"permutation": QUESTIONS["permutation"]})
    audit(model, TEXTS, **options)
    audit(model, TEXTS, **options)
    assert names == ["permutation"]
    texts = TEXTS
    if change == "seed":
        options["seed"] = 1
    elif change == "texts":
        texts = [(f"{text} indeed", label) for text, label in TEXTS]
    elif change == "weights":
        with torch.no_grad():
            model.classifier.bias.add_(1.0)
    elif change == "marks":
        options["attention"] = {"special_tokens": True}
    else:
        options["attention"] = {"head": 0}
    audit(model, texts, **options)
    assert names == ["permutation"] * 2


def test_no_text_is_kept_in_the_store(tmp_path):
    model, words = model_and_tokenizer()
    audit(model, TEXTS, tokenizer=words, budget="quick", store=tmp_path)
    held = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert held and not any(b"nobody saw" in each for each in held)


def test_the_pace_counts_what_was_timed_alone(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("attentest.auditing.pace.time.monotonic", lambda: next(clock) * 1.0)
    heard = []
    pace = Pace(["performance", "importance", "ablation"], 4.0, 2, lambda *said: heard.append(said))
    pace.end("performance")  # it was in the store
    assert heard[-1][2] is None
    list(pace.rows_of("importance", [{}, {}]))
    pace.end("importance")
    assert heard[-1][1] == pytest.approx(12 / 14) and 0 < heard[-1][2] < heard[-2][2] + 10
    pace.end("ablation")
    assert heard[-1][1:] == (1.0, 0.0)


def test_without_a_terminal_progress_is_plain_lines_on_standard_error(capsys):
    with foretelling("audit of m") as hear:
        hear("Accuracy", 0.0, None)
        hear("Accuracy", 0.1, 5.0)
        hear("Permuted weights", 0.5, 130.0)
    said = capsys.readouterr()
    assert not said.out
    assert said.err.splitlines() == [
        "audit of m: Accuracy; 0%",
        "audit of m: Permuted weights; 50%, about 2 min left",
    ]
