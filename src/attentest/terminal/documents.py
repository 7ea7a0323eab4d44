"""Each verb's document as a person sees it in a terminal."""

from __future__ import annotations

import json
import math
from typing import Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from attentest.notebook import number, vectors_vary, word_vectors
from attentest.terminal.progress import described
from attentest.terminal.tables import findings_table, plain_table

Document = dict[str, Any]
MOST = 1000  # cells of a store that a terminal lists
VERDICT = {"supported": "green", "refuted": "red", "mixed": "magenta", "undecided": "yellow"}


def show_corpora(document: Document, console: Console) -> None:
    """The catalogue; of what is damaged, the reason is what a reader needs to know."""
    rows = [
        (
            e["name"],
            e["status"],
            "" if e["texts"] is None else e["texts"],
            e["licence"],
            e["reason"] or e["title"],
        )
        for e in document["corpora"]
    ]
    console.print(plain_table(("corpus", "status", "texts", "licence", "what it is"), rows))
    console.print("attentest corpora describe NAME tells more; corpora add NAME FILE registers your own.")


def show_corpus(document: Document, console: Console) -> None:
    """One corpus: facts, then counts."""
    facts = [(k, _said(v)) for k, v in document.items() if not isinstance(v, dict)]
    console.print(plain_table(("", document["name"]), facts))
    if document.get("parameters"):
        rows = [(k, _said(v["value"]), v["meaning"]) for k, v in document["parameters"].items()]
        console.print(plain_table(("parameters", "value", "meaning"), rows))
    for heading in ("counts", "excluded", "preparation"):
        if document.get(heading):
            console.print(plain_table((heading, ""), [(k, _said(v)) for k, v in document[heading].items()]))


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {inner}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value[:20])) + (" ..." if len(value) > 20 else "")
    return value if isinstance(value, str) else json.dumps(value)


def show_added(document: Document, console: Console) -> None:
    """A corpus was registered."""
    said = f"Added {document['corpus']}: {_said(document['texts'])}; labels {_said(document['labels'])}."
    console.print(said, markup=False, highlight=False)
    console.print(f"Now: attentest train {document['corpus']}", markup=False)


def show_removed(document: Document, console: Console) -> None:
    """A name stands for nothing again."""
    said = f"Removed {document['corpus']}; the file that it stood for is untouched."
    console.print(said, markup=False, highlight=False)


def show_training(document: Document, console: Console) -> None:
    """A trained model's scores."""
    config = document["config"]
    title = f"{document['corpus']}: {config.get('encoder', 'bilstm')} + {config.get('attention', 'additive')}"
    rows = [
        (split, *(number(scores[name]) for name in ("accuracy", "f1", "auc")))
        for split, scores in document["scores"].items()
    ]
    console.print(plain_table(("split", "accuracy", "F1", "AUC"), rows, title))
    console.print(
        f"epoch {document['epoch']} of {document['epochs']} kept, {document['seconds']:.1f} s, "
        f"trained on {document['device']}, cell {document['cell'][:12]}",
        highlight=False,
    )


def show_plan(document: Document, console: Console) -> None:
    """The cells a study still needs, in words; `run-cell` takes the beginning of a key."""
    plan = document["plan"]
    for cell in plan:
        line = f"{cell['cell'][:12]}  {_time(cell['seconds']):>9}  {_planned(cell)}"
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    _show_skipped(document, console)
    known = [cell["seconds"] for cell in plan if math.isfinite(cell["seconds"])]
    console.print(f"{len(plan)} of {document['cells']} cells are missing.", highlight=False)
    if known:
        some = "" if len(known) == len(plan) else f" for the {len(known)} cells of which like ran here"
        console.print(f"Expected on one process: {_time(math.fsum(known))}{some}.", highlight=False)


def _planned(cell: Document) -> str:
    """What is done, on what."""
    seed = "" if cell["seed"] is None else f"seed {cell['seed']}"
    model = ", ".join(part for part in (cell["model"], cell["variant"], seed) if part)
    asked = f"{cell['experiment']} on " if cell["experiment"] else ""
    return f"{cell['stage']:11}  {asked}{cell['corpus'] or '?'}" + (f": {model}" if model else "")


def _time(seconds: float) -> str:
    """Not more digits than one plans with; a cell whose like never ran here has no known time."""
    if not math.isfinite(seconds):
        return "not known"
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def show_study(document: Document, console: Console) -> None:
    """The findings over all texts, the claims, and what failed."""
    findings = pd.DataFrame(document["findings"])
    if len(findings):
        overall = findings[findings["group"] == "overall"]
        console.print(findings_table(overall, document["title"]))
    _show_claims(document["claims"], document.get("claim_verdicts", []), console)
    for failure in document["failed"]:
        console.print(f"failed: {failure['cell'][:12]} {failure['error']}", style="red", markup=False)
    _show_skipped(document, console)
    console.print()
    console.print(
        f"{document['done']} of {document['cells']} cells done, {document['computed']} of them now, "
        f"in {document['seconds']:.1f} s on {document['device']}; groups and classes: --json",
        highlight=False,
    )


def _show_skipped(document: Document, console: Console) -> None:
    for entry in document.get("skipped", []):
        if "vectors" in entry:
            console.print(f"left out: word vectors {entry['vectors']} ({entry['reason']}).", markup=False)
        else:
            console.print(
                f"left out: {entry['corpus']} ({entry['reason']}); see `attentest corpora describe`."
            )


def _show_claims(claims: list[Document], overall: list[Document], console: Console) -> None:
    """Each claim with its verdict over all grid points, then those of its grid points."""
    varied = vectors_vary(claims)
    for says in dict.fromkeys(claim["says"] for claim in claims):
        console.print()
        console.print(Text(f"Claim: {says}", style="bold"))
        for whole in (one for one in overall if one["says"] == says):
            line = Text("  ")
            line.append(whole["verdict"], style=f"bold {VERDICT[whole['verdict']]}")
            line.append(f": {whole['reason']}")
            console.print(line, soft_wrap=True)
        for claim in (c for c in claims if c["says"] == says):
            line = Text("    ")
            line.append(f"{claim['verdict']:10}", style=VERDICT[claim["verdict"]])
            model = f"{claim['encoder']} + {claim['attention']}"
            if varied:
                model += f", {word_vectors(claim['vectors'], claim['embedding'])}"
            line.append(f"{claim['corpus']}: {model} ({claim['reason']})")
            console.print(line, soft_wrap=True)


def show_site(document: Document, console: Console) -> None:
    """Where the pages are."""
    said = f"{document['pages']} pages and {document['figures']} figures. Open {document['index']}"
    console.print(said, markup=False, highlight=False, soft_wrap=True)
    if document["lacking"]:
        shown = ", ".join(
            f"{one['cell'][:12]} ({', '.join(one['files'])})" for one in document["lacking"][:3]
        )
        more = " and others" if len(document["lacking"]) > 3 else ""
        said = f"{len(document['lacking'])} cells lack files, and pages what these would show: {shown}{more}."
        console.print(said, markup=False, highlight=False, soft_wrap=True)


def show_conclusions(document: Document, console: Console) -> None:
    """Whether what is stored still follows from what is stored."""
    findings = pd.DataFrame(document["findings"])
    if len(findings):
        console.print(findings_table(findings[findings["group"] == "overall"], "Findings, concluded again"))
    console.print(
        f"{document['same']} the same, {len(document['changed'])} changed, {len(document['written'])} "
        f"newly written, {len(document['waiting'])} wait for observations.",
        highlight=False,
    )
    for key in document["changed"]:
        console.print(f"changed: {key}", style="red")
    for key in document["mixed"]:
        console.print(f"not written, its seeds were trained on different devices: {key}", style="red")
    for key, label in document["labels"].items():
        console.print(f"{label}: {key}", markup=False, highlight=False)


def show_cells(document: Document, console: Console) -> None:
    """Every cell with what it is."""
    rows = [
        (cell["cell"][:12], cell["stage"], _described(cell), cell["written"])
        for cell in document["cells"][:MOST]
    ]
    console.print(plain_table(("cell", "stage", "what", "written"), rows, str(document["store"])))
    for failure in document["failed"]:
        console.print(f"failed: {failure['cell'][:12]} {failure['error']}", style="red", markup=False)
    if len(document["cells"]) > MOST:
        console.print(f"and {len(document['cells']) - MOST} more; --json lists all.", highlight=False)
    console.print(
        f"{len(document['cells'])} cells, {len(document['planned'])} more planned.", highlight=False
    )


def _described(cell: Document) -> str:
    said = described(cell["stage"], cell["config"])
    return f"{said} ({cell['label']})" if cell["label"] else said


def show_cell(document: Document, console: Console) -> None:
    """What became of one cell."""
    failed = document["failed"]
    said = f"failed: {failed[0]['error']}" if failed else "done"
    console.print(f"{document['stage']} {document['cell'][:12]}: {said}", markup=False, highlight=False)


def show_export(document: Document, console: Console) -> None:
    """What the file holds, and what was left out and why."""
    said = f"{document['findings']} findings of {document['cells']} cells in {document['file']}"
    console.print(f"{said}, {document['bytes'] / 1e6:.2f} MB.", markup=False, highlight=False, soft_wrap=True)
    for entry in document["left_out"]:
        line = f"left out: {entry['cell'][:12]}, {entry['reason']}."
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def show_import(document: Document, console: Console) -> None:
    """How much of the file is new here."""
    said = f"{document['findings']} findings of {document['cells']} cells in {document['file']}: "
    said += f"{document['written']} cells written to {document['store']}, the others were there."
    console.print(said, markup=False, highlight=False, soft_wrap=True)


def show_imports(document: Document, console: Console) -> None:
    """The same of several files, one a line."""
    for each in document["files"]:
        show_import(each, console)
