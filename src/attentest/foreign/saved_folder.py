"""What its name, files and settings say of a saved model, before a library or a weight is loaded."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from attentest.foreign.prompt import CLASSIFY, EXAMPLE
from attentest.refusal import Refusal

KIND = "ForSequenceClassification"
CAUSAL = ("ForCausalLM", "LMHeadModel")
SECOND_STACK = "ForConditionalGeneration"
WEIGHTS, PICKLED = ("*.safetensors",), ("*.bin", "*.pt", "*.pth", "*.ckpt")
OTHERS: Final = {  # heads whose attention is not tested, under any option
    "ForTokenClassification": "classifies tokens",
    "ForQuestionAnswering": "marks answers in a text",
    "ForMaskedLM": "fills in masks",
    "ForMultipleChoice": "chooses among several texts",
    "ForNextSentencePrediction": "says whether one sentence follows another",
    "ForImageClassification": "classifies images",
    "ForAudioClassification": "classifies sounds",
}


def check_saved(
    where: str | os.PathLike[str], *, network: bool, remote_code: bool, task: str = CLASSIFY
) -> None:
    """Refuse a name that is no folder here, and a folder whose model cannot be tested."""
    folder = Path(where)
    if folder.is_dir():
        _check_folder(folder)
        _check_settings(str(where), _settings(folder), remote_code, task)
    elif not network:
        raise Refusal(
            f"model {where}",
            got="a name that is no folder here",
            needs="a folder with a saved model, or leave to use the network",
            way_out="Say network=True to fetch it from the Hugging Face hub.",
        )


def unreadable(where: str | os.PathLike[str], error: Exception) -> Refusal:
    """What is said of files that the library cannot make a model of."""
    return Refusal(
        f"model {where}",
        got=f"something that cannot be loaded ({' '.join(str(error).split())[:300]})",
        needs="a sequence classifier and its tokenizer, saved by save_pretrained",
        way_out="Save both into one folder again; for a hub name, check the spelling and the network.",
    )


def _check_folder(folder: Path) -> None:
    """A folder with a configuration, and weights that are no programs."""
    got = None
    if not (folder / "config.json").is_file():
        got = "a folder without config.json", "a folder written by save_pretrained"
    elif not any(next(folder.glob(kind), None) for kind in WEIGHTS):
        got = "a folder without weights", "weights in model.safetensors"
        if any(next(folder.glob(kind), None) for kind in PICKLED):
            got = "weights in a form that may run any program when it is read", "weights in model.safetensors"
    if got:
        way_out = "Load it where you trust it and save it again: model.save_pretrained(folder)."
        raise Refusal(f"model {folder}", got=got[0], needs=got[1], way_out=way_out)


def _settings(folder: Path) -> Mapping[str, Any]:
    try:
        settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise unreadable(folder, error) from error
    return settings if isinstance(settings, dict) else {}


def _check_settings(where: str, settings: Mapping[str, Any], remote_code: bool, task: str) -> None:
    """No code of its own without leave, and a head whose attention is tested."""
    if "auto_map" in settings and not remote_code:
        raise Refusal(
            f"model {where}",
            got="a model that brings code of its own",
            needs="a model of the library, or your word that its code may run",
            way_out="Say remote_code=True if you have read that code.",
        )
    named = settings.get("architectures") or []
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        raise unreadable(where, ValueError(f"architectures = {named!r}, and no list of names"))
    name = next(iter(named), "")
    check_task(where, name, task)
    head = next((head for head in OTHERS if name.endswith(head)), None)
    several = "a model that gives several labels to one text", "classes that exclude each other"
    wrong = (f"a {name}, which {OTHERS[head]}", f"a classifier of whole texts ({KIND})") if head else None
    if name.endswith(KIND):
        kinds = {"multi_label_classification": several, "regression": ONE_NUMBER}
        wrong = ONE_NUMBER if _classes(settings) == 1 else kinds.get(str(settings.get("problem_type")))
    if wrong:
        way_out = "Attention is tested by how it changes a distribution over classes."
        raise Refusal(f"model {where}", got=wrong[0], needs=wrong[1], way_out=way_out)


def check_task(where: str, name: str, task: str) -> None:
    """Refuse a model whose class cannot do what the task asks, and a causal one without a task."""
    causal, wrong = name.endswith(CAUSAL), None
    if causal and task == CLASSIFY:
        wrong = (
            f"a causal language model ({name}) and no task",
            "what is to be decided: labels behind a prompt, or the next token",
            f"Say task='prompt', {EXAMPLE}; or task='next-token'.",
        )
    elif not causal and task != CLASSIFY and name.endswith(SECOND_STACK):
        wrong = (
            f"a {name}, whose decoder reads the text through an encoder",
            "a causal language model, in which the text itself is continued",
            "Fine-tune it as a classifier (ForSequenceClassification), or give a causal model.",
        )
    elif not causal and task != CLASSIFY and name:
        wrong = f"a {name}", "a causal language model (ForCausalLM)", "Leave the task out for a classifier."
    if wrong:
        raise Refusal(f"model {where}", got=wrong[0], needs=wrong[1], way_out=wrong[2])


ONE_NUMBER = "a regression model, with one number as its answer", "two classes or more"


def _classes(settings: Mapping[str, Any]) -> int:
    """How many classes a configuration names; two, as the library has it, where it names none."""
    return len(settings.get("id2label") or (0, 1))
