"""Does it matter whether attention was learnt, or would a bag of words' do?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="log-odds",
    title="Log-odds attention",
    asks="Does it matter whether attention was learnt?",
    cite="jain2019attention",
)
