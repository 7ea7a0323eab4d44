"""Can somebody who hears a few words of a text say what the classifier said?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="communication",
    title="Communication",
    asks="Can somebody who hears a few words say what the classifier said?",
    cite="treviso2020explanation",
    setting="words sent",
)
