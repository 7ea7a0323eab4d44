"""Can a model attend elsewhere and go on using the words it must not attend to?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="deception",
    title="Deception",
    asks="Can a model attend elsewhere and go on using the words it must not attend to?",
    cite="pruthi2020learning",
)
