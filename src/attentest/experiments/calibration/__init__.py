"""How often is each test right? Audits of models whose truth is known, by construction or by brute force.

Two questions have a known answer for every construction: does attention *point* at the words that the output
comes from, and is it a *mechanism*, so that the output depends on the weights? An audit of such a model is
one draw: other texts, other random numbers. What its tests say is held against the answer.

The margins of an audit's criteria come from here. Two constructions of each quadrant set them. The margin of
a test lies in the middle between the smallest hundredth that keeps false supports within the bar and the
largest that keeps power within it, for these constructions; if the first is above the second, it is the
first. The bar: at most 15 of 200 audits supported where the answer is no, at least 180 where it is yes. All
constructions must meet it; for a kind of model where one does not, the criterion is shown and not judged.

The first rule, committed before the first run, put the margin into the middle between the mean effects of
yes and no. It gave away power where the answer no has no effect at all. The second, the smallest margin that
keeps false supports within the bar, was too small for other constructions. Both saw the first run. So the
constructions in `FRESH` were made afterwards, and nobody looked at them until margins and criteria were
fixed.
"""

from __future__ import annotations

from typing import Literal

from attentest.experiments.description import Description
from attentest.model.constructions import DEPENDS, POINTS

NAME = "calibration"
Question = Literal["pointer", "mechanism"]
QUESTIONS: tuple[Question, ...] = ("pointer", "mechanism")

# The columns of a row: one test of one audit. `id` is experiment/measure of the audit's finding.
NUMBERS = ("estimate", "error", "freedom", "null", "n")
TRUTH = ("points", "depends")  # tau of weights and contributions; change of output at the corners
COLUMNS = ("seed", "subject", "id", *NUMBERS, *TRUTH)

# Which constructions set the margins, two of each quadrant; all others confirm. Fixed before the first run.
SETTING = frozenset(
    {
        *("graded", "selector"),  # points, and the output depends on it
        *("random-loud", "random-word"),  # the output depends on it
        *("idle-sum", "idle-blind"),  # points
        *("idle-random-word", "idle-uniform"),  # neither
    }
)
FRESH = frozenset({"sharp", "random-alike", "random-places", "idle-every", "idle-norm"})
AUDITS = 200  # of each construction, at the reference knobs
FALSE_SUPPORTS = 15  # at most: more would be significantly above 5 %
TRUE_SUPPORTS = 180  # at least, where the answer is yes

# What a model is called by its two numbers; a trained one may lie between, where the answer is not known.
NO_POINTER, NO_MECHANISM = 0.5, 0.05  # below


def labels(points: float, depends: float) -> dict[Question, bool | None]:
    """The known answer to each question, or None where a number lies between no and yes."""
    return {
        "pointer": _answer(points, NO_POINTER, POINTS),
        "mechanism": _answer(depends, NO_MECHANISM, DEPENDS),
    }


def _answer(number: float, no: float, yes: float) -> bool | None:
    return True if number >= yes else False if number < no else None


ABOUT = Description(
    name="calibration",
    title="Calibration",
    asks="What do the tests say of a model whose truth is known?",
    cite="jacovi2020towards",
)
