"""Does attention agree with what moves the output?"""

from __future__ import annotations

from attentest.evidence.importances.names import WITH_NULLS, further
from attentest.experiments.description import Description

ALSO = further(WITH_NULLS)  # what may be asked beside those that have nulls
ABOUT = Description(
    name="importance",
    title="Agreement with importance",
    asks="Does attention rank words as gradients do, and as leaving words out does?",
    cite="jain2019attention",
    main={"tau-gradient": "τ of attention and gradients", "tau-loo": "τ of attention and leave-one-out"},
)
