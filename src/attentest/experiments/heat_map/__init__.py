"""What do other attentions look like on one text?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="heat-map",
    title="Heat maps",
    asks="What do other attentions with the same output look like?",
    cite="jain2019attention",
)
