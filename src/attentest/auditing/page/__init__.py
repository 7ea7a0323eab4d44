"""An audit as a page of its own, as a section for a model card, and as JSON. Names in it are untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from attentest.auditing.page.head import Document, head
from attentest.auditing.page.html import safe
from attentest.auditing.page.model_card import model_card
from attentest.auditing.page.sections import calibration, everything, source, texts
from attentest.gallery.heatmaps import LEVELS
from attentest.gallery.writing import write as write_file
from attentest.refusal import Refusal

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(document: Document) -> str:
    """The whole audit as one HTML file that needs nothing beside it and runs no script."""
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />\n',
            f"<title>Audit of {safe(document['model'])}</title>\n<style>{style()}</style>\n</head>\n",
            '<body class="attentest-audit">\n<main>\n',
            head(document, "h1"),
            texts(document),
            calibration(document),
            everything(document),
            source(document),
            "</main>\n</body>\n</html>\n",
        ]
    )


def fragment(document: Document) -> str:
    """What a notebook shows: the head of the page, in a style that reaches nothing outside it."""
    return f'<div class="attentest-audit">\n<style>{style()}</style>\n{head(document)}</div>\n'


def style() -> str:
    """The style of an audit, with the grounds of its strips."""
    sheet = files("attentest.auditing.page").joinpath("audit.css").read_text(encoding="utf-8")
    grounds = (
        f".attentest-audit .w{level} {{ background: color-mix(in srgb, var(--hot) {100 * level / LEVELS:g}%,"
        " var(--cold)); }\n"
        for level in range(LEVELS + 1)
    )
    return sheet + "".join(grounds)


def as_json(document: Document) -> str:
    """One JSON document; what is not a number is null."""
    return json.dumps(_finite(document), allow_nan=False, indent=1) + "\n"


FORMATS: dict[str, Callable[[Document], str]] = {".html": page, ".md": model_card, ".json": as_json}


def write(document: Document, out: Path | str) -> Path:
    """Write the audit in the format that the name ends in, at once or not at all."""
    path = Path(out)
    check_out(path)
    write_file(FORMATS[path.suffix.lower()](document), path, with_folder=True)
    return path


def check_out(out: Path | str) -> None:
    """Refuse a name that cannot be written, before anything is measured."""
    path = Path(out)
    if path.suffix.lower() not in FORMATS or path.is_dir():
        raise Refusal(
            f"audit file {path}",
            got="a folder" if path.is_dir() else f"the ending {path.suffix!r}",
            needs=f"a file that ends in {', '.join(FORMATS)}",
            way_out="For example --out audit.html.",
        )


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
