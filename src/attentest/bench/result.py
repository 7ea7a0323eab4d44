"""What a study gives back: one document for programs, which shows itself in a notebook."""

from __future__ import annotations

from typing import Any, final

from attentest import notebook
from attentest.statistics.record import ONE_TRAINING, TEXTS

MOST = 40  # findings that are shown; all are in the document, and a site shows them better
HEADINGS = ("corpus", "model", "measure", "estimate", "95 % interval", "null", "n")


@final
class StudyResult(dict[str, Any]):
    """The document of a study: counts, failures, findings, claims with their verdicts."""

    def _repr_html_(self) -> str:
        done = f"{self['title']}: {self['done']} of {self['cells']} cells are done."
        parts = [notebook.said(done)]
        for title, headings, rows in self._tables():
            if rows:
                parts += [notebook.said(title), notebook.table(headings, rows)]
        return "".join(parts)

    def _tables(self) -> list[tuple[str, tuple[str, ...], list[list[object]]]]:
        varied = notebook.vectors_vary([*self.get("claims", ()), *self.get("findings", ())])
        claims = [
            [one["says"], one["corpus"], _model(one, varied), one["verdict"], one["reason"]]
            for one in self.get("claims", ())
        ]
        whole = [[one["says"], one["verdict"], one["reason"]] for one in self.get("claim_verdicts", ())]
        overall = [one for one in self.get("findings", ()) if one["group"] == "overall"]
        shown = f"Findings over all texts, {min(MOST, len(overall))} of {len(overall)}:"
        if any(one["interval"] == TEXTS for one in overall[:MOST]):
            shown = f"{shown[:-1]}; intervals of one seed are {ONE_TRAINING}:"
        return [
            ("Failed:", ("cell", "error"), [[one["cell"][:12], one["error"]] for one in self["failed"]]),
            ("Claims over all grid points:", ("claim", "verdict", "because"), whole),
            ("Claims:", ("claim", "corpus", "model", "verdict", "because"), claims),
            (shown, HEADINGS, [_finding(one, varied) for one in overall[:MOST]]),
        ]


def _model(one: dict[str, Any], varied: bool) -> str:
    model = f"{one['encoder']} + {one['attention']} + {one['projection']}"
    return f"{model}, {notebook.word_vectors(one['vectors'], one['embedding'])}" if varied else model


def _finding(one: dict[str, Any], varied: bool) -> list[object]:
    between = f"{notebook.number(one['low'])} to {notebook.number(one['high'])}"
    measure = f"{one['experiment']}/{one['measure']}"
    return [one["corpus"], _model(one, varied), measure, one["estimate"], between, one["null"], one["n"]]
