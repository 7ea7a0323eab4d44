"""Whether what draws pages and figures is installed; asked before anything is written."""

from __future__ import annotations

from importlib.util import find_spec

from attentest.refusal import Refusal

NEEDED = ("altair", "jinja2", "vl_convert")
INSTALL = "pip install 'attentest[web]'"


def lacking() -> list[str]:
    """The packages of the extra `web` that a report needs and that are not here."""
    return [name for name in NEEDED if find_spec(name) is None]


def check_web() -> None:
    """Refuse, with the command that helps, where something is lacking."""
    absent = lacking()
    if absent:
        raise Refusal(
            "making a report",
            got=f"no {', '.join(absent)}",
            needs="the packages that draw pages and figures",
            way_out=f"Install them: {INSTALL}",
        )
