"""What comes first on a page and in a notebook: the verdict, then each criterion with its number drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attentest.auditing.page.forest import Axis, legend, plotted, row, scale
from attentest.auditing.page.html import chip, paragraph, safe

Document = Mapping[str, Any]


def head(document: Document, heading: str = "p") -> str:
    """The verdict, the criteria of both questions with their rows of the forest plot, and the scope."""
    said = document["headline"]
    name = f"<bdi>{safe(document['model'])}</bdi>"
    eyebrow = f'<p class="eyebrow">Does attention explain the answers of {name}?</p>\n'
    kind = "" if heading == "h1" else ' class="headline"'
    return "".join(
        [
            eyebrow,
            f'<div class="band {said["pointer"]}">\n',
            f"<{heading}{kind}>{safe(said['sentence'])}</{heading}>\n",
            paragraph(said["advice"], "advice"),
            "</div>\n",
            paragraph(f"{said['counts']} {counted(document)}"),
            paragraph(f"Attention: {document['attention']}.", "faint"),
            *(paragraph(document["chosen"]["sentence"], "faint") for _ in [0] if document["chosen"]),
            *_criteria(document),
            paragraph(document["scope"], "faint"),
            *(paragraph(note, "faint") for note in document["notes"]),
        ]
    )


def counted(document: Document) -> str:
    """How many texts were asked about, of which data."""
    named = document["data"].get("file") or document["data"].get("name")
    of = f" of {named}" if named else ""
    return f"{document['texts']} of {document['of']} texts{of} were audited, budget {document['budget']}."


def main_test(criterion: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The test whose number stands for a criterion."""
    place = criterion["main"]
    return None if place is None else criterion["tests"][place]


def _criteria(document: Document) -> list[str]:
    tests = [test for one in document["criteria"] if (test := main_test(one)) is not None and plotted(test)]
    axis = Axis.of(tests)
    parts = []
    for name, asks in document["questions"].items():
        parts.append(f"<h2>{safe(asks)}</h2>\n")
        parts += [_criterion(one, axis) for one in document["criteria"] if one["question"] == name]
    if tests:
        under = '<div class="criterion"><div></div><div class="plot last">'
        parts += [under, scale(axis), "</div></div>\n", legend(), "\n"]
    return parts


def _criterion(one: Mapping[str, Any], axis: Axis) -> str:
    """A criterion: its verdict, what it asks, its sentence; and its row."""
    test = main_test(one)
    drawn = row(axis, test) if test is not None and plotted(test) else ""
    asked = f"{chip(one['verdict'])}<strong>{safe(one['asks'])}</strong>"
    return (
        f'<div class="criterion"><div class="told">{asked}\n{paragraph(one["plain"])}</div>'
        f'<div class="plot{"" if drawn else " none"}">{drawn}</div></div>\n'
    )
