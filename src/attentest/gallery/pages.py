"""What each kind of page is made from; the templates show it and know nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from markupsafe import Markup

from attentest.charts.forest import ForestLine
from attentest.compare.formats import Table
from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredFinding
from attentest.compare.verdicts import Judged
from attentest.gallery.lines import Line, Lines
from attentest.gallery.pictures import Picture
from attentest.statistics.card import Card
from attentest.studies.recipe import Study


@final
@dataclass(frozen=True, kw_only=True)
class HeatMaps:
    """Texts under several attentions as HTML, or why there are none."""

    html: Sequence[str] = ()
    missing: str = ""


@final
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


@final
@dataclass(frozen=True, kw_only=True)
class Glance:
    """An experiment in one line: its statistic, and what that says beside its null."""

    anchor: str
    title: str
    line: Line
    reading: str


@final
@dataclass(frozen=True, kw_only=True)
class PointPage:
    """One grid point: what was measured, drawn and judged."""

    point: GridPoint
    glances: Sequence[Glance]
    training: Picture | None  # the curve; None where the store does not tell
    explorer: str  # the page of its texts
    made: Sequence[tuple[str, str]]  # how the models were made
    judged: Sequence[Judged]
    sections: Sequence[Section]
    not_run: Sequence[str]


@final
@dataclass(frozen=True, kw_only=True)
class ExplorerPage:
    """The texts of a model, seed by seed; what they are is in its shards."""

    point: GridPoint
    file: str
    shard: str  # the script with the table; empty where nothing can be shown
    seeds: Sequence[int]  # the first is what the page opens with
    texts: int
    missing: str  # why nothing can be shown; empty where something is
    commands: Sequence[str]


@final
@dataclass(frozen=True, kw_only=True)
class TextsPage:
    """Where the texts of each model are, with what tells models apart."""

    rows: Sequence[tuple[GridPoint, str, ExplorerPage]]


@final
@dataclass(frozen=True, kw_only=True)
class AboutPage:
    """How to read the pages."""

    version: str


@final
@dataclass(frozen=True, kw_only=True)
class ComparePage:
    """Two models, seeds or studies, chosen on the page."""

    shard: str


@final
@dataclass(frozen=True, kw_only=True)
class CorpusEntry:
    """One corpus that can be named, whether the store holds it or not."""

    name: str
    title: str
    status: str
    licence: str
    cite: str
    counts: str  # texts by split, as the store has them


@final
@dataclass(frozen=True, kw_only=True)
class ExperimentEntry:
    """One experiment: where it was published, and what it cost here."""

    name: str
    title: str
    asks: str
    papers: Sequence[str]
    cards: Sequence[Card]
    done: int  # observations in the store
    seconds: float  # a model, on average; NaN where none was observed


@final
@dataclass(frozen=True, kw_only=True)
class CellEntry:
    """One finding cell: what a page prints, and how to make it again."""

    key: str
    experiment: str
    mode: str
    point: GridPoint
    seconds: float  # NaN where the observations are not described
    command: str


@final
@dataclass(frozen=True, kw_only=True)
class CataloguePage:
    """What there is, where it comes from, what it cost, how each number was made."""

    corpora: Sequence[CorpusEntry]
    experiments: Sequence[ExperimentEntry]
    points: Sequence[tuple[GridPoint, str, float]]  # with what tells it apart, and seconds of training a seed
    cells: Sequence[CellEntry]
    version: str


@final
@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One line of a forest plot: its numbers and its drawing, which is SVG."""

    line: ForestLine
    drawn: Markup


@final
@dataclass(frozen=True, kw_only=True)
class ClaimTable:
    """One claim: its words and rules, and its verdicts by corpus and model."""

    says: str
    statistic: str
    beside: str  # what it is held against, if anything
    supported_if: str
    refuted_if: str
    provided: str  # what it takes for granted, if anything
    measured: str  # its statistic in words
    lines: Sequence[ForestRow]  # its statistic at the first grid points
    models: Sequence[str]
    corpora: Mapping[str, Mapping[str, Sequence[Judged]]]
    counts: Mapping[str, int]
    verdict: str  # over all its grid points
    because: str


@final
@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A figure on the page of a model: the file, or why it could not be drawn."""

    point: GridPoint
    finding: StoredFinding
    anchor: str
    title: str
    file: str
    size: tuple[str, str]
    missing: str


@final
@dataclass(frozen=True, kw_only=True)
class FigureTable:
    """One kind of figure over the grid of a study."""

    anchor: str
    title: str
    says: str
    redraws: str  # what it is in the paper; empty where the paper has no such figure
    models: Sequence[str]
    corpora: Mapping[str, Sequence[Sequence[Drawn] | str]]  # a cell a model: figures, or why there is none

    @property
    def count(self) -> int:
        """How many are here."""
        return sum(
            len(cell) for cells in self.corpora.values() for cell in cells if not isinstance(cell, str)
        )


@final
@dataclass(frozen=True, kw_only=True)
class StudyPage:
    """One study: its claims, and its published numbers beside ours."""

    study: Study
    file: str
    ran: bool  # in this store; papers that were never run here stand apart
    claims: Sequence[ClaimTable]
    claim_files: Sequence[str]
    comparison: Mapping[str, Any] | None
    tables: Sequence[Table]
    downloads: Sequence[str]
    diagram: str  # a drawing of what the study does; empty where there is none
    pictures: Sequence[Picture]  # of all models together
    figures: Sequence[FigureTable]  # of each model, side by side
    texts: Sequence[tuple[Drawn, Sequence[str]]]  # the paper's own texts under several attentions, by corpus

    @property
    def corpora(self) -> Sequence[str]:
        """The corpora of its grid, without their parameters."""
        return list(dict.fromkeys(name.partition("(")[0] for name in self.study.grid.corpus))

    @property
    def counts(self) -> Mapping[str, int]:
        """How many claims have each verdict over all their grid points; the others were not judged."""
        kinds = ("supported", "refuted", "mixed", "undecided")
        return {kind: sum(claim.verdict == kind for claim in self.claims) for kind in kinds}

    @property
    def judged(self) -> int:
        """How many verdicts at single grid points there are."""
        return sum(sum(claim.counts.values()) for claim in self.claims)
