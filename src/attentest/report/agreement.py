"""Whether a published number and ours may be compared at all, and if so whether they agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import stdtrit

from attentest.report.papers import DATASETS, SIZES, UNKNOWN_ORDER
from attentest.report.translation import place
from attentest.studies.published import PublishedNumber

LEAST_SEEDS = 3
# Small enough to be trained many times, so more is asked of them.
MORE_SEEDS = {"sst": 5, "20news": 5, "babi-1": 5}
RULE = (
    "A published number is one run, so ours of n seeds agrees with it if |ours - published| <="
    " t(.975, n-1) * seed_std * sqrt(1 + 1/n) + half a unit of the last printed digit (.005 for two"
    f" decimals). Fewer than {LEAST_SEEDS} seeds, or 5 on {', '.join(MORE_SEEDS)}, leave it undecided;"
    " other data than the paper's are not comparable, nor are models trained otherwise than the study says,"
    " and a number that was recalled, not read, is shown and never judged."
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


@dataclass(frozen=True)
class Judgement:
    """What is said of one pair of numbers, and why where it needs a reason."""

    agrees: str
    why: str = ""


def allowance(seed_std: float, seeds: int, rounding: float) -> float:
    """How far another single run may lie from the mean of these, 19 times of 20, and then be rounded.

    The half digit matters where all seeds agree: an accuracy of 0.998 is printed as 1.00.
    """
    return float(stdtrit(seeds - 1, 0.975)) * seed_std * math.sqrt(1 + 1 / seeds) + rounding


def judge(number: PublishedNumber, corpus: str, ours: float, seed_std: float, seeds: int) -> Judgement:
    """Agrees, disagrees or undecided, for a number that may be compared."""
    needed = MORE_SEEDS.get(corpus, LEAST_SEEDS)
    if seeds < needed:
        return Judgement("undecided", f"{seeds} seed{'s' * (seeds != 1)}; needs {needed}")
    if not math.isfinite(seed_std):
        return Judgement("undecided", "the spread over seeds is not known")
    rounding = 0.05 if number["measure"] in ONE_DECIMAL else number.rounding
    allowed = allowance(seed_std, seeds, rounding)
    apart = abs(ours - number.value)
    # Decimals have no exact floats: 0.345 - 0.34 is a little more than 0.005.
    agrees = apart <= allowed or math.isclose(apart, allowed, rel_tol=1e-9, abs_tol=1e-12)
    return Judgement("agrees" if agrees else "disagrees", f"{apart:.3f} apart, {allowed:.3f} allowed")


def judge_size(number: PublishedNumber, corpus: str, ours: float) -> Judgement:
    """A size is counted, not estimated: rounded as it was printed it is the same, or it differs."""
    if (number["measure"], corpus) in MISPRINTED:
        return Judgement("not comparable", "the printed length is not that of the published files (A27)")
    apart = abs(round(ours, SIZES[number["measure"]]) - number.value)
    return Judgement("agrees" if apart == 0 else f"differs by {apart:,.10g}")


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
