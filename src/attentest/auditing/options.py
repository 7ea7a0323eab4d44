"""The words and numbers of an audit, checked before a library, a weight or a text is loaded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attentest.corpus.tables.words_for_nothing import WAYS
from attentest.foreign.saved_folder import check_saved
from attentest.foreign.words import NAMES, ROW
from attentest.refusal import Refusal

BUDGET_NAMES: Final = ("quick", "standard", "full")
ATTENTIONS: Final = (ROW, *NAMES)
REFUSE, SKIP, TRUNCATE = "refuse", "skip", "truncate"
TOO_LONG: Final = (REFUSE, SKIP, TRUNCATE)
DEVICES: Final = ("auto", "cpu", "cuda", "mps")
NUMBERS: Final = ("auto", "float32", "float64", "float16", "bfloat16")
TASKS: Final = ("classify", "prompt", "next-token")
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


def check_model(where: str, *, network: bool = False, remote_code: bool = False) -> None:
    """Refuse a saved model from its name, files and settings; a factory is only known once it has run."""
    folder = Path(where).is_dir()
    if (not folder and ":" in where) or (folder and is_ours(Path(where))):
        return
    check_saved(where, network=network, remote_code=remote_code)


def is_ours(folder: Path) -> bool:
    """Whether a folder holds a model that was trained here."""
    try:
        about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False  # whoever loads it says what is wrong
    return isinstance(about, dict) and OURS in about
