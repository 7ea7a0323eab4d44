"""What a store says to someone who has read none of the papers: one sentence, and one line for each test.

The sentence restates the verdicts of the criteria (`claims.criteria`), which rest on margins from models
whose truth is known. The adversary has no such margin: what is said of it is where its interval lies.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import pandas as pd

from attentest.charts.forest import ForestLine
from attentest.claims.calibrated import calibrated_tests, error_rates
from attentest.claims.criteria import CRITERIA, judged
from attentest.claims.verdict import Verdict, decided
from attentest.compare.points import GridPoint
from attentest.experiments.cards import CARDS
from attentest.gallery.lines import measure_key

WITHOUT_CONTEXT = ("average", "mlp", "identity")  # encoders of which no state depends on another word
LARGEST = math.log(2)  # what the Jensen-Shannon divergence can be
OTHER = "emax-jsd-exact"


@final
@dataclass(frozen=True, kw_only=True)
class PlainTest:
    """A test in words that need no paper, and the question that its power is about."""

    name: str  # experiment/measure; a tolerance is filled in
    words: str
    short: str  # for a terminal
    question: str
    range: tuple[float, float] | None = None  # where the card's own has no ends


TESTS = (
    PlainTest(
        name="importance/tau-gradient",
        words="Attention ranks words as the gradient does (Kendall's tau)",
        short="ranks words as the gradient (tau)",
        question="pointer",
    ),
    PlainTest(
        name="importance/tau-loo",
        words="Attention ranks words as leaving each one out does (Kendall's tau)",
        short="ranks words as leave-one-out",
        question="pointer",
    ),
    PlainTest(
        name="permutation/median-output-change",
        words="The answer moves when weights are shuffled among the words",
        short="weights shuffled: answer moves by",
        question="mechanism",
    ),
    PlainTest(
        name="ablation/uniform-output-change",
        words="The answer moves when every word weighs the same",
        short="equal weights: answer moves by",
        question="mechanism",
    ),
    PlainTest(
        name=f"adversary/{OTHER}@{{tolerance:g}}",
        words="How different an attention can be that gives the same answer (JSD)",
        short="same answer, other attention by",
        question="mechanism",
        range=(0.0, LARGEST),
    ),
    PlainTest(
        name="removal/fraction-attention",
        words="Share of words to remove, by attention, until the answer flips",
        short="words to remove until it flips",
        question="pointer",
    ),
)


def forest_lines(point: GridPoint) -> list[ForestLine]:
    """A line for each of the plain tests that this model has a number for."""
    found = [_line(point, test) for test in TESTS]
    return [line for line in found if line is not None]


def _line(point: GridPoint, test: PlainTest) -> ForestLine | None:
    experiment, _, measure = test.name.format(tolerance=point.tolerance).partition("/")
    finding = point.of(experiment)
    row = None if finding is None else finding.row(measure, "overall")
    card = CARDS.get(measure_key(experiment, measure))
    if row is None or card is None or not math.isfinite(row["estimate"]):
        return None
    known = calibrated_tests().get(f"{experiment}/{measure}")
    separation = None if known is None else getattr(known, test.question)
    return ForestLine(
        label=test.words,
        short=test.short,
        **{name: float(row[name]) for name in ("estimate", "low", "high", "null")},
        range=test.range or card.range,
        power=power(f"{experiment}/{measure}", test.question, _kind(point)),
        auc=math.nan if separation is None else separation.auc,
    )


def power(name: str, question: str, kind: str) -> str:
    """How well a test tells models apart whose truth is known; says so where nobody knows.

    Where the test has a margin and errs rarely for this kind of model: how often. Else the area under its
    ROC curve over all kinds.
    """
    of = next((each.name for each in CRITERIA if name in (t.name for t in each.tests if not t.shown)), "")
    rates = error_rates(of, kind)
    if rates is not None and rates.judged and math.isfinite(rates.power):
        wrong = rates.false_support
        said = "" if math.isnan(wrong) else f"false positives {wrong:.0%}, "
        return f"{said}power {rates.power:.0%}"
    test = calibrated_tests().get(name)
    separation = None if test is None else getattr(test, question)
    if separation is None:
        return "not calibrated"
    return f"AUC {separation.auc:.2f} ({separation.low:.2f} to {separation.high:.2f})"


def _kind(point: GridPoint) -> str:
    """The kind of model, as the tables of calibration name it."""
    return "without context" if point.axes["encoder"] in WITHOUT_CONTEXT else "contextual"


def answer(points: Sequence[GridPoint]) -> str:
    """One sentence without its subject: what the tests say of these models; empty where none does."""
    said = [_verdicts(point) for point in points]
    clauses = [
        _counted([one.get(part) for one in said], words)
        for part, words in (("agrees with importances", POINTS), ("used", USED), ("other", DIFFERENT))
    ]
    return "; ".join(clause for clause in clauses if clause)


# What each verdict says of one model, and of several: the number is filled in.
POINTS = {
    Verdict.SUPPORTED: "attention ranks words by their importance for the answer",
    Verdict.NOT_SUPPORTED: "attention does not rank words by their importance for the answer",
    Verdict.UNDECIDED: "whether attention ranks words by their importance is undecided",
}
USED = {
    Verdict.SUPPORTED: "other weights on the same words change the answer",
    Verdict.NOT_SUPPORTED: "other weights on the same words hardly change the answer",
    Verdict.UNDECIDED: "whether other weights change the answer is undecided",
}
DIFFERENT = {
    Verdict.SUPPORTED: "very different weights can give the same answer (this test has no calibrated margin)",
    Verdict.NOT_SUPPORTED: "only similar weights give the same answer",
    Verdict.UNDECIDED: "how different weights with the same answer can be is undecided",
}


def _counted(verdicts: Sequence[Verdict | None], words: Mapping[Verdict, str]) -> str:
    """The clause that holds for most models, and for how many; those that were not asked are left out."""
    known = Counter(verdict for verdict in verdicts if verdict is not None and verdict in words)
    if not known:
        return ""
    verdict, n = known.most_common(1)[0]
    total = sum(known.values())
    return words[verdict] + ("" if n == total else f" (in {n} of {total} models)")


def _verdicts(point: GridPoint) -> dict[str, Verdict | None]:
    """The verdict on each of the three parts of the sentence."""
    kind = _kind(point)
    wanted = (point.of(name) for name in ("importance", "permutation", "ablation"))
    tables = [finding.table for finding in wanted if finding is not None]
    judgements = judged(pd.concat(tables), kind=kind) if tables else []
    return {one.criterion.name: one.verdict for one in judgements} | {"other": _other(point)}


def _other(point: GridPoint) -> Verdict | None:
    """Whether the furthest attention with the same answer is over half as far as one can be."""
    finding = point.of("adversary")
    row = None if finding is None else finding.row(f"{OTHER}@{point.tolerance:g}", "overall")
    if row is None or not math.isfinite(row["low"]):
        return None
    half = LARGEST / 2
    return decided(bool(row["low"] > half), bool(row["high"] < half))
