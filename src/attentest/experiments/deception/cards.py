"""The cards of the deception experiment: accuracy and attention mass, with and without a penalty on words."""

from __future__ import annotations

from attentest.statistics.card import Card

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
NOT_A_NUMBER = "the output is not a number"
ZEROED = "impermissible weights set to 0 at test, the rest left as they are"
RENORMALISED = "impermissible weights set to 0 at test, the rest divided by their sum"
NO_ATTENTION = "all attention lies on impermissible tokens, or the output is not a number"


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
    **_probe("renormalised", RENORMALISED, "ours", NO_ATTENTION),
}
