"""What can be said of a claim or a criterion: one vocabulary, one way to decide, two ways to combine.

Claims of papers are refuted where findings speak against them; criteria of an audit are not supported, since
too small an effect refutes nothing. Otherwise both are judged alike.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import final


@final
class Verdict(StrEnum):
    """One word, spelled as it is stored."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not supported"
    REFUTED = "refuted"
    MIXED = "mixed"  # supported at some grid points and refuted at others
    UNDECIDED = "undecided"
    NOT_MEASURED = "not measured"  # the budget left it out, or there was nothing to measure it with
    NOT_APPLICABLE = "not applicable"  # this model does not allow it
    NOT_JUDGED = "not judged"  # its tests have no shown power, for any model or for this kind

    def __repr__(self) -> str:
        """As the word alone, which is what has always been written."""
        return repr(self.value)


def decided(speaks_for: bool, speaks_against: bool, *, against: Verdict = Verdict.NOT_SUPPORTED) -> Verdict:
    """Supported, or `against`, where one side is shown; undecided where neither is, or both are."""
    if speaks_for == speaks_against:
        return Verdict.UNDECIDED
    return Verdict.SUPPORTED if speaks_for else against


def over_counts(supported: int, refuted: int, points: int) -> Verdict:
    """Of grid points: one side if at least half of them are decided, and all of those so."""
    if supported and refuted:
        return Verdict.MIXED
    enough = supported + refuted > 0 and 2 * (supported + refuted) >= points
    return decided(enough and supported > 0, enough and refuted > 0, against=Verdict.REFUTED)


def over_tests(verdicts: Collection[Verdict]) -> Verdict:
    """Of the tests that a criterion rests on: not supported if one is not, supported if all are."""
    different = set(verdicts)
    if Verdict.NOT_SUPPORTED in different:
        return Verdict.NOT_SUPPORTED
    if len(different) == 1:
        return different.pop()
    if different == {Verdict.NOT_MEASURED, Verdict.NOT_APPLICABLE}:
        return Verdict.NOT_MEASURED
    return Verdict.NOT_JUDGED if Verdict.NOT_JUDGED in different else Verdict.UNDECIDED
