"""The tests of an audit in words: a title, and a clause with the number in a unit a reader can picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from attentest.claims.judgement import Answer

Form = Literal["plain", "points", "percent"]
TWIN = "the same model before training"


@final
@dataclass(frozen=True, kw_only=True)
class NumberInWords:
    """The title of a test, how its number reads in a sentence, and what its null is."""

    title: str
    reads: str  # with {size}, and {more} where the sign is a word
    null: str  # what the finding is compared with
    form: Form = "plain"
    more: tuple[str, str] = ("more", "less")  # where the effect is positive, and where it is negative

    def said(self, answer: Answer) -> str:
        """The number of an answer in words."""
        value = abs(answer.estimate) if "{more}" in self.reads else answer.estimate
        size = f"{value:.2f}" if self.form == "plain" else _hundredths(value)
        return self.reads.format(size=size, more=self.more[answer.effect < 0])


def _hundredths(value: float) -> str:
    """Points of a hundred: none after the point from 10 on, so that nobody reads more than there is."""
    return f"{100 * value:.0f}" if abs(value) >= 0.0995 else f"{100 * value:.1f}"


IN_WORDS: dict[str, NumberInWords] = {
    "importance/tau-gradient": NumberInWords(
        title="Rank correlation of attention with gradient importance",
        reads="attention's rank correlation with gradient importance is {size} (0: unrelated, 1: the same"
        " order)",
        null="the same correlation under weights that do not belong to these words",
    ),
    "importance/tau-gradient-excess": NumberInWords(
        title="Rank correlation with gradient importance, beyond weights that do not belong to the words",
        reads="attention's rank correlation with gradient importance is {size} {more} that of weights that do"
        " not belong to these words",
        null="weights that do not belong to these words",
        more=("above", "below"),
    ),
    "importance/tau-loo": NumberInWords(
        title="Rank correlation of attention with leave-one-out",
        reads="attention's rank correlation with leave-one-out is {size} (0: unrelated, 1: the same order)",
        null="the same correlation under weights that do not belong to these words",
    ),
    "importance/tau-loo-excess": NumberInWords(
        title="Rank correlation with leave-one-out, beyond weights that do not belong to the words",
        reads="attention's rank correlation with leave-one-out is {size} {more} that of weights that do not"
        " belong to these words",
        null="weights that do not belong to these words",
        more=("above", "below"),
    ),
    "erasure/comprehensiveness-excess": NumberInWords(
        title="Fall of the answer's probability without the most attended words, beyond random words",
        reads="without the most attended words the probability of the answer falls by {size} points {more}"
        " than without as many random words",
        null="without as many random words",
        form="points",
    ),
    "erasure/sufficiency-excess": NumberInWords(
        title="Fall of the answer's probability with the most attended words alone, beyond random words",
        reads="alone the most attended words keep {size} points {more} of the answer's probability than as"
        " many random words",
        null="as many random words",
        form="points",
    ),
    "plausibility/auprc-excess": NumberInWords(
        title="How well attention finds the words that people marked, beyond random weights",
        reads="attention finds the marked words with an average precision {size} {more} that of random"
        " weights",
        null="random weights",
        more=("above", "below"),
    ),
    "information/tau": NumberInWords(
        title="Rank correlation of attention with information about the output",
        reads="the rank correlation of attention and information about the output is {size}",
        null="words in a random order",
    ),
    "permutation/median-output-change": NumberInWords(
        title="Output change under permuted attention weights",
        reads="permuting the weights moves {size} % of the probability to other answers",
        null=TWIN,
        form="percent",
    ),
    "ablation/uniform-output-change": NumberInWords(
        title="Output change under equal attention weights",
        reads="equal weights move {size} % of the probability to other answers",
        null=TWIN,
        form="percent",
    ),
    "adversary/emax-jsd-exact-excess@0.01": NumberInWords(
        title="How different attention with the same output can be, beyond that of permuted weights",
        reads="the most different attention of the same output is {size} {more} from it than if the weights"
        " were permuted (Jensen-Shannon divergence, at most 0.69)",
        null="permuted weights",
        more=("less far", "farther"),
    ),
}
