"""Whether a published number and ours may be compared at all, and if so what the rule says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from attentest.compare.equivalence import (
    CANNOT_TELL,
    DIFFERS,
    SCORE_MARGIN,
    SHARE_MARGIN,
    TAU_MARGIN,
    half_width,
    margin_of,
    probability_of_agreeing,
    verdict,
)
from attentest.compare.papers import DATASETS, SIZES, UNKNOWN_ORDER
from attentest.compare.translation import place
from attentest.statistics.moderated import moderated
from attentest.studies.published import PublishedNumber
from attentest.studies.seed_deviations import load_seed_deviations, table_version

LEAST_SEEDS = 3
# Small enough to be trained many times, so more is asked of them.
MORE_SEEDS = {"sst": 5, "20news": 5, "babi-1": 5}
RULE = (
    "A published number counts as one more run. Ours of n seeds is d = ours - published away from it, with"
    " the interval d ± t * s * sqrt(1 + 1/n), where s is the deviation over seeds, moderated towards that of"
    f" the same measure in other cells (table of seed deviations, version {table_version()}; plain where it"
    f" does not have the measure). The margin m is {TAU_MARGIN} for tau, {SCORE_MARGIN} for accuracy, F1 and"
    f" AUC, {SHARE_MARGIN} for shares of significant texts. agrees: the 90 % interval, widened by half the"
    " last printed digit, lies inside (-m, m). differs: the 95 % interval excludes 0 and |d| > m. cannot"
    f" tell: otherwise, and with fewer than {LEAST_SEEDS} seeds, or 5 on {', '.join(MORE_SEEDS)}. Measures"
    " without a margin can differ and never agree. P(agrees if equal) is the probability of agrees if the two"
    " means are equal. Of a number printed in two versions the later one (B) is judged and the earlier (A)"
    " shown. Sizes and counts are listed apart. Other data than the paper's are not comparable, nor are"
    " models trained otherwise than the study says; a number that was recalled, not read, is shown and never"
    " judged."
)

# Commonly had as samples. A store that holds as many training texts as the paper did shows otherwise.
SAMPLES = {"snli", "babi-3", "yahoo", "yelp", "amazon"}
ENOUGH = 0.5  # of the paper's training texts: our own filters never leave out as many
STAND_INS = {dataset.stand_in for dataset in DATASETS.values() if dataset.stand_in}
STAND_INS |= {"imdb-ratings"}  # for the IMDB of ten ratings, which is another collection

# Percentages, which are printed to one decimal where shares have two or more.
ONE_DECIMAL = {"pct_both_flip", "pct_only_top_flips", "pct_only_random_flips", "pct_neither_flips"}

# Printed, but not what the files hold (A27): 8, 67 and 421 tokens where there are 37, 95 and 302.
MISPRINTED = {("avg_length_tokens", corpus) for corpus in ("babi-1", "babi-2", "babi-3")}

# Settings that no corpus's family brings: a model that has one was made for a study that asks for it.
ASKED_FOR = ("epoch_steps", "attention_rate", "attention_rates", "attention_start", "attention_starts")

NOT_CHECKED = "the published number was recalled and not checked against the paper"


@final
@dataclass(frozen=True)
class Judgement:
    """What is said of one pair of numbers, and why; the numbers are None where the rule was not asked."""

    agrees: str
    why: str = ""
    difference: float | None = None  # ours - published
    margin: float | None = None
    moderated_std: float | None = None
    freedom: float | None = None  # of the t distribution; None where infinite, too
    p_agrees_if_equal: float | None = None


def judge(
    number: PublishedNumber, statistic: str, corpus: str, ours: float, seed_std: float, seeds: int
) -> Judgement:
    """Agrees, differs or cannot tell, for a number that may be compared."""
    difference, margin = ours - number.value, margin_of(statistic)
    needed = MORE_SEEDS.get(corpus, LEAST_SEEDS)
    lacking = ""
    if seeds < needed:
        lacking = f"{seeds} seed{'s' * (seeds != 1)}; needs {needed}"
    elif not math.isfinite(seed_std):
        lacking = "the spread over seeds is not known"
    if lacking:  # the rule never says agrees here, so its probability is 0
        return Judgement(CANNOT_TELL, lacking, difference, margin, p_agrees_if_equal=0.0)
    deviation = moderated(seed_std, seeds, load_seed_deviations().get(statistic))
    rounding = 0.05 if number["measure"] in ONE_DECIMAL else number.rounding
    said = verdict(difference, deviation, seeds, margin, rounding)
    level = 0.95 if margin is None or said == DIFFERS else 0.90  # of the interval that decided
    half = float(half_width(*deviation, seeds, level))
    why = (
        f"ours - published {difference:+.3f}, {round(100 * level)} % interval"
        f" {difference - half:.3f} to {difference + half:.3f},"
    )
    return Judgement(
        said,
        f"{why} no margin, so it cannot agree" if margin is None else f"{why} margin {margin}",
        difference,
        margin,
        deviation.value,
        deviation.freedom if math.isfinite(deviation.freedom) else None,
        float(probability_of_agreeing(*deviation, seeds, margin, rounding)),
    )


def judge_size(number: PublishedNumber, corpus: str, ours: float) -> Judgement:
    """A size is counted, not estimated: rounded as it was printed it is the same, or it differs."""
    if (number["measure"], corpus) in MISPRINTED:
        return Judgement("not comparable", "the printed length is not that of the published files (A27)")
    difference = round(ours, SIZES[number["measure"]]) - number.value
    if difference == 0:
        return Judgement("same", difference=0.0)
    return Judgement("differs", f"by {abs(difference):,.10g}", difference)


def is_recalled(number: PublishedNumber) -> bool:
    """Whether the number was written down from memory."""
    return "recalled" in number.source


def barred(
    number: PublishedNumber, corpus: str, texts: int | None, published_texts: int | None
) -> Judgement | None:
    """What is said instead of judging, where a pair must not be judged."""
    why = incomparable(number, corpus, texts, published_texts)
    if is_recalled(number):
        return Judgement("recalled", "; ".join(filter(None, [NOT_CHECKED, why])))
    return Judgement("not comparable", why) if why else None


def incomparable(number: PublishedNumber, corpus: str, texts: int | None, published_texts: int | None) -> str:
    """Why the pair must not be judged; empty where it may. The texts are those trained on, where known."""
    reasons = []
    if corpus in STAND_INS:
        reasons.append(f"{corpus} stands in for the paper's data")
    elif texts is None or published_texts is None:
        if corpus in SAMPLES:
            reasons.append(f"{corpus} may be a sample: the store does not say how many texts were trained on")
    elif texts < ENOUGH * published_texts:
        reasons.append(f"a sample: {texts:,} training texts of the paper's {published_texts:,}")
    if place(number) in UNKNOWN_ORDER and number["class"] not in ("", "Overall"):
        reasons.append("the order of the classes in this version of the table is not known (A20)")
    return "; ".join(reasons)


def made_otherwise(prescribed: Mapping[str, Any], settings: Mapping[str, Any]) -> Judgement | None:
    """What is said of a model that was not trained as the study trains its models; another study's is shown.

    Vectors are everybody's own, and every row names them. A study that prescribes nothing has the protocol.
    """
    asked = {**dict.fromkeys(ASKED_FOR), **prescribed}
    other = [
        f"{name} {settings.get(name, 'by default')} where the study has {'none' if value is None else value}"
        for name, value in asked.items()
        if name != "vectors" and settings.get(name) != value
    ]
    return Judgement("not comparable", f"trained otherwise: {', '.join(other)}") if other else None
