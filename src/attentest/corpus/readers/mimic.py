"""MIMIC-III: discharge summaries, labelled by the ICD-9 codes of the admission they end.

The file of notes has gigabytes, so it is read row by row and no text is kept here; what is kept is one
label for each admission.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from attentest.corpus.document import Document
from attentest.corpus.example import SPLITS, Split
from attentest.corpus.fetch.archive import Archive
from attentest.corpus.tables.records import Line, headed, numbered
from attentest.refusal import Refusal

MEMBERS = re.compile(r"(?:^|/)(?:NOTEEVENTS|DIAGNOSES_ICD|(?:train|dev|test)_50_hadm_ids)\.csv$")
NOTES = re.compile(r"(?:^|/)NOTEEVENTS\.csv$")
CODES = re.compile(r"(?:^|/)DIAGNOSES_ICD\.csv$")
LISTS = re.compile(r"(?:^|/)(?P<split>train|dev|test)_50_hadm_ids\.csv$")


def _labels(archive: Archive, codes: Mapping[str, str], otherwise: str) -> dict[str, str]:
    """The label of each admission that has diagnoses; two labels at once are one of their own."""
    found: dict[str, set[str]] = {}
    for member, lines in archive.streams(CODES):
        where = f"{archive.path}, {member.string}"
        for _, row in headed(lines, ("HADM_ID", "ICD9_CODE"), where=where):
            kinds = found.setdefault(row["HADM_ID"], set())
            kinds.update(label for label, code in codes.items() if row["ICD9_CODE"].startswith(code))
    if not found:
        raise archive.lacking({"DIAGNOSES_ICD.csv"})
    return {admission: " and ".join(sorted(kinds)) or otherwise for admission, kinds in found.items()}


def _lists(archive: Archive) -> dict[str, Split]:
    """The split of each admission in the lists of Mullenbach et al. (2018), where they are there."""
    listed: dict[str, Split] = {}
    missing = {f"{split}_50_hadm_ids.csv" for split in SPLITS}
    for member, lines in archive.streams(LISTS):
        missing.discard(f"{member['split']}_50_hadm_ids.csv")
        for line, text in numbered(lines, where=f"{archive.path}, {member.string}"):
            if not text.strip().isdigit():
                raise line.refusal(f"{text[:40]!r}", "the number of one admission")
            listed[text.strip()] = cast(Split, member["split"])
    if listed and missing:
        raise archive.lacking(missing)
    return listed


def _summaries(archive: Archive) -> Iterator[tuple[Line, dict[str, str]]]:
    absent = True
    for member, lines in archive.streams(NOTES):
        absent = False
        where = f"{archive.path}, {member.string}"
        for line, row in headed(lines, ("HADM_ID", "CATEGORY", "TEXT"), where=where):
            if row["CATEGORY"] == "Discharge summary":
                yield line, row
    if absent:
        raise archive.lacking({"NOTEEVENTS.csv"})


def read(
    archive: Archive, *, codes: Mapping[str, str], otherwise: str | None = None, lists: bool = False
) -> Iterator[Document]:
    """One summary of each admission. `codes` says with what the codes begin that earn each label.

    An admission without such codes is labelled `otherwise`, or left out where that is None; one with codes
    of two labels is left out. With `lists`, the splits of Mullenbach et al. (2018) hold where their files
    are there. Departure: addenda and second summaries are not appended to the first, because that would
    need all notes at once. Whatever is left out comes without its text, for preparation to count.
    """
    wanted = {*codes, otherwise}
    labels = _labels(archive, codes, otherwise or f"neither {' nor '.join(codes)}")
    listed = _lists(archive) if lists else {}
    seen: set[str] = set()
    for line, row in _summaries(archive):
        admission = row["HADM_ID"]
        label = labels.get(admission, "none: no diagnoses")
        if listed and admission not in listed:
            label = "none: not in the lists"
        elif admission in seen or row.get("DESCRIPTION") == "Addendum":
            label = "none: a further note of the admission"
        if label not in wanted:
            yield Document(id=f"line {line.number}", text=(), label=label)
            continue
        seen.add(admission)
        yield Document(id=admission, text=row["TEXT"], label=label, split=listed.get(admission))
    _check_every_list(archive, listed, seen)


def _check_every_list(archive: Archive, listed: Mapping[str, Split], seen: set[str]) -> None:
    """A list whose admissions have no summary would leave its split to be drawn from another's texts."""
    for split in SPLITS if listed else ():
        if not any(listed.get(admission) == split for admission in seen):
            raise Refusal(
                f"{archive.path}, {split}_50_hadm_ids.csv",
                got="no admission with a summary and one of the labels",
                needs="at least one",
                way_out="Put the list and the notes of the same release there.",
            )
