"""Whether what draws and serves pages is there; asked before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from attentest.refusal import Refusal

NEEDED = ("altair", "jinja2", "vl_convert")
NEEDED_TO_SERVE = ("starlette", "uvicorn")
INSTALL = "pip install 'attentest[web]'"


def lacking(needed: Sequence[str] = NEEDED) -> list[str]:
    """The packages of the extra `web` that are needed and that are not here."""
    return [name for name in needed if find_spec(name) is None]


def check_web() -> None:
    """Refuse, with the command that helps, where a report lacks something."""
    _check("making a report", lacking(), "the packages that draw pages and figures")


def check_server() -> None:
    """The same for what serves pages."""
    _check("serving pages", lacking(NEEDED_TO_SERVE), "the packages of an HTTP server")


def _check(what: str, absent: Sequence[str], needs: str) -> None:
    if absent:
        raise Refusal(what, got=f"no {', '.join(absent)}", needs=needs, way_out=f"Install them: {INSTALL}")


def no_findings(store_url: str) -> Refusal:
    """A report needs something to show."""
    return Refusal(
        f"store {store_url}",
        got="no findings",
        needs="at least one experiment that was concluded",
        way_out="Run `attentest demo` or `attentest study NAME` first.",
    )
