"""Do the words that get more attention tell more about the output?"""

from __future__ import annotations

from attentest.experiments.description import Description

ABOUT = Description(
    name="information",
    title="Information by rank",
    asks="Do the words that get more attention tell more about the output?",
    cite="wen2022revisiting",
    main={"tau": "τ of attention and information by rank"},
    setting="rank",
)
