"""The cards of mutual information by rank of attention (Wen et al. 2022)."""

from __future__ import annotations

import math

from attentest.statistics.card import Card

PAPER = "wen2022revisiting"
ANY = (-math.inf, math.inf)
NATS = (0.0, math.inf)
TAU = (-1.0, 1.0)
SETUP = (
    "every text's tokens ranked by attention, ties in the order of the text; m_i = I(X_i; Y), X_i the cluster"
    " of the i-th token's hidden state, Y the output (of two classes the logit in clusters, of more the"
    " predicted class); abar_i the mean i-th largest weight"
)
DEALT = (
    "mean over draws in which each text's tokens are dealt to its ranks at random, one codebook for all (it"
    " holds states, outputs and the weights of the ranks fixed and breaks which token has which rank, so a"
    " rank"
    " means nothing)"
)
NO_ORDER = "the model says the same of every text, attention is flat, or fewer than two ranks are compared"
NO_TEXT = "no text is long enough, or the model says the same of every text, or attention is flat"
AGREES = "higher: what is attended more tells more about the output"
TELLS = "higher: the tokens of this rank tell more about the output"


def _agreement() -> dict[str, Card]:
    formula = "sum_{i<j} abar_i abar_j sgn(m_i - m_j) sgn(abar_i - abar_j) / sum_{i<j} abar_i abar_j"
    kinds = {
        "tau": ("Agreement of information and attention", f"{formula}; {SETUP}", DEALT),
        "tau-joint": (
            "Agreement of information and attention, one codebook for all ranks",
            f"{formula}, every X_i by one codebook; {SETUP}",
            DEALT,
        ),
        "tau-above-floor": (
            "Agreement of information above its floor and attention",
            f"{formula}, m_i less the same where outputs are dealt to the texts at random; {SETUP}",
            f"{DEALT}: where ranks are exchangeable it depends on the weights alone",
        ),
        "tau-of-floor": (
            "Agreement of the floor itself and attention",
            f"{formula}, m_i where outputs are dealt to the texts at random, the mean of the draws; {SETUP}",
            f"{DEALT}: where ranks are exchangeable it depends on the weights alone",
        ),
        "tau-knn": (
            "Agreement of information and attention, without clusters",
            f"{formula}, m_i by nearest neighbours; {SETUP}",
            f"{DEALT}: where ranks are exchangeable it depends on the weights alone",
        ),
        "tau-scipy": (
            "Agreement of information and attention, weighted by rank",
            f"scipy's weightedtau of m and abar, whose weights come from ranks and add; {SETUP}",
            DEALT,
        ),
    }
    return {
        f"information/{name}": Card(
            measure=title,
            formula=written,
            range=TAU,
            direction=AGREES,
            null=null,
            unit="weighted Kendall correlation over ranks",
            paper=PAPER,
            section="the box plots over models and corpora (tau); the other variants are ours",
            undefined_when=NO_ORDER,
        )
        for name, (title, written, null) in kinds.items()
    }


def _luck() -> dict[str, Card]:
    return {
        **{
            f"information/{tau}-p": Card(
                measure=f"How often luck agrees as well{among}",
                formula="(1 + draws whose tau reaches the model's) / (1 + draws), a draw dealing each text's"
                " tokens to its ranks at random; the mean over seeds",
                range=(0.0, 1.0),
                direction="lower: the agreement is less likely luck",
                null="0.5: the mean p-value where ranks mean nothing",
                unit="probability",
                paper=PAPER,
                section="ours",
                undefined_when=NO_ORDER,
            )
            for tau, among in (
                ("tau", ""),
                ("tau-joint", ", one codebook for all ranks"),
                ("tau-above-floor", ", above the floor"),
            )
        },
        "information/tau-null-95": Card(
            measure="What luck reaches once in twenty",
            formula="the 95 % point of tau over draws that deal each text's tokens to its ranks at random",
            range=TAU,
            direction="higher: fewer ranks, or more uneven weights, and so less to learn from tau",
            null="it is one itself",
            unit="weighted Kendall correlation over ranks",
            paper=PAPER,
            section="ours",
            undefined_when=NO_ORDER,
        ),
    }


def _curves() -> dict[str, Card]:
    kinds = {
        "mi": (
            "Information about the output at a rank",
            f"sum p(x,y) ln p(x,y) / p(x)p(y) of X_i and Y; {SETUP}",
            "the same where outputs are dealt to the texts at random: far from 0 where texts are few",
            NATS,
        ),
        "mi-corrected": (
            "Information about the output at a rank, corrected for bias",
            f"m_i + (K_x + K_y - K_xy - 1) / 2n, K the occupied cells (Miller and Madow); {SETUP}. Of one"
            " model, the interval is 1.96 standard errors by the delta method",
            "the same where outputs are dealt to the texts at random",
            ANY,
        ),
        "mi-knn": (
            "Information about the output at a rank, without clusters",
            "psi(n) - <psi(n_y)> + <psi(k)> - <psi(n_k)>, n_k the texts no further than the k-th neighbour"
            " of the same output (Ross 2014; ties as Gao et al. 2017)",
            "0: where nothing is told, it scatters about 0",
            ANY,
        ),
        "mi-joint": (
            "Information about the output at a rank, one codebook for all ranks",
            f"m_i, every X_i by one codebook; {SETUP}",
            "the same where each text's tokens are dealt to its ranks at random",
            NATS,
        ),
    }
    return {
        f"information/{name}": Card(
            measure=title,
            formula=formula,
            range=reach,
            direction=TELLS,
            null=null,
            unit="nats",
            paper=PAPER,
            section="what tau is made of; the correction, the neighbours and the floor are ours",
            undefined_when=NO_TEXT,
        )
        for name, (title, formula, null, reach) in kinds.items()
    }


def _setting(title: str, formula: str, reach: tuple[float, float], null: str, unit: str) -> Card:
    return Card(
        measure=title,
        formula=formula,
        range=reach,
        direction="neither: it says how the model was measured",
        null=null,
        unit=unit,
        paper=PAPER,
        section="the choice of ranks and clusters, which the paper leaves open",
        undefined_when="no text is long enough",
    )


CARDS: dict[str, Card] = {
    **_agreement(),
    **_luck(),
    **_curves(),
    "information/output-entropy": Card(
        measure="Entropy of the output symbol",
        formula="-sum p(y) ln p(y): no rank can tell more",
        range=NATS,
        direction="higher: there is more to tell",
        null="none",
        unit="nats",
        paper=PAPER,
        section="ours",
        undefined_when=NO_TEXT,
    ),
    "information/attention": Card(
        measure="Mean attention at a rank",
        formula="abar_i, the mean over texts of the i-th largest weight",
        range=(0.0, 1.0),
        direction="higher: more attention at this rank",
        null="the mean of 1/T: uniform attention over T tokens",
        unit="attention",
        paper=PAPER,
        section="what tau is weighted by",
        undefined_when=NO_TEXT,
    ),
    "information/ranks": _setting(
        "Ranks compared",
        "the smaller of the 10th percentile of lengths and the last rank that attention reaches: the largest"
        " k at which 80 % of the texts that are so long have more than 1e-5 (defaults)",
        (0.0, math.inf),
        "none; below 3 the model is flagged",
        "ranks",
    ),
    "information/clusters": _setting(
        "Clusters at each rank",
        "the largest of 200, 150, 100, 75, 50 (defaults) at which, at every rank, at most 5 % of the clusters"
        " have fewer than two members; else the smallest",
        (0.0, math.inf),
        "none",
        "clusters",
    ),
    "information/small-clusters": _setting(
        "Clusters with fewer than two members",
        "their share among the clusters, at the rank where it is largest",
        (0.0, 1.0),
        "0: no cluster is small",
        "share of clusters",
    ),
    "information/flagged": _setting(
        "Models whose ranks or clusters are doubtful",
        "share of seeds with fewer than 3 ranks, or with clusters of fewer than two members",
        (0.0, 1.0),
        "0: no model is flagged",
        "share of models",
    ),
    "information/attention-entropy": Card(
        measure="Flatness of attention",
        formula="mean over texts of -sum_t a_t ln a_t / ln T",
        range=(0.0, 1.0),
        direction="higher: attention is flatter",
        null="1: uniform attention",
        unit="share of the largest entropy",
        paper=PAPER,
        section="said to go with low tau, without a table",
        undefined_when="the text has one token, or attention is not a number",
    ),
    "information/max-attention": Card(
        measure="Largest weight",
        formula="mean over texts of max_t a_t",
        range=(0.0, 1.0),
        direction="higher: attention is more peaked",
        null="the mean of 1/T: uniform attention over T tokens",
        unit="attention",
        paper=PAPER,
        section="ours",
        undefined_when="the text has one token, or attention is not a number",
    ),
}
