"""Does the item with the largest weight matter more than any other?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="single-weight",
    title="One weight removed",
    asks="Does the largest weight matter more than another?",
    cite="serrano2019attention",
)
