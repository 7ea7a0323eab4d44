"""What becomes of the agreement of attention and information in models that were trained otherwise?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="information-ablation",
    title="Information by rank, trained otherwise",
    asks="What becomes of the agreement of attention and information in models that were trained otherwise?",
    cite="wen2022revisiting",
)
