"""What becomes of tau where a model was trained otherwise? Wen et al. (2022), WE-2 to WE-4.

Every sibling is set beside the normal model of its own seed. Fixing representations or attention asks which
of the two makes the order (WE-2), an adversary whether attention that was moved elsewhere still orders its
own states (WE-3), Gumbel-softmax whether more skewed attention orders them better (WE-4).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd

from attentest.experiments.description import Conclusion
from attentest.experiments.information_ablation import ABOUT
from attentest.experiments.information_ablation.cards import CARDS
from attentest.experiments.performance import conclude as performance
from attentest.experiments.shared import orders
from attentest.experiments.shared.numbered import numbered
from attentest.experiments.shared.orders import TRAINED, Orders, group_of, lost, pairs, sign_test
from attentest.experiments.shared.variants import scored
from attentest.experiments.trained_adversary.conclude import LAMBDA
from attentest.statistics.estimates import OVERALL, group_asked
from attentest.statistics.flatness import Flatness, flatness_finding
from attentest.statistics.group_means import CONTROLS, Group, Means, Measure, reasons
from attentest.statistics.of_models import of_models
from attentest.statistics.record import Finding, ordered

EXPERIMENT = "information-ablation"
COLUMNS = tuple(dict.fromkeys((*orders.COLUMNS, *performance.COLUMNS, "jsd", "tvd")))
FIX_REP = "fix rep"  # the papers' words for both
# What "fixed" means is open (A11): as it was initialised, as the normal model has it, or anything.
FIX_ATTN, FIX_ATTN_STORED, FIX_ATTN_RANDOM = "fix attn", "fix attn, stored", "fix attn, random"
GUMBEL, TEMPERED = "gumbel ", "softmax at "  # how the names of both begin, before their temperature
SCORES = ("f1", "accuracy")
NOT_A_NUMBER = "attention or output is not a number"
ABSENT = "the model has no text that is long enough"
UNDEFINED = "the measure is undefined for the model"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Of the normal model (overall), every sibling and every control: tau, scores, how flat attention is.

    Of all but the normal one also what they lose of its tau, and how far they are from it, text by text.
    """
    rows = ordered(rows, COLUMNS)
    if (rows["subject"] != TRAINED).all():
        return []
    subjects = [name for name in (TRAINED, *_siblings(rows)) if group_asked(group_of(name))]
    known = orders.orders(rows, rng)
    found = []
    for subject in subjects:
        about = {"experiment": EXPERIMENT, "group": group_of(subject), "mode": mode}
        of_subject = [order.measured for order in known[subject].values()]
        found += of_models(of_subject, absent=ABSENT, **about)
        if subject != TRAINED:
            found += _compared(known, subject, rng, about)
    groups: list[Group] = [(group_of(name), rows[rows["subject"] == name]) for name in subjects]
    means = Means(experiment=EXPERIMENT, rows=rows, mode=mode, rng=rng)
    flat = flatness_finding(
        [*_flatness(rows, known)], rng=rng, experiment=EXPERIMENT, group=OVERALL, mode=mode
    )
    return [*found, *means.of([*_texts(rows)], groups), *_scores(rows, subjects, mode, rng), flat]


def _siblings(rows: pd.DataFrame) -> list[str]:
    """In the order of the paper's tables; adversaries and temperatures by their numbers, controls last."""
    there = set(rows["subject"]) - {TRAINED}
    fixed = (FIX_REP, FIX_ATTN, FIX_ATTN_STORED, FIX_ATTN_RANDOM)
    swept = [name for kind in (LAMBDA, GUMBEL, TEMPERED) for name in numbered(there, kind)]
    return [name for name in (*fixed, *swept, *CONTROLS) if name in there]


def _compared(
    known: Orders, subject: str, rng: np.random.Generator, about: dict[str, str]
) -> Iterator[Finding]:
    both = pairs(known, TRAINED, subject)
    yield from of_models([lost(normal, other) for normal, other in both], absent=UNDEFINED, **about)
    yield sign_test([(normal.tau - other.tau, other.texts) for normal, other in both], **about)


def _texts(rows: pd.DataFrame) -> Iterator[Measure]:
    """Means over texts: how flat attention is, and how far a sibling is from the normal model."""
    why = reasons(rows, NOT_A_NUMBER)
    flat, largest, jsd, tvd = (
        rows[name].astype(np.float64) for name in ("entropy", "max_attention", "jsd", "tvd")
    )
    largest, tvd = largest.where(flat.notna()), tvd.where(jsd.notna())
    yield Measure(name="attention-entropy", values=flat, null=1.0, why=why)
    yield Measure(name="max-attention", values=largest, null=1 / rows["length"], why=why)
    others = rows["subject"] != TRAINED
    flatter = (_of(TRAINED, rows, flat) - flat)[others]
    yield Measure(name="entropy-lost", values=flatter, null=0.0, why=why)
    yield Measure(name="attention-jsd", values=jsd[others], null=0.0, why=why)
    yield Measure(name="output-tvd", values=tvd[others], null=0.0, why=why)
    yield Measure(name="output-tvd-halved", values=tvd[others] / 2, null=0.0, why=why)
    # Gumbel-softmax is a temperature and noise; beside the temperature alone, the rest is the noise's doing.
    noiseless = rows["subject"].str.replace(GUMBEL, TEMPERED)
    noisy = rows["subject"].str.startswith(GUMBEL) & noiseless.isin(set(rows["subject"]))
    yield Measure(
        name="entropy-lost-to-noise",
        values=(_of(noiseless, rows, flat) - flat)[noisy],
        null=0.0,
        why=why,
    )


def _of(partner: str | pd.Series, rows: pd.DataFrame, values: pd.Series) -> pd.Series:
    """Beside every row what its partner has for the same text with the same seed."""
    who = ["subject", "seed", "id"]
    own, asked = (pd.MultiIndex.from_frame(each[who]) for each in (rows, rows.assign(subject=partner)))
    return pd.Series(pd.Series(values.to_numpy(), index=own).reindex(asked).to_numpy(), index=rows.index)


def _scores(rows: pd.DataFrame, subjects: list[str], mode: str, rng: np.random.Generator) -> list[Finding]:
    found = scored(EXPERIMENT, rows, subjects, mode=mode, rng=rng, measures=SCORES)
    return [replace(one, group=group_of(one.group)) for one in found]


def _flatness(rows: pd.DataFrame, known: Orders) -> Iterator[Flatness]:
    """The models of each seed, all of one setting."""
    for seed, of_seed in rows.groupby("seed"):
        means = of_seed["entropy"].astype(np.float64).groupby(of_seed["subject"]).mean()
        taus = [known[str(name)][seed].tau for name in means.index]
        yield Flatness(means.index.to_numpy(), means.to_numpy(), np.array(taus, dtype=np.float64))


CONCLUSION = Conclusion(conclude, version=3, about=ABOUT, cards=CARDS, columns=COLUMNS)
