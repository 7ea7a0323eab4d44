"""Does attention agree with what moves the output?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="importance",
    title="Agreement with importance",
    asks="Does attention rank words as gradients do, and as leaving words out does?",
    cite="jain2019attention",
    main={"tau-gradient": "τ of attention and gradients", "tau-loo": "τ of attention and leave-one-out"},
)
