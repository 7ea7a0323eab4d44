"""An audit as a section of Markdown that can stand in a model card as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attentest.auditing.page.head import Document, counted
from attentest.auditing.page.html import share
from attentest.auditing.page.sections import draws
from attentest.notebook import harmless

HEADINGS = ("Question", "Answer", "In one sentence", "How often it is right of models whose truth is known")
NOT_USELESS = (
    "“Not supported” means that these texts show less than the margin, not that attention is useless; what is"
    " “not judged” has a number and no verdict."
)


def model_card(document: Document) -> str:
    """The headline, the criteria in words, the limits, and the source."""
    said, made = document["headline"], document["provenance"]
    missing = [one for one in document["criteria"] if one["main"] is None]
    limits = [document["scope"], NOT_USELESS, *document["notes"]]
    limits += [document["chosen"]["sentence"]] if document["chosen"] else []
    limits += [*draws(document), *(f"{one['asks']} {one['plain']}" for one in missing)]
    answered = [one for one in document["criteria"] if one["main"] is not None]
    lines = [
        "## Does attention explain this model's answers?",
        "",
        f"**{escaped(said['sentence'])}** {escaped(said['advice'])}",
        "",
        escaped(f"{said['counts']} {counted(document)} Attention: {document['attention']}."),
        "",
        *_table(HEADINGS, [_row(one) for one in answered]),
        "",
        "### Limits",
        "",
        *(f"- {escaped(each)}" for each in limits),
        "",
        "### Source",
        "",
        *(f"- {escaped(name)}: {escaped(str(fact))}" for name, fact in made["facts"].items()),
        "",
        escaped(made["citation"]),
        "",
        *_code("bibtex", made["bibtex"]),
        *(["", *_code("", made["command"])] if made["command"] else []),
        "",
    ]
    return "\n".join(lines)


def escaped(text: str) -> str:
    """Text that cannot end a table's cell or begin a tag, a link or a list."""
    flat = harmless(" ".join(text.split()))
    return "".join(f"\\{sign}" if sign in "\\|<>[]`*_#" else sign for sign in flat)


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return one["asks"], one["verdict"], one["plain"], _rates(one["error_rates"])


def _rates(rates: Mapping[str, Any] | None) -> str:
    if rates is None:
        return "not known for this kind of model"
    false, true = rates["false_support"], rates["power"]
    wrong = f"supported in {f'at most {share(false)} of audits' if false else 'no audit'} where it is false"
    right = f"in {f'at least {share(true)} of audits' if true < 1 else 'every audit'} where it is true"
    known = [said for said, models in ((wrong, rates["no"]), (right, rates["yes"])) if models]
    return f"{', and '.join(known)} ({rates['audits']} audits of each model)"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *([*map(escaped, row)] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _code(language: str, text: str) -> list[str]:
    """A block that nothing in it can close."""
    return [f"```{language}", *(harmless(line).replace("```", "'''") for line in text.split("\n")), "```"]
