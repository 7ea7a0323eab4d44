"""The claims of a study: their rules, their verdicts by corpus and model, and both as files to take away."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from markupsafe import Markup

from attentest.charts.forest import ForestLine, strip
from attentest.claims.claims import Claim, over_points
from attentest.compare.listing import listings
from attentest.compare.verdicts import Judged
from attentest.experiments.cards import CARDS
from attentest.gallery.lines import measure_key
from attentest.gallery.pages import ClaimTable, ForestRow
from attentest.studies.recipe import Study, WrittenClaim

RULE = ("claim", "statistic", "beside", "supported if", "refuted if", "provided")
TESTS = ("p", "p_corrected", "p_refutes", "p_refutes_corrected")
HEADINGS = (*RULE, "corpus", "model", "verdict", "because", *TESTS, "claim verdict", "claim because")
NOT_JUDGED = "not judged"
DRAWN = 12  # grid points of a claim in its picture; the table below has all


def claim_tables(study: Study, verdicts: Sequence[Judged]) -> list[ClaimTable]:
    """Every claim of the study in its order, also one that nothing in the store is about."""
    rules: dict[tuple[str, str, str], WrittenClaim] = {
        (one.says, one.statistic, one.mode): one for one in study.claim
    }
    by_claim: dict[tuple[str, str, str], list[Judged]] = {claim: [] for claim in rules}
    for one in verdicts:
        claim = one.verdict.claim
        by_claim[claim.says, claim.statistic, claim.mode].append(one)
    return [_table(rules[key], some) for key, some in by_claim.items()]


def claim_files(study: Study, claims: Sequence[ClaimTable]) -> dict[str, str]:
    """The claims with their verdicts, one a line, in each format; none where the study claims nothing."""
    rows = [row for claim in claims for row in _rows(claim)]
    named = listings(study.title, HEADINGS, rows) if rows else {}
    return {f"study-{study.study}-claims{suffix}": text for suffix, text in named.items()}


def _rows(claim: ClaimTable) -> Iterator[list[str]]:
    rule = [claim.says, claim.statistic, claim.beside, claim.supported_if, claim.refuted_if, claim.provided]
    if not claim.corpora:
        empty = [""] * len(TESTS)
        yield [*rule, "", "", NOT_JUDGED, "nothing that it is about is in the store", *empty, NOT_JUDGED, ""]
    for corpus, models in claim.corpora.items():
        for model, verdicts in models.items():
            for one in verdicts:
                said = one.verdict
                tests = [_written(getattr(said, name)) for name in TESTS]
                yield [*rule, corpus, model, said.verdict, said.reason, *tests, claim.verdict, claim.because]


def _written(p: float) -> str:
    return "" if math.isnan(p) else f"{p:.4g}"


def _table(claim: WrittenClaim, verdicts: Sequence[Judged]) -> ClaimTable:
    corpora: dict[str, dict[str, list[Judged]]] = {}
    for one in verdicts:
        corpora.setdefault(one.point.corpus, {}).setdefault(one.point.model, []).append(one)
    whole = over_points(Claim(**claim.model_dump()), [one.verdict for one in verdicts])
    return ClaimTable(
        says=claim.says,
        statistic=claim.statistic,
        beside=", ".join(f"{axis} {name}" for axis, name in claim.against.items()),
        supported_if=claim.supported_if,
        refuted_if=claim.refuted_if,
        provided=" and ".join(f"{granted}: {rule}" for granted, rule in claim.provided.items()),
        measured=_measured(claim),
        lines=_lines(claim, verdicts[:DRAWN]),
        models=list(dict.fromkeys(one.point.model for one in verdicts)),
        corpora=corpora,
        counts=Counter(one.verdict.verdict for one in verdicts),
        verdict=whole.verdict if verdicts else NOT_JUDGED,
        because=whole.reason if verdicts else "",
    )


def _lines(claim: WrittenClaim, verdicts: Sequence[Judged]) -> list[ForestRow]:
    """The claim's statistic at each grid point with its interval and null, on one scale, and the verdict."""
    measure, _, group = claim.statistic.partition("/")[2].rpartition("/")
    rows = [(one, one.finding.row(measure, group)) for one in verdicts]
    found = [(one, row) for one, row in rows if row is not None and math.isfinite(row["estimate"])]
    names = ("estimate", "low", "high", "null")
    ends = _ends([float(row[name]) for _, row in found for name in names])
    lines = [
        ForestLine(
            label=f"{one.point.corpus.partition('(')[0]}: {one.point.model}",
            **{name: float(row[name]) for name in names},
            range=ends,
            short=one.point.model,
            power=one.verdict.verdict,
        )
        for one, row in found
    ]
    return [ForestRow(line=line, drawn=Markup(strip(line))) for line in lines]


def _measured(claim: WrittenClaim) -> str:
    """The measure's title, and of which texts it is where these are not all."""
    experiment, _, rest = claim.statistic.partition("/")
    measure, _, group = rest.rpartition("/")
    card = CARDS.get(measure_key(experiment, measure))
    return (measure if card is None else card.measure) + ("" if group == "overall" else f", {group}")


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """A scale with zero that holds every number, to the next tenth."""
    known = [0.0, *(value for value in values if math.isfinite(value))]
    return math.floor(10 * min(known)) / 10, max(math.ceil(10 * max(known)) / 10, 0.1)
