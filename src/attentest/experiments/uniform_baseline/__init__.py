"""Does the task need attention at all?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="uniform-baseline",
    title="Uniform attention",
    asks="Does the task need attention at all?",
    cite="wiegreffe2019attention",
    main={"f1-lost": "F1 lost with uniform attention"},
)
