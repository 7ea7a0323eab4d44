"""The cards of the dispersion experiment: entropies of influence and importance, and what attention ranks."""

from __future__ import annotations

import math

from attentest.evidence.importances.names import IN_ROWS
from attentest.experiments.shared.attention_rate import rate_card
from attentest.statistics.card import OF_UNTRAINED, Card

PAPER = "meister2021sparse"
SHARE = (0.0, 1.0)
CORRELATION = (-1.0, 1.0)
UNTRAINED = f"the same on untrained models, which have none. {OF_UNTRAINED}"
ALIKE = "0: the two norms spread alike"
UNSPREAD = "the text has one token, or no token has any (or one is not a number)"
ENTROPY = "H(p) = -sum_i p_i ln p_i / ln T over the T tokens"
INFLUENCE = "the influence of token i on the hidden state h_p"
STATES = "averaged over the states of a text, at most 16 of them drawn at random, then over texts"
WIDER = "higher: spread over more tokens; 1 is uniform, 0 is one token"


def _entropy(measure: str, formula: str, section: str, null: str = UNTRAINED) -> Card:
    return Card(
        measure=f"Normalised entropy of {measure}",
        formula=f"{ENTROPY}, p being {formula}, made to sum to 1",
        range=SHARE,
        direction=WIDER,
        null=null,
        unit="share of the largest entropy",
        paper=PAPER,
        section=section,
        undefined_when=UNSPREAD,
    )


ENTROPIES = {
    "dispersion/entropy-influence": _entropy(
        "the words' influence on a hidden state",
        f"{INFLUENCE}, || d||h_p||_2 / dx_i ||_2; {STATES}",
        "Table 1",
    ),
    "dispersion/entropy-influence-l1": _entropy(
        "the words' influence on a hidden state, L1 norm",
        f"{INFLUENCE}, || d||h_p||_2 / dx_i ||_1; {STATES}",
        "ours: another norm of Table 1",
    ),
    "dispersion/entropy-influence-frobenius": _entropy(
        "the words' influence on a hidden state, Frobenius norm",
        f"{INFLUENCE}, ||dh_p / dx_i||_F; averaged over at most 4 states of a text, then over some texts",
        "a norm that the paper mentions beside Table 1",
        null="none: only trained models are asked",
    ),
    "dispersion/entropy-gradient": _entropy(
        "gradient importance of words",
        "||df / dx_i||_2, attention not held; f the probability of class 1, or of the likeliest of several",
        "Figure 2, Table 2 (against sparsity)",
    ),
    "dispersion/entropy-loo": _entropy(
        "leave-one-out importance of words",
        "TVD(y without token i, y)",
        "Figure 2, Table 2 (against sparsity)",
    ),
    "dispersion/entropy-attention": _entropy(
        "attention", "attention", "ours: how sparse attention is, whatever its projection's parameter"
    ),
    "dispersion/entropy-influence-frobenius-minus-l2": Card(
        measure="Normalised entropy of influence, Frobenius norm minus L2 norm of the state's size",
        formula="mean over the texts asked of the entropy by ||dh_p / dx_i||_F minus that by"
        " || d||h_p||_2 / dx_i ||_2, over the same states",
        range=CORRELATION,
        direction="further from 0: dispersion depends more on the norm that was chosen",
        null=ALIKE,
        unit="share of the largest entropy",
        paper=PAPER,
        section="a remark beside Table 1: nearly identical",
        undefined_when=UNSPREAD,
    ),
}


def _sparsity(measure: str, formula: str, top: float, direction: str, unit: str) -> Card:
    return Card(
        measure=measure,
        formula=f"mean over texts of {formula}",
        range=(0.0, top),
        direction=direction,
        null=UNTRAINED,
        unit=unit,
        paper=PAPER,
        section="ours: scores have a free scale, so a projection's parameter does not tell how sparse it is",
        undefined_when="the text has one token, or attention is not a number",
    )


SPARSITY = {
    "dispersion/max-attention": _sparsity(
        "Largest weight", "max_i a_i", 1.0, "higher: attention rests more on one token", "attention"
    ),
    "dispersion/support": _sparsity(
        "Support of attention",
        "the number of tokens with a_i > 0",
        math.inf,
        "lower: sparser attention",
        "tokens",
    ),
    "dispersion/support-share": _sparsity(
        "Share of tokens in the support of attention",
        "the number of tokens with a_i > 0, divided by that of all",
        1.0,
        "lower: sparser attention",
        "share of tokens",
    ),
}

IMPORTANCE = {
    ("inputs", "gradient"): ("the gradient of words", "||df / dx_i||_2, attention not held"),
    ("inputs", "loo"): ("leave-one-out of words", "TVD(y without word i, y)"),
    ("hidden", "gradient"): ("the gradient of hidden states", "||df / dh_i||_2, attention not held"),
    ("hidden", "loo"): (
        "leave-one-out of hidden states",
        "TVD(y without h_i, y), h_i dropped before the projection and the others left as they are",
    ),
}
LARGER = (
    "the larger of two means over 20 draws in which the importance is computed again under other weights:"
    " another"
    " text's of the same length (it holds fixed the shape and positions of attention and breaks its match"
    " with these"
    " words), and the text's own in a random order (it holds fixed the set of weights and breaks which"
    " token has which)"
)
HELD = ", the remaining words keeping their scores"
NO_NULL = "none: given weights have no scores of their own to be computed again; see tau-inputs-loo-held"


OVER = {
    "": (
        "",
        "over all tokens; zero weights tie with zero importances, which lifts it under sparse attention",
        "the text has one token, or either vector is constant or holds a NaN",
    ),
    "-on-support": (
        ", tokens with weight alone",
        "over the tokens with a_i > 0, where no zero ties with a zero",
        "fewer than two tokens have weight, or either vector is constant or holds a NaN",
    ),
}


def _tau(target: str, name: str, where: str) -> dict[str, Card]:
    (title, about), (short, over, undefined) = IMPORTANCE[target, name], OVER[where]
    measure, words = f"tau-{target}-{name}", (target, name) == ("inputs", "loo")
    published = "Figures 1 and 4, and their table"

    def card(held: str, null: str, section: str) -> Card:
        return Card(
            measure=f"Kendall's tau-b of attention and {title}{held}{short}",
            formula=f"mean over texts of tau-b between attention and {about}{held}, {over}",
            range=CORRELATION,
            direction="higher: attention ranks more as this importance does",
            null=null,
            unit="rank correlation",
            paper=PAPER,
            section="ours: without ties of zeros" if where else section,
            undefined_when=undefined,
        )

    if (target, name) == ("inputs", "gradient"):
        return {f"dispersion/{measure}{where}": card("", UNTRAINED, published)}
    cards = {f"dispersion/{measure}{where}": card("", NO_NULL if words else f"mean tau: {LARGER}", published)}
    if words:
        cards[f"dispersion/{measure}-held{where}"] = card(HELD, f"mean tau: {LARGER}", "ours")
    cards[f"dispersion/{measure}{where}-excess"] = Card(
        measure=f"Agreement of attention and {title} beyond its null{short}",
        formula=f"mean over texts of tau{HELD if words else ''}, {over}, minus the mean tau: {LARGER}",
        range=(-2.0, 2.0),
        direction="higher: attention ranks more as this importance does than its shape alone would",
        null="0",
        unit="difference of rank correlations",
        paper=PAPER,
        section="ours",
        undefined_when=f"{undefined}; or no other text is as long, where the swapped null is the larger",
    )
    return cards


def _states_minus_words(name: str, where: str) -> Card:
    short, over, undefined = OVER[where]
    of_states, of_words = (IMPORTANCE[target, name][0] for target in ("hidden", "inputs"))
    return Card(
        measure=f"Attention follows {of_states} more than {of_words}{short}",
        formula=f"mean over texts of tau-b with {of_states} minus tau-b with {of_words}, {over}",
        range=(-2.0, 2.0),
        direction="higher: attention is about hidden states rather than words",
        null="0: attention ranks both alike; the states' share the factor of attention, see their own nulls",
        unit="difference of rank correlations",
        paper=PAPER,
        section="Figures 1 and 4, and their table; the difference is ours",
        undefined_when=undefined,
    )


CARDS: dict[str, Card] = {
    "dispersion/attention-rate": rate_card(PAPER),
    **ENTROPIES,
    **SPARSITY,
    **{
        key: card
        for target, name in IMPORTANCE
        for where in OVER
        for key, card in _tau(target, name, where).items()
    },
    **{
        f"dispersion/hidden-minus-inputs-{name}{where}": _states_minus_words(name, where)
        for name in IN_ROWS
        for where in OVER
    },
}
