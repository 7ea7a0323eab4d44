"""What each kind of page is made from; the templates show it and know nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attentest.figures.formats import Table
from attentest.report.lines import Line, Lines
from attentest.report.pictures import Picture
from attentest.report.points import GridPoint
from attentest.report.stored import StoredCorpus, StoredFinding
from attentest.report.verdicts import Judged
from attentest.studies.recipe import Study


@dataclass(frozen=True, kw_only=True)
class HeatMaps:
    """Texts under several attentions as HTML, or why there are none."""

    html: Sequence[str] = ()
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One finding cell on the page of its grid point."""

    anchor: str
    title: str
    asks: str
    finding: StoredFinding
    lines: Lines
    pictures: Sequence[Picture]
    heat_maps: HeatMaps | None
    missing: str  # why nothing is drawn; empty where something is
    command: str  # the study that makes it; empty where no study is known to


@dataclass(frozen=True, kw_only=True)
class PointPage:
    """One grid point: what was measured, drawn and judged."""

    point: GridPoint
    made: Sequence[tuple[str, str]]  # how the models were made
    judged: Sequence[Judged]
    sections: Sequence[Section]
    not_run: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """One grid point in the overview of its corpus."""

    point: GridPoint
    differs: str
    numbers: Sequence[Line | None]


@dataclass(frozen=True, kw_only=True)
class CorpusOverview:
    """The models of one corpus and their main numbers."""

    name: str
    anchor: str
    stored: StoredCorpus | None
    models: Sequence[ModelRow]
    picture: str


@dataclass(frozen=True, kw_only=True)
class ClaimTable:
    """One claim: its words and rules, and its verdicts by corpus and model."""

    says: str
    statistic: str
    supported_if: str
    refuted_if: str
    models: Sequence[str]
    corpora: Mapping[str, Mapping[str, Sequence[Judged]]]
    counts: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class StudyPage:
    """One study: its claims, and its published numbers beside ours."""

    study: Study
    file: str
    claims: Sequence[ClaimTable]
    comparison: Mapping[str, Any] | None
    tables: Sequence[Table]
    downloads: Sequence[str]
    diagram: str  # a drawing of what the study does; empty where there is none

    @property
    def counts(self) -> Mapping[str, int]:
        """How many verdicts of each kind there are."""
        kinds = ("supported", "refuted", "undecided")
        return {kind: sum(claim.counts.get(kind, 0) for claim in self.claims) for kind in kinds}


@dataclass(frozen=True, kw_only=True)
class IndexPage:
    """The overview of a store."""

    measures: Sequence[str]
    corpora: Sequence[CorpusOverview]
    studies: Sequence[StudyPage]
    points: int
    version: str
