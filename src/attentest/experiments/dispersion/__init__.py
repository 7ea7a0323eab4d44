"""Is a hidden state about one word, and does attention rank states or words?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="dispersion",
    title="Dispersion of influence",
    asks="Is a hidden state about one word, and does attention rank states or words?",
    cite="meister2021sparse",
)
