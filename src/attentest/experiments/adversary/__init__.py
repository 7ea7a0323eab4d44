"""Is there another attention, far from the model's own, under which it answers the same?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="adversary",
    title="Adversarial attention",
    asks="Is there another attention, far from the model's own, under which it answers the same?",
    cite="jain2019attention",
    main={"emax-jsd-exact": "furthest attention with the same output (JSD)"},
)
