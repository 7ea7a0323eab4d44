"""What the first page of a store is made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from markupsafe import Markup

from attentest.compare.points import GridPoint
from attentest.compare.stored import StoredCorpus
from attentest.gallery.lines import Line
from attentest.gallery.pages import ForestRow, StudyPage


@final
@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """One grid point in the overview of its corpus."""

    point: GridPoint
    differs: str
    numbers: Sequence[Line | None]


@final
@dataclass(frozen=True, kw_only=True)
class CorpusOverview:
    """The models of one corpus and their main numbers."""

    name: str
    anchor: str
    stored: StoredCorpus | None
    models: Sequence[ModelRow]
    picture: str


@final
@dataclass(frozen=True, kw_only=True)
class PlayText:
    """A text under several weightings, as HTML."""

    id: str
    text: str
    label: str
    predicted: str
    html: Markup
    decisive: Sequence[str]  # the words that the corpus marks as what decides; empty where nobody knows


@final
@dataclass(frozen=True, kw_only=True)
class LeadAnswer:
    """What the study that comes first says: a sentence, a line for each test, some texts."""

    study: StudyPage | None  # None where no study asks for what the store holds
    where: str
    says: str
    point: GridPoint  # the model of the picture and of the texts
    models: int
    model: str  # the key of the model of the texts; empty where the store does not know it
    lines: Sequence[ForestRow]
    texts: Sequence[PlayText]
    missing: str  # why there are no texts; empty where there are


@final
@dataclass(frozen=True, kw_only=True)
class CardPicture:
    """One test over the models of a study: the estimate with its interval, beside the null."""

    test: str
    lines: Sequence[tuple[str, Markup]]  # the model, and its line
    more: int  # models that have no line here


@final
@dataclass(frozen=True, kw_only=True)
class IndexPage:
    """The first page of a store."""

    lead: LeadAnswer | None
    cards: Mapping[str, CardPicture | None]  # by the file of the study's page
    measures: Sequence[str]
    corpora: Sequence[CorpusOverview]
    studies: Sequence[StudyPage]
    points: int
    version: str
    shard: str  # the script with every number, for the view one arranges
