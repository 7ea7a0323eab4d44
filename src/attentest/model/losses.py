"""What a training is after, as a configuration writes it; what each loss computes is in a file of its own."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import final

from attentest.model.networks.log_odds import LOG_ODDS  # plus FACTOR * JSD(attention, log-odds attention)
from attentest.refusal import Refusal

TASK = "task"  # the gold labels, and nothing else
IMITATE = (
    "imitate"  # another model's outputs instead of labels, minus LAMBDA * KL(attention || its attention)
)
IMPERMISSIBLE = "impermissible"  # plus -LAMBDA * ln(1 - the attention on some words)

FORMS = {
    LOG_ODDS: re.compile(rf"{LOG_ODDS}\((?P<number>[^,]*)\)"),
    IMITATE: re.compile(rf"{IMITATE}\((?P<of>.*\S)\s*,(?P<number>[^,]*)\)"),
    IMPERMISSIBLE: re.compile(rf"{IMPERMISSIBLE}\((?P<number>[^,]*),\s*(?P<of>.*\S)\s*\)"),
}


@final
@dataclass(frozen=True)
class Loss:
    """A loss, read: its name, its factor, and what it is about (a model's key or name, or words)."""

    name: str
    factor: float = 0.0
    of: str = ""

    @classmethod
    def parse(cls, written: str) -> Loss:
        """Read `task`, `log-odds(FACTOR)`, `imitate(KEY, LAMBDA)` or `impermissible(LAMBDA, WORDS)`."""
        if written == TASK:
            return cls(TASK)
        for name, form in FORMS.items():
            found = form.fullmatch(written)
            factor = _number(found["number"]) if found else math.nan
            if found and 0 <= factor < math.inf:
                return cls(name, factor, found.groupdict().get("of", "").strip())
        raise Refusal(
            "loss",
            got=repr(written),
            needs=f"{TASK}, {LOG_ODDS}(FACTOR), {IMITATE}(KEY, LAMBDA) or {IMPERMISSIBLE}(LAMBDA, WORDS), "
            "with a factor of at least 0",
            way_out=f"For example {LOG_ODDS}(5), or {IMPERMISSIBLE}(0.1, he she).",
        )

    @property
    def imitated(self) -> str:
        """The key or name of whom it imitates; empty where it imitates nobody."""
        return self.of if self.name == IMITATE else ""

    def bound(self, key: str) -> str:
        """The same imitation of another key, with its number written one way: 1e-3 is 0.001."""
        return f"{IMITATE}({key}, {self.factor!r})"


def _number(written: str) -> float:
    try:
        return float(written)
    except ValueError:
        return math.nan
