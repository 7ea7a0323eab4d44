"""What is wrong with a causal audit is said from its words and its config.json, before anything is loaded."""

import json
import subprocess
import sys

import pytest

from attentest.auditing.options import check_model, check_task
from attentest.cli.of_model import prompt_of_shell
from attentest.cli.spelling import in_options
from attentest.corpus.example import Example
from attentest.foreign.prompt import split_at
from attentest.refusal import Refusal


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
