"""Does another seed move attention as far as an adversary does?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="seed-variance",
    title="Other seeds",
    asks="Does another seed move attention as far as an adversary does?",
    cite="wiegreffe2019attention",
    main={"seed-jsd": "attention of other seeds (JSD)"},
)
