"""From a published number to the place where ours would be, by the tables of its paper's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from attentest.compare.papers import EARLIER_VERSIONS, JAIN_WALLACE, ORDERS, PAPERS, Dataset, Measure, Paper
from attentest.studies.published import PublishedNumber


@final
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What of ours a published number is to be laid beside. An empty label means all texts."""

    corpus: str
    stand_in: str | None
    encoder: str
    attention: str
    projection: str
    statistic: str  # experiment/measure, or one of SIZES
    label: str
    named: str = ""  # the finding's group, where it is not the label's
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the experiment, where they matter

    @property
    def experiment(self) -> str:
        """The experiment that measures it."""
        return self.statistic.partition("/")[0]

    @property
    def measure(self) -> str:
        """The measure's name within the experiment."""
        return self.statistic.partition("/")[2]

    @property
    def group(self) -> str:
        """The finding's group: one that is named, or a class, which in tables is the predicted one (A21)."""
        return self.named or (f"predicted={self.label}" if self.label else "overall")


def wanted(number: PublishedNumber) -> Wanted:
    """The published number's place in our words."""
    words = _words(number)
    dataset = words.datasets.get(number["dataset"], Dataset(number["dataset"]))
    measure = words.measures.get(number["measure"], number["measure"])
    if isinstance(measure, str):
        measure = Measure(measure, group=dataset.text)
    by = " ".join(number[column] for column in measure.by.split())
    named = words.groups.get(by, by) if by else measure.group
    return Wanted(
        corpus=dataset.corpus,
        stand_in=dataset.stand_in,
        encoder=words.encoders.get(number["model"], number["model"]),
        attention=words.attentions.get(number["attention"], number["attention"]),
        projection=words.projections.get(number["projection"], number["projection"]),
        statistic=measure.statistic,
        label=_label(number, dataset),
        named=named,
        parameters=words.parameters.get(named, {}),
    )


def is_result(number: PublishedNumber) -> bool:
    """Whether it was measured, and is no setting of an experiment."""
    return not {number["table"], number["measure"]} & set(_words(number).settings)


def place(number: PublishedNumber) -> tuple[str, str, str]:
    """Which data set of which table the number is from."""
    return number["paper"], number["table"], number["dataset"]


def printed_once(
    numbers: Sequence[PublishedNumber],
) -> list[tuple[PublishedNumber, PublishedNumber | None]]:
    """Each number once; of one printed in two versions the later, with the earlier beside it."""
    earlier = {_in_table(number, number["table"]): number for number in numbers}
    beside = {}
    for number in numbers:
        table = EARLIER_VERSIONS.get((number["paper"], number["table"]))
        if table is not None and _in_table(number, table) in earlier:
            beside[id(number)] = earlier[_in_table(number, table)]
    shown = {id(number) for number in beside.values()}
    return [(number, beside.get(id(number))) for number in numbers if id(number) not in shown]


def _in_table(number: PublishedNumber, table: str) -> tuple[str, ...]:
    return tuple((number.words | {"table": table}).values())


def _words(number: PublishedNumber) -> Paper:
    """Its paper's words; a paper that is not here is taken to speak as the first of the debate did."""
    return PAPERS.get(number["paper"], JAIN_WALLACE)


def _label(number: PublishedNumber, dataset: Dataset) -> str:
    said = number["class"]
    labels = ORDERS.get(place(number), dataset.labels)
    if said in ("", "Overall") or dataset.text:
        return ""
    return labels[int(said)] if said in map(str, range(len(labels))) else said
