"""How many words are there?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="word-count", title="Word count", asks="How long are the texts?", cite="jain2019attention"
)
