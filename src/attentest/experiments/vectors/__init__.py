"""How much of what attention shows comes from the word vectors that training starts from?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="vectors",
    title="Word vectors",
    asks="How much of what attention shows comes from the word vectors that training starts from?",
    cite="jain2019attention",
)
