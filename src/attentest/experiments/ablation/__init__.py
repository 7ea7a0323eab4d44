"""How far does each output move under weights that attention did not choose?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="ablation",
    title="Weights that attention did not choose",
    asks="What becomes of the output under uniform weights, and under the own ones in another order?",
    cite="jain2019attention",
)
