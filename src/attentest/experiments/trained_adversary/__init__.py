"""Can a whole model be trained to answer the same while it attends elsewhere?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="trained-adversary",
    title="Trained adversaries",
    asks="Can a whole model be trained to answer the same while it attends elsewhere?",
    cite="wiegreffe2019attention",
)
