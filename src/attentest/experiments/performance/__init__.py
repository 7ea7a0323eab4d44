"""How well does it predict?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="performance",
    title="Performance",
    asks="How well does the model do its task?",
    cite="jain2019attention",
    main={"accuracy": "accuracy"},
)
