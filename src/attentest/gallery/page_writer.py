"""Filling the templates of pages; nothing that comes from outside gets onto a page as markup."""

from __future__ import annotations

import functools
import re
from pathlib import PurePosixPath
from typing import Any, final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from attentest.compare.pairs import count
from attentest.notebook import harmless, number
from attentest.references import brief, whole
from attentest.store.cell import short

Files = dict[str, str]


@final
class Writer:
    """Fills templates; every value on a page passes through `_clean` and is then escaped."""

    def __init__(self) -> None:
        self.files = Files()

    def __call__(self, template: str, file: str, page: object) -> None:
        """Another page of the site."""
        self.files[file] = self.filled(template, page)

    def filled(self, template: str, page: object) -> str:
        """One page."""
        return _templates().get_template(template).render(page=page) + "\n"


@functools.cache
def _templates() -> Environment:
    """The templates, each compiled once in a process: that takes as long as a small report."""
    templates = Environment(
        loader=PackageLoader("attentest.gallery"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_clean,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.loopcontrols"],
    )
    templates.filters |= {"number": _number, "count": count, "short": short, "ready": Markup}
    templates.filters |= {"stem": lambda file: PurePosixPath(file).stem, "anchor": anchor_of}
    templates.filters |= {"brief": brief, "whole": whole}
    return templates


def anchor_of(name: str) -> str:
    """A name as a place on a page."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:40]


def _number(value: float) -> str:
    return number(value).replace("-", "−")


def _clean(value: Any) -> Any:
    return harmless(value) if isinstance(value, str) and not isinstance(value, Markup) else value
