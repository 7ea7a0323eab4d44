"""Estimates alone: conclude without intervals and nulls, and over all texts only.

What one seed says by itself is wanted of every model on every page; a thousand resamples of it are not, nor
shuffles that only a null is made of: they would take most of the time. Neither the twenty conclude functions
nor what they call should have to hand such a wish down, so it is a setting of the computation around them, as
decimal contexts are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

OVERALL = "overall"  # the group of all texts
_alone = ContextVar("estimates alone", default=False)
_every_group = ContextVar("every group", default=True)


@contextmanager
def estimates_alone(*, every_group: bool = False) -> Iterator[None]:
    """Within it intervals and drawn nulls are NaN; unless `every_group`, only all texts are a group."""
    before, groups = _alone.set(True), _every_group.set(every_group)
    try:
        yield
    finally:
        _alone.reset(before)
        _every_group.reset(groups)


def intervals_asked() -> bool:
    """Whether anybody will look at an interval."""
    return not _alone.get()


def nulls_asked() -> bool:
    """Whether anybody will look at what an estimate would be by luck."""
    return not _alone.get()


def group_asked(group: str) -> bool:
    """Whether anybody will look at the group."""
    return group == OVERALL or _every_group.get()
