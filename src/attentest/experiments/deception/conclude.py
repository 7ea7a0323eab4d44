"""Whether attention hides what a model uses: deceptive attention, after Pruthi et al. (2020).

Three numbers make the argument together. The penalised model attends little to the impermissible words
(`mass`), answers nearly as well (`accuracy-drop`), and cannot do without them (`accuracy-above-anonymised`).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from attentest.experiments.deception import ABOUT
from attentest.experiments.description import Conclusion
from attentest.experiments.shared.numbered import numbered
from attentest.statistics.card import Card
from attentest.statistics.group_means import Group, Means, Measure, of_controls
from attentest.statistics.record import Finding, ordered

PROBES = ("zeroed", "renormalised")
WHO = ("seed", "subject", "id", "label", "length", "impermissible")
NUMBERS = ("correct", "mass", "mass_left", *(f"correct_{probe}" for probe in PROBES))
COLUMNS = (*WHO, *NUMBERS)
TRAINED, ANONYMISED, PENALISED = "trained", "anonymised", "lambda "
NOT_A_NUMBER = "the output is not a number"
NO_ATTENTION = "no attention left, or the output is not a number"
UNMATCHED = "the output is not a number, or the other model did not answer"
NO_SUCH_WORD = "no impermissible word"


def conclude(rows: pd.DataFrame, *, mode: str, rng: np.random.Generator) -> list[Finding]:
    """Means over texts for every model: overall is the one without a penalty, lambda 0.

    Where some texts hold no impermissible word, accuracy is told apart for those with and those without:
    what a penalty costs can only show where there is something to penalise.
    """
    rows = ordered(rows, COLUMNS)
    if not (rows["subject"] == TRAINED).any():
        return []
    numbers = rows[[*NUMBERS, "length", "impermissible"]].astype(np.float64)
    answers, attention = [*_answers(rows, numbers)], [*_attention(rows, numbers)]
    models = _models(rows)
    means = Means(experiment="deception", rows=rows, mode=mode, rng=rng)
    return [*means.of([*answers, *attention], models), *means.of(answers, _parts(rows, models))]


def _answers(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    """How well each model does, and how much better or worse than another on the same text and seed."""
    correct, majority = numbers["correct"], _majority(rows)
    yield Measure(name="accuracy", values=correct, null=majority, why=_said(rows, NOT_A_NUMBER))
    others = [
        ("accuracy-drop", TRAINED, _paired(rows, correct, TRAINED) - correct),
        ("accuracy-above-anonymised", ANONYMISED, correct - _paired(rows, correct, ANONYMISED)),
    ]
    for name, compared, values in others:
        asked = values[rows["subject"] != compared]  # nobody is compared with itself
        yield Measure(name=name, values=asked, null=0.0, why=_said(rows, UNMATCHED))


def _attention(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[Measure]:
    """Where attention lies, and the answers without what lies on impermissible words.

    The anonymised model is not asked: it has no such words to attend to.
    """
    asked = rows["subject"] != ANONYMISED
    numbers, majority = numbers[asked], _majority(rows)[asked]
    uniform = numbers["impermissible"] / numbers["length"]
    present, mass = numbers["impermissible"] > 0, numbers["mass"]
    nan = _said(rows, NOT_A_NUMBER)
    none = nan[asked].where(present, NO_SUCH_WORD)
    yield Measure(name="mass", values=mass, null=uniform, why=nan)
    yield Measure(name="mass-where-present", values=mass.where(present), null=uniform, why=none)
    yield Measure(name="mass-left", values=numbers["mass_left"], null=1.0 - uniform, why=nan)
    for probe in PROBES:
        correct, why = numbers[f"correct_{probe}"], _said(rows, NO_ATTENTION)
        yield Measure(name=f"accuracy-{probe}", values=correct, null=majority, why=why)
        yield Measure(name=f"{probe}-drop", values=numbers["correct"] - correct, null=0.0, why=why)


def _models(rows: pd.DataFrame) -> list[Group]:
    by_penalty = numbered(rows["subject"].unique(), PENALISED)
    named = {"overall": TRAINED, **{name: name for name in (*by_penalty, ANONYMISED)}}
    groups = [(group, rows[rows["subject"] == subject]) for group, subject in named.items()]
    return [*groups, *of_controls(rows)]


def _parts(rows: pd.DataFrame, models: list[Group]) -> Iterator[Group]:
    """Each model's texts with and without impermissible words, where there are both.

    The original text decides, as the unpenalised model read it: no anonymised text holds any.
    """
    present = _paired(rows, rows["impermissible"], TRAINED) > 0
    if present.all() or not present.any():
        return
    for name, texts in models:
        here = present[texts.index]
        yield f"{name}, with impermissible words", texts[here]
        yield f"{name}, without impermissible words", texts[~here]


def _majority(rows: pd.DataFrame) -> pd.Series:
    """1 where the commonest gold label is right: the mean over texts is what always answering it scores."""
    return (rows["label"] == rows["label"].mode().iloc[0]).astype(np.float64)


def _paired(rows: pd.DataFrame, values: pd.Series, subject: str) -> pd.Series:
    """For every row, the value of this subject's row about the same text and seed; NaN where it has none."""
    text = pd.MultiIndex.from_frame(rows[["seed", "id"]])
    theirs = (rows["subject"] == subject).to_numpy()
    found = pd.Series(values.to_numpy()[theirs], index=text[theirs]).reindex(text)
    return pd.Series(found.to_numpy(), index=rows.index)


def _said(rows: pd.DataFrame, reason: str) -> pd.Series:
    return pd.Series(reason, index=rows.index)


# --- the cards

PAPER = "pruthi2020learning"
TABLES = "results of classification"
SHARE, DIFFERENCE = (0.0, 1.0), (-1.0, 1.0)
MAJORITY = "the share of the majority class: what always answering it scores"
UNIFORM = "the share of tokens that are impermissible: what uniform attention would give them"
MODELS = (
    "; a group is a model: overall (no penalty, lambda 0), lambda L (trained with a penalty of"
    " -L ln(1 - a.m) a text, m marking impermissible tokens), anonymised (trained and asked without them),"
    " untrained, shuffled labels"
)
ZEROED = "impermissible weights set to 0 at test, the rest left as they are"
RENORMALISED = "impermissible weights set to 0 at test, the rest divided by their sum"
ALL_IMPERMISSIBLE = "all attention lies on impermissible tokens, or the output is not a number"


def _probe(name: str, change: str, section: str, undefined_when: str) -> dict[str, Card]:
    """The cards of the answers under one change of attention."""
    return {
        f"deception/accuracy-{name}": Card(
            measure=f"Accuracy with impermissible attention {name}",
            formula=f"share of texts whose label is predicted under attention with {change}{MODELS}",
            range=SHARE,
            direction="higher: what the impermissible tokens say arrives by other tokens' states",
            null=MAJORITY,
            unit="share of texts",
            paper=PAPER,
            section=section,
            undefined_when=undefined_when,
        ),
        f"deception/{name}-drop": Card(
            measure=f"What accuracy loses when impermissible attention is {name}",
            formula=f"accuracy minus accuracy under attention with {change}, on the same texts",
            range=DIFFERENCE,
            direction="higher: the answer hangs on the attention impermissible tokens still have",
            null="0: they have no say",
            unit="share of texts",
            paper=PAPER,
            section="ours",
            undefined_when=undefined_when,
        ),
    }


CARDS: dict[str, Card] = {
    "deception/accuracy": Card(
        measure="Accuracy, by the penalty on impermissible attention",
        formula=f"share of texts whose predicted label is the gold label{MODELS}",
        range=SHARE,
        direction="higher is better",
        null=MAJORITY,
        unit="share of texts",
        paper=PAPER,
        section=TABLES,
        undefined_when=NOT_A_NUMBER,
    ),
    "deception/accuracy-drop": Card(
        measure="What accuracy the penalty costs",
        formula="accuracy of the model without a penalty minus this model's, text by text for the same seed",
        range=DIFFERENCE,
        direction="higher: a larger price",
        null="0: the penalty, or the missing words, cost nothing",
        unit="share of texts",
        paper=PAPER,
        section=f"{TABLES}; the paired difference is ours",
        undefined_when="the output of either model is not a number",
    ),
    "deception/accuracy-above-anonymised": Card(
        measure="Accuracy beyond that of the model that never sees impermissible words",
        formula="accuracy minus that of the anonymised model, text by text for the same seed",
        range=DIFFERENCE,
        direction="higher: the model uses the impermissible words, whatever its attention says",
        null="0: the words are of no use to it",
        unit="share of texts",
        paper=PAPER,
        section=f"{TABLES}; the paired difference is ours",
        undefined_when="the output of either model is not a number",
    ),
    "deception/mass": Card(
        measure="Attention mass on impermissible tokens",
        formula=f"mean over texts of a.m, 0 where a text has no impermissible token{MODELS}",
        range=SHARE,
        direction="lower: attention says that the words hardly matter",
        null=UNIFORM,
        unit="share of attention; the paper prints percent",
        paper=PAPER,
        section=TABLES,
        undefined_when="the weights are not numbers",
    ),
    "deception/mass-where-present": Card(
        measure="Attention mass on impermissible tokens, where there are any",
        formula="mean of a.m over the texts that have an impermissible token; the others are counted as"
        " excluded",
        range=SHARE,
        direction="lower: attention says that the words hardly matter",
        null=UNIFORM,
        unit="share of attention",
        paper=PAPER,
        section="ours",
        undefined_when="the text has no impermissible token, or the weights are not numbers",
    ),
    "deception/mass-left": Card(
        measure="Attention that zeroing leaves",
        formula=f"mean over texts of the sum of weights with {ZEROED}: the mass on permissible tokens",
        range=SHARE,
        direction="lower: zeroing takes more of the context vector away, whatever the tokens say",
        null="the share of tokens that are permissible: what uniform attention would leave",
        unit="share of attention",
        paper=PAPER,
        section="ours",
        undefined_when="the weights are not numbers",
    ),
    **_probe("zeroed", ZEROED, "in the published code, for sequences to sequences", NOT_A_NUMBER),
    **_probe("renormalised", RENORMALISED, "ours", ALL_IMPERMISSIBLE),
}

CONCLUSION = Conclusion(conclude, version=2, about=ABOUT, cards=CARDS, columns=COLUMNS)
