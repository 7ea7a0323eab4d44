"""An audit as a page of its own, as a section for a model card, and as JSON. Names in it are untrusted."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from attentest.gallery.writing import write as write_file
from attentest.notebook import number
from attentest.refusal import Refusal

Document = Mapping[str, Any]

STYLE = """
:root { color-scheme: light dark; --ink: #1f1f26; --paper: #fff; --faint: #62626e; --line: #dedee4;
  --yes: #e2f2e6; --yes-ink: #14582c; --no: #fbe5e1; --no-ink: #8c2413; --open: #fbf1d3;
  --open-ink: #6b5200; --none: #ececf1; --none-ink: #4a4a55; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6ec; --paper: #16161b; --faint: #a2a2ae;
  --line: #36363f; --yes: #14351f; --yes-ink: #a5dfb6; --no: #45190f; --no-ink: #f6b9ac; --open: #3b3010;
  --open-ink: #ecd48a; --none: #2a2a32; --none-ink: #c3c3cd; } }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.supported { background: var(--yes); color: var(--yes-ink); }
.not-supported { background: var(--no); color: var(--no-ink); }
.undecided { background: var(--open); color: var(--open-ink); }
.not-measured, .not-applicable, .not-judged { background: var(--none); color: var(--none-ink); }
@media (max-width: 40rem) { .criteria tr:first-child { display: none; }
  .criteria td { display: block; border: 0; } .criteria tr { border-bottom: 1px solid var(--line); } }
details { margin: .5rem 0; } summary { cursor: pointer; } .faint { color: var(--faint); }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HEADINGS = ("experiment", "measure", "group", "estimate", "95 % interval", "null", "n", "excluded")
TESTS = ("criterion", "test", "estimate", "95 % interval", "null", "margin", "p (Holm)", "p is of", "says")
NUMBERS = (*HEADINGS[3:], "margin", "p (Holm)")


def page(document: Document) -> str:
    """The whole audit as one HTML file that needs nothing beside it and runs no script."""
    title = escape(f"Audit of {document['model']}")
    return "".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />\n',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}" />\n',
            '<meta name="viewport" content="width=device-width, initial-scale=1" />\n',
            f"<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
            fragment(document),
            "<h2>The tests behind the verdicts</h2>\n",
            _table(TESTS, _tests(document["criteria"])),
            "<h2>Findings</h2>\n",
            _findings(document["findings"]),
            "<h2>What is not there, and why</h2>\n",
            _table(("what", "why"), document["left_out"].items()),
            "<h2>Texts</h2>\n",
            _texts(document),
            "<h2>Seconds</h2>\n",
            _table(("question", "seconds"), ((k, f"{v:.1f}") for k, v in document["seconds"].items())),
            "<h2>What each measure means</h2>\n",
            *(_card(name, card) for name, card in document["cards"].items()),
            f'<p class="faint">Made by attentest {escape(document["version"])}.</p>\n</body>\n</html>\n',
        ]
    )


def fragment(document: Document) -> str:
    """What a notebook shows: the attention, the criteria and their sentences; static and escaped."""
    said = [f"{document['attention']}; {_counted(document)}", document["scope"]]
    said += [document["chosen"]["sentence"]] if document["chosen"] else []
    lines = [
        *(f"<p>{escape(sentence)}</p>\n" for sentence in said),
        '<div class="wide"><table class="criteria">\n',
        "<tr><th>criterion</th><th>verdict</th><th>in words</th></tr>\n",
        *map(_criterion, document["criteria"]),
        "</table></div>\n",
        *(
            f'<p class="faint">{escape(f"{name.capitalize()}: {asks}")}</p>\n'
            for name, asks in document["questions"].items()
        ),
    ]
    return "".join(lines)


def _counted(document: Document) -> str:
    return f"{document['texts']} of {document['of']} texts, budget {document['budget']}."


def _criterion(one: Mapping[str, Any]) -> str:
    """A criterion with its question, its verdict, its sentence and its error rates."""
    asked = f"{escape(one['criterion'])}<br /><span class='faint'>{escape(_asked(one))}</span>"
    words = f"{escape(one['sentence'])}<br /><span class='faint'>{escape(one['rates'])}</span>"
    verdict = f'<td class="{one["verdict"].replace(" ", "-")}">{escape(one["verdict"])}</td>'
    return f"<tr><td>{asked}</td>{verdict}<td>{words}</td></tr>\n"


def _asked(one: Mapping[str, Any]) -> str:
    """The plain question of a criterion, and which of the two questions that is."""
    return f"{one['asks']} ({one['question']})"


def model_card(document: Document) -> str:
    """A section of Markdown to put into a model card."""
    head = [
        "## Does attention explain this model's answers?",
        "",
        _marked(f"Audited by attentest {document['version']}: {document['attention']}."),
        *([_marked(document["chosen"]["sentence"])] if document["chosen"] else []),
        f"{_counted(document)} There is no single score: an explanation may be asked several things.",
        document["scope"],
        "",
        "| criterion | question | verdict | in words |",
        "|---|---|---|---|",
    ]
    rows = [
        f"| {one['criterion']} | {_asked(one)} | {one['verdict']} |"
        f" {_marked(one['sentence'])} {_marked(one['rates'])} |"
        for one in document["criteria"]
    ]
    asked = [f"{name.capitalize()}: {asks}" for name, asks in document["questions"].items()]
    missing = [f"- {_marked(what)}: {_marked(why)}" for what, why in document["left_out"].items()]
    return "\n".join(
        [*head, *rows, "", *asked, *(["", "Not measured:", "", *missing] if missing else []), ""]
    )


def as_json(document: Document) -> str:
    """One JSON document; what is not a number is null."""
    return json.dumps(_finite(document), allow_nan=False, indent=1) + "\n"


FORMATS: dict[str, Callable[[Document], str]] = {".html": page, ".md": model_card, ".json": as_json}


def write(document: Document, out: Path | str) -> Path:
    """Write the audit in the format that the name ends in, at once or not at all."""
    path = Path(out)
    _check(path)
    write_file(FORMATS[path.suffix.lower()](document), path, with_folder=True)
    return path


def check_out(out: Path | str) -> None:
    """Refuse a name that cannot be written, before anything is measured."""
    _check(Path(out))


def _check(path: Path) -> None:
    if path.suffix.lower() not in FORMATS or path.is_dir():
        raise Refusal(
            f"audit file {path}",
            got="a folder" if path.is_dir() else f"the ending {path.suffix!r}",
            needs=f"a file that ends in {', '.join(FORMATS)}",
            way_out="For example --out audit.html.",
        )


def _tests(criteria: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Every test of every criterion; one that has no answer says why instead."""
    for one in criteria:
        for test in one["tests"]:
            numbers = number(test["estimate"]), f"[{number(test['low'])}, {number(test['high'])}]"
            margin, p = number(test["margin"]), "< 0.001" if test["p"] < 0.001 else number(test["p"])
            said = f"{test['verdict']}: {test['reason']}" if test["reason"] else test["verdict"]
            name = f"{test['experiment']}/{test['measure']}"
            yield one["criterion"], name, *numbers, number(test["null"]), margin, p, test["p_tests"], said


def _texts(document: Document) -> str:
    """The ids of the texts that were audited, one click away."""
    said = f"The ids of the {document['texts']} of {document['of']} texts that were audited, in their order"
    ids = ", ".join(map(str, document["ids"]))
    return f"<details><summary>{said}</summary>\n<p>{escape(ids)}</p>\n</details>\n"


def _findings(findings: Sequence[Mapping[str, Any]]) -> str:
    """The overall numbers in view, groups and controls one click away."""
    overall = [one for one in findings if one["group"] == "overall"]
    others = [one for one in findings if one["group"] != "overall"]
    said = f"<details><summary>{len(others)} more, by class, length and control</summary>\n"
    return _table(HEADINGS, map(_row, overall)) + said + _table(HEADINGS, map(_row, others)) + "</details>\n"


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    between = f"[{number(one['low'])}, {number(one['high'])}]"
    counts = str(one["n"]), f"{one['excluded']} {one['why']}".strip() if one["excluded"] else "0"
    return (
        one["experiment"],
        one["measure"],
        one["group"],
        number(one["estimate"]),
        between,
        number(one["null"]),
        *counts,
    )


def _table(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows that a narrow screen can move sideways under headings of their kind."""
    lines = "".join(_line(headings, row, "td") for row in rows)
    return f'<div class="wide"><table>\n{_line(headings, headings, "th")}{lines}</table></div>\n'


def _line(headings: Sequence[str], row: Sequence[Any], tag: str) -> str:
    classes = (' class="number"' if heading in NUMBERS else "" for heading in headings)
    cells = (f"<{tag}{kind}>{escape(str(cell))}</{tag}>" for kind, cell in zip(classes, row, strict=True))
    return f"<tr>{''.join(cells)}</tr>\n"


def _card(name: str, card: Mapping[str, Any]) -> str:
    """One measure: what it is, its null, and where it was published."""
    kept = ("formula", "direction", "null", "unit", "paper", "section", "undefined_when")
    told = [(key.replace("_", " "), card[key]) for key in kept]
    told += [("How good it is", card["how_good"])] if card["how_good"] else []
    lines = _table(("", ""), told)
    said = f"{escape(card['measure'])} <span class='faint'>{escape(name)}</span>"
    return f"<details><summary>{said}</summary>\n{lines}</details>\n"


def _marked(text: str) -> str:
    """Text that cannot end a table's cell or begin a tag or a link."""
    flat = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\|<>[]`*_" else sign for sign in flat)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
