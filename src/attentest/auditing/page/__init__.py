"""An audit as a page of its own, as a section for a model card, and as JSON. Names in it are untrusted."""

from __future__ import annotations

from importlib.resources import files

from attentest.auditing.page.head import Document, head
from attentest.auditing.page.html import safe
from attentest.auditing.page.model_card import model_card
from attentest.auditing.page.sections import calibration, everything, source, texts
from attentest.gallery.heatmaps import LEVELS
from attentest.gallery.writing import Formats, as_json

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


FORMATS = Formats("audit file", "--out audit.html", {".html": page, ".md": model_card, ".json": as_json})
