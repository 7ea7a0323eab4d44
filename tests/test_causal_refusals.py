"""What is wrong with a causal audit is said from its words and its config.json, before anything is loaded."""

import json
import subprocess
import sys

import pytest
import torch

from attentest.auditing.options import check_model, check_task
from attentest.cli.main import run
from attentest.cli.of_model import prompt_of_shell
from attentest.cli.spelling import in_options
from attentest.corpus.example import Example
from attentest.foreign.prompt import split_at
from attentest.refusal import Refusal
from tests.families import tiny, tiny_causal, tokenizer, tokenizers, trained_pieces


def saved(folder, architecture, **settings):
    """A folder that looks like a saved model, with nothing in it that could be loaded."""
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture], **settings}))
    (folder / "model.safetensors").write_bytes(b"")
    return str(folder)


@pytest.mark.parametrize(
    ("architecture", "task", "said"),
    [
        ("LlamaForCausalLM", "classify", r"no task.*--task prompt, --prompt .*--labels.*--task next-token"),
        ("GPT2LMHeadModel", "classify", r"no task"),
        ("T5ForConditionalGeneration", "next-token", r"through an encoder.*a causal language model"),
        ("BertForSequenceClassification", "prompt", r"BertForSequenceClassification.*Leave the task out"),
        ("BertForTokenClassification", "classify", r"classifies tokens"),
    ],
)
def test_a_saved_model_that_cannot_do_the_task_is_refused_from_its_config(architecture, task, said, tmp_path):
    with pytest.raises(Refusal, match=said), in_options():
        check_model(saved(tmp_path, architecture), task=task)


def test_that_takes_no_library(tmp_path):
    """PyTorch alone takes seconds to import."""
    where = saved(tmp_path, "LlamaForCausalLM")
    code = (
        "import sys\nfrom attentest.auditing.options import check_model, check_task\n"
        "check_task('prompt', '{text}:', ' a, b', None)\n"
        f"try:\n    check_model({where!r})\nexcept ValueError:\n    print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("prompt", None, " a, b", None), "no prompt"),
        (("prompt", "Review:", " a, b", None), r"0 times \{text\}"),
        (("prompt", "{query} {text}:", " a, b", None), r"before \{text\}"),
        (("prompt", "{text}:", None, None), "0 of them"),
        (("prompt", "{text}:", " a, a", None), "the same one twice"),
        (("classify", "{text}:", None, None), "a prompt without a task"),
        (("prompt", "{text}:", " a, b", "|"), "--task next-token"),
    ],
)
def test_words_that_make_no_task_are_refused(asked, said):
    with pytest.raises(Refusal, match=said), in_options():
        check_task(*asked)


def test_a_shell_may_write_line_breaks_as_two_characters():
    assert prompt_of_shell(r"Review: {text}\nSentiment:") == "Review: {text}\nSentiment:"


def test_a_mark_divides_a_text_from_what_follows():
    text = Example(
        id="a", tokens=("so", "<?>", "far", "away"), label="", rationale=(0, 2), text="so<?> far away"
    )
    found = split_at(text, "<?>")
    assert (found.text, found.query_text, found.tokens) == ("so", " far away", ("so",))
    assert found.query == ("far", "away") and found.rationale == (0,)
    for wrong in ("so far", "<?>so", "so<?>", "a<?>b<?>c"):
        with pytest.raises(Refusal, match="the mark '<\\?>'"):
            split_at(Example(id="a", tokens=tuple(wrong.split()), label="", text=wrong), "<?>")


PROMPTED = ("--task", "prompt", "--prompt", "Review: {text} then", "--labels", " good, bad")
NEXT = ("--task", "next-token")
TEXT = "the film was good"
BAD = {
    "no task": ("gpt2", TEXT, (), "--task next-token"),
    "no prompt": ("gpt2", TEXT, ("--task", "prompt", "--labels", " good, bad"), "--prompt"),
    "no {text}": ("gpt2", TEXT, (*PROMPTED[:3], "Review:", *PROMPTED[4:]), "0 times {text}"),
    "no labels": ("gpt2", TEXT, PROMPTED[:4], "labels of a prompt"),
    "one label twice": ("gpt2", TEXT, (*PROMPTED[:5], " good, good"), "the same one twice"),
    "a label that is no token": ("gpt2", TEXT, (*PROMPTED[:5], " good, qqq"), "the tokenizer does not know"),
    "labels of one token": ("pieces", TEXT, (*PROMPTED[:5], " goodness, goodwill"), "the same first token"),
    "a text of nothing": ("silent", "~~", PROMPTED, "nothing that the tokenizer takes for text"),
    "nothing next": ("silent", "~~", NEXT, "nothing that the tokenizer takes for text"),
    "an overflow": ("huge", TEXT, (*PROMPTED, "--dtype", "float16"), "no numbers (NaN or infinite)"),
    "an encoder-decoder": ("t5", TEXT, NEXT, "reads the text through an encoder"),
    "a classifier's next token": ("bert", TEXT, NEXT, "Leave the task out"),
    "several labels a text": ("several", TEXT, (), "several labels to one text"),
    "labels of tokens": ("tokens", TEXT, (), "classifies tokens"),
    "a choice among answers": ("choice", TEXT, (), "chooses"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of every kind that an audit cannot take as it is asked to, saved as the library saves them."""
    where, half = tmp_path_factory.mktemp("models"), tiny_causal()
    with torch.no_grad():
        for name in ("up_proj", "down_proj"):
            getattr(half.model.layers[1].mlp, name).weight.fill_(6e4)
    several = tiny("bert")
    several.config.problem_type = "multi_label_classification"
    made = {
        "gpt2": tiny_causal("gpt2"),
        "huge": half,
        "t5": tiny("t5", head="ForConditionalGeneration"),
        "bert": tiny("bert"),
        "several": several,
        "tokens": tiny("bert", head="ForTokenClassification"),
        "choice": tiny("bert", head="ForMultipleChoice"),
    }
    for name, model in made.items():
        model.save_pretrained(where / name)
        tokenizer("gpt2" if name in ("gpt2", "huge") else "bert").save_pretrained(where / name)
    pieces = tokenizer("gpt2", pieces=trained_pieces("byte-level"))
    tiny_causal("gpt2", vocab_size=len(pieces)).save_pretrained(where / "pieces")
    pieces.save_pretrained(where / "pieces")
    silent = tokenizer("gpt2")  # some drop signs that others take for text
    silent.backend_tokenizer.normalizer = tokenizers.normalizers.Replace("~", "")
    made["gpt2"].save_pretrained(where / "silent")
    silent.save_pretrained(where / "silent")
    return where


@pytest.mark.parametrize("wrong", BAD)
@pytest.mark.parametrize("verb", ["audit", "inspect"])
def test_what_cannot_be_audited_is_a_sentence_and_exit_status_2(verb, wrong, models, monkeypatch, capsys):
    model, text, words, said = BAD[wrong]
    monkeypatch.chdir(models)
    (models / "texts.csv").write_text(f'text\n"{text}"\n"{text}"\n')
    asked = [text] if verb == "inspect" else ["--data", "texts.csv", "--budget", "quick", "--store", "kept"]
    assert run([verb, model, *asked, *words]) == 2
    shown = capsys.readouterr().err
    assert said in " ".join(shown.split()) and "Traceback" not in shown
