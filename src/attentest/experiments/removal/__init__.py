"""How many items must go before the decision flips?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="removal",
    title="Weights removed until the decision flips",
    asks="Does attention know what decides?",
    cite="serrano2019attention",
    main={"fraction-attention": "share of items removed by attention until the decision flips"},
    setting="share removed",
)
