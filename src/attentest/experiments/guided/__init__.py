"""Are a model's weights good for anything outside the model?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="guided",
    title="Guided by others' weights",
    asks="Are the model's weights good for anything outside the model?",
    cite="wiegreffe2019attention",
)
