"""The claims of a study: their rules, their verdicts by corpus and model, and both as files to take away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attentest.figures.listing import listings
from attentest.report.pages import ClaimTable
from attentest.report.verdicts import Judged
from attentest.studies.recipe import Study, WrittenClaim

RULE = ("claim", "statistic", "beside", "supported if", "refuted if", "provided")
HEADINGS = (*RULE, "corpus", "model", "verdict", "because")
NOT_JUDGED = "not judged"


def claim_tables(study: Study, verdicts: Sequence[Judged]) -> list[ClaimTable]:
    """Every claim of the study in its order, also one that nothing in the store is about."""
    rules = {(one.says, one.statistic): one for one in study.claim}
    by_claim: dict[tuple[str, str], list[Judged]] = {claim: [] for claim in rules}
    for one in verdicts:
        by_claim[one.verdict.claim.says, one.verdict.claim.statistic].append(one)
    return [_table(rules[claim], some) for claim, some in by_claim.items()]


def claim_files(study: Study, claims: Sequence[ClaimTable]) -> dict[str, str]:
    """The claims with their verdicts, one a line, in each format; none where the study claims nothing."""
    rows = [row for claim in claims for row in _rows(claim)]
    named = listings(study.title, HEADINGS, rows) if rows else {}
    return {f"study-{study.study}-claims{suffix}": text for suffix, text in named.items()}


def _rows(claim: ClaimTable) -> Iterator[list[str]]:
    rule = [claim.says, claim.statistic, claim.beside, claim.supported_if, claim.refuted_if, claim.provided]
    if not claim.corpora:
        yield [*rule, "", "", NOT_JUDGED, "nothing that it is about is in the store"]
    for corpus, models in claim.corpora.items():
        for model, verdicts in models.items():
            for one in verdicts:
                yield [*rule, corpus, model, one.verdict.verdict, one.verdict.reason]


def _table(claim: WrittenClaim, verdicts: Sequence[Judged]) -> ClaimTable:
    corpora: dict[str, dict[str, list[Judged]]] = {}
    for one in verdicts:
        corpora.setdefault(one.point.corpus, {}).setdefault(one.point.model, []).append(one)
    return ClaimTable(
        says=claim.says,
        statistic=claim.statistic,
        beside=", ".join(f"{axis} {name}" for axis, name in claim.against.items()),
        supported_if=claim.supported_if,
        refuted_if=claim.refuted_if,
        provided=" and ".join(f"{granted}: {rule}" for granted, rule in claim.provided.items()),
        models=list(dict.fromkeys(one.point.model for one in verdicts)),
        corpora=corpora,
        counts=Counter(one.verdict.verdict for one in verdicts),
    )
