"""How much does the agreement of attention and information depend on what the paper leaves open?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="information-sensitivity",
    title="Information by rank, measured otherwise",
    asks="How much does the agreement of attention and information depend on what the paper leaves open?",
    cite="wen2022revisiting",
)
