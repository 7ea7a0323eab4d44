"""Does sparser attention make importance sparser, and does it come to agree with it?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="sparsity",
    title="Sparser and sparser attention",
    asks="Does sparsity make importance sparser, or attention a better account of it?",
    cite="meister2021sparse",
)
