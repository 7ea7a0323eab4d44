"""Why a published number has none of ours beside it, and what to do about that."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from attentest.compare.papers import SIZES
from attentest.compare.translation import Wanted
from attentest.studies.recipe import Study

PRESENT = ("here", "embedded", "registered")


@final
@dataclass(frozen=True)
class Absence:
    """A reason and a way out."""

    reason: str
    way_out: str


def absence(wanted: Wanted, study: Study, name: str, shelf: Mapping[str, str], tried: list[str]) -> Absence:
    """Why there is no row. `shelf` says of each corpus whether it is here, `tried` why cells say nothing."""
    if wanted.statistic not in SIZES and not wanted.measure:
        return Absence(
            f"{wanted.statistic!r} is no measure of ours", "Write it as experiment/measure in the CSV."
        )
    if tried:
        way_out = "More seeds, or another model, may say more."
        if wanted.statistic in SIZES:
            way_out = _command(wanted, study, name)
        return Absence("; ".join(dict.fromkeys(tried)), way_out)
    status = shelf.get(wanted.corpus, "unknown")
    if status not in PRESENT:
        return _not_here(wanted.corpus, status)
    return Absence("not run", _command(wanted, study, name))


def _not_here(corpus: str, status: str) -> Absence:
    if status == "unknown":
        return Absence(f"no corpus is called {corpus!r}", "attentest corpora list")
    verb = "get" if status == "downloadable" else "describe"
    return Absence(f"the corpus is not here: {status}", f"attentest corpora {verb} {corpus}")


def _command(wanted: Wanted, study: Study, name: str) -> str:
    """The study that would bring it, and first what the study lacks to do so."""
    command = f"attentest study {shlex.quote(name)} --corpus {shlex.quote(wanted.corpus)}"
    if wanted.statistic in SIZES:
        return command
    lacks = [
        f"{kind} {value}"
        for kind, value, there in (
            ("encoder", wanted.encoder, study.grid.encoder),
            ("attention", wanted.attention, study.grid.attention),
            ("projection", wanted.projection, study.grid.projection),
            ("experiment", wanted.experiment, [step.name for step in study.experiment]),
        )
        if value not in there
    ]
    return f"add {', '.join(lacks)} to the study, then {command}" if lacks else command
