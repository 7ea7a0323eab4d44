"""The words and numbers of an audit, checked before a library, a weight or a text is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attentest.corpus.tables.words_for_nothing import WAYS
from attentest.foreign.prompt import CLASSIFY, NEXT_TOKEN, PROMPT, check_labels, prompt_of
from attentest.foreign.saved_folder import check_saved
from attentest.foreign.words import NAMES, ROW
from attentest.refusal import Refusal

BUDGET_NAMES: Final = ("quick", "standard", "full")
ATTENTIONS: Final = (ROW, *NAMES)
REFUSE, SKIP, TRUNCATE = "refuse", "skip", "truncate"
TOO_LONG: Final = (REFUSE, SKIP, TRUNCATE)
DEVICES: Final = ("auto", "cpu", "cuda", "mps")
NUMBERS: Final = ("auto", "float32", "float64", "float16", "bfloat16")
TASKS: Final = (CLASSIFY, PROMPT, NEXT_TOKEN)
OURS: Final = "has_query"  # in the config.json of a model that was trained here, and of no other
WORDS: Final[Mapping[str, Sequence[str]]] = {
    "budget": BUDGET_NAMES,
    "too_long": TOO_LONG,
    "missing": WAYS,
    "device": DEVICES,
    "dtype": NUMBERS,
    "task": TASKS,
    "attention": ATTENTIONS,
}
LEAST: Final[Mapping[str, int]] = {"texts": 2, "batch_size": 1, "seed": 0}


def check_options(**given: Any) -> None:
    """Refuse a word that is none of its argument's, and a number that is none; None is left out."""
    for name, value in given.items():
        if value is None:
            continue
        if name in LEAST:
            _check_number(name, value, LEAST[name])
        else:
            check_word(name, str(value).partition(":")[0] if name == "device" else value)


def check_word(name: str, word: Any) -> None:
    """Refuse a word that is none of its argument's."""
    if word not in WORDS[name]:
        raise Refusal(
            f"{name}={word!r}",
            got="a word that is none of them",
            needs=f"one of {', '.join(WORDS[name])}",
            way_out="Check the spelling.",
        )


def _check_number(name: str, number: Any, least: int) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise Refusal(
            f"{name}={number!r}",
            got=f"{number!r}",
            needs=f"a whole number of at least {least}",
            way_out="Leave it out for the default.",
        )


def check_task(
    task: str, prompt: str | None, labels: Sequence[str] | Mapping[int, str] | None, mark: str | None
) -> None:
    """Refuse a prompt and labels that do not make a task."""
    prompt_of(task, prompt)
    if task == PROMPT:
        check_labels(verbatim(labels or ()))
    if mark is not None and task != NEXT_TOKEN:
        raise Refusal(
            f"mark={mark!r}",
            got=f"the task {task!r}",
            needs="task='next-token', which may be asked about at a marked place",
            way_out="Leave the mark out.",
        )


def check_numbered(attention: Mapping[str, Any]) -> None:
    """Refuse the best layer or head where there is one text, on which neither can be chosen."""
    for place in ("layer", "head"):
        if attention.get(place) == "best":
            raise Refusal(
                f"{place}='best'",
                got="one text",
                needs="many texts to choose it on",
                way_out=f"Name the {place} by its number, or leave it out; attentest.audit chooses.",
            )


def named(labels: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    """Names of classes in their order: of a string, apart by commas; of a dict, by its numbers."""
    if isinstance(labels, str):
        return tuple(name.strip() for name in labels.split(","))
    if isinstance(labels, Mapping):
        return tuple(str(labels[number]) for number in sorted(labels))
    return tuple(map(str, labels))


def verbatim(labels: Sequence[str] | Mapping[int, str]) -> tuple[str, ...]:
    """Labels of a prompt, with the blanks before them: they are what the model would write."""
    return tuple(labels.split(",")) if isinstance(labels, str) else named(labels)


def check_model(
    where: str, *, network: bool = False, remote_code: bool = False, task: str = CLASSIFY
) -> None:
    """Refuse a saved model from its name, files and settings; a factory is only known once it has run."""
    folder = Path(where).is_dir()
    if (not folder and ":" in where) or (folder and is_ours(Path(where))):
        return
    check_saved(where, network=network, remote_code=remote_code, task=task)


def is_ours(folder: Path) -> bool:
    """Whether a folder holds a model that was trained here."""
    try:
        about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False  # whoever loads it says what is wrong
    return isinstance(about, dict) and OURS in about
