"""Can attention move while all else stays, or must the information move with it?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="frozen-adversary",
    title="Adversaries, frozen and not",
    asks="Can attention move while all else stays, or must the information move with it?",
    cite="meister2021sparse",
)
