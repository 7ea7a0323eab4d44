"""The cards of the importance experiment: rank agreement of attention, gradients and leave-one-out."""

from __future__ import annotations

from attentest.evidence.importances.names import IMPORTANCES, IN_ROWS, column
from attentest.experiments.importance import ALSO
from attentest.statistics.card import Card

PAPER = "jain2019attention"
CORRELATION = (-1.0, 1.0)
SHARE = (0.0, 1.0)
UNRANKED = "the text has one token, or either vector is constant or holds a NaN: there is nothing to rank"
UNLISTED = "the text has one token, or either vector holds a NaN"
GRADIENT = "gradient importance |sum over dimensions of (ds/de_t) e_t|, attention held"
LOO = "leave-one-out importance TVD(y without token t, y)"
LOO_HELD = f"{LOO}, the remaining tokens keeping their scores, projected again"
SECTION = dict(zip(IN_ROWS, ("4.1, Table 2 (gradient)", "4.1, Table 2 (leave-one-out)"), strict=True))
IMPORTANCE = dict(zip(IN_ROWS, (GRADIENT, LOO), strict=True))
HELD = dict(zip(IN_ROWS, (GRADIENT, LOO_HELD), strict=True))
NAMED = dict(zip(IN_ROWS, ("tau-gradient", "tau-loo-held"), strict=True))
SWAPPED = (
    "another text's weights (of the same length, else of the nearest longer, cut and renormalised), the"
    " importance computed again under them: it holds fixed the shape, smoothness and positions of attention"
    " and breaks its match with these words, so it is what agreement would be if attention did not know the"
    " words"
)
PERMUTED = (
    "the text's own weights in a random order, the importance computed again under them: it holds fixed the"
    " set of weights and breaks which word has which, so it is what agreement would be if any word could"
    " have any weight"
)
LARGER = f"the larger of two means over 20 draws. Swapped: {SWAPPED}. Permuted: {PERMUTED}"


def _agreement(importance: str, title: str) -> dict[str, Card]:
    """The cards of attention against one importance."""
    held, section = HELD[importance], SECTION[importance]
    about, named = IMPORTANCE[importance], NAMED[importance]
    scored = ", the remaining tokens keeping their scores" if importance == "loo" else ""
    return {
        f"importance/{named}": Card(
            measure=f"Kendall's tau-b of attention and {title}{scored}",
            formula=f"mean over texts of tau-b between attention and {held}",
            range=CORRELATION,
            direction="higher: attention ranks tokens more as importance does",
            null=f"mean tau: {LARGER}",
            unit="rank correlation",
            paper=PAPER,
            section="ours: a variant of 4.1" if scored else section,
            undefined_when=UNRANKED,
        ),
        f"importance/{named}-significant": Card(
            measure=f"Share of texts where attention and {title} agree significantly{scored}",
            formula=f"share of texts where tau-b between attention and {held} has p <= 0.05, two-sided,"
            " without correction for many texts; disagreement counts, too",
            range=SHARE,
            direction="higher: fewer texts that chance explains; in long texts weak agreement is significant",
            null=f"the same share under the null of tau: {LARGER}",
            unit="share of texts",
            paper=PAPER,
            section="ours: a variant of 4.1" if scored else section,
            undefined_when=UNRANKED,
        ),
        f"importance/tau-{importance}-excess": Card(
            measure=f"Agreement of attention and {title} beyond its null",
            formula=f"mean over texts of {named} minus the mean tau over draws of the null: {LARGER}",
            range=(-2.0, 2.0),
            direction="higher: attention ranks these words as importance does, beyond what its shape"
            " brings about",
            null="0",
            unit="difference of rank correlations",
            paper=PAPER,
            section="ours",
            undefined_when=f"{UNRANKED}; or no other text is as long, where the swapped null is the larger",
        ),
        f"importance/gradient-loo-minus-attention-{importance}": Card(
            measure=f"How much better the two importances agree than attention and {title}",
            formula="mean over texts of tau-b between gradient and leave-one-out importance minus tau-b"
            f" between attention and {about}",
            range=(-2.0, 2.0),
            direction="above 0: the importances agree with each other better than attention does with one",
            null="0; but both importances carry attention as a factor: all three agree by construction",
            unit="difference of rank correlations",
            paper=PAPER,
            section="in the published code only, whose tables swap the names of two of the three pairs",
            undefined_when=UNRANKED,
        ),
        **_of_any(importance, title, about),
    }


def _of_any(importance: str, title: str, about: str) -> dict[str, Card]:
    """The cards of attention against an importance that need no null of its own."""
    return {
        f"importance/top-k-overlap-{importance}": Card(
            measure=f"Overlap of the top k by attention and by {title}",
            formula=f"mean over texts of the share of the k largest by attention that are also among the k"
            f" largest by {about}; k = max(10, a tenth of the mean length), ties by position",
            range=SHARE,
            direction="higher: the same tokens are on top; 1 where the text has no more than k tokens",
            null="min(k, T) / T for a text of T tokens: what k tokens drawn blindly would hit",
            unit="share of the top k",
            paper=PAPER,
            section="ours; k is the published code's",
            undefined_when=UNLISTED,
        ),
        f"importance/top-k-distance-{importance}": Card(
            measure=f"Kendall distance of the top k by attention and by {title}",
            formula=f"mean over texts of the distance of Fagin, Kumar and Sivakumar (2003), p = 1/2, between"
            f" the k largest by attention and by {about}, divided by that of disjoint lists",
            range=SHARE,
            direction="lower: more alike. A distance, not a correlation: 0 is the same list, 1 disjoint ones",
            null="none is known in closed form; it depends on k and the length of the text",
            unit="share of the distance of disjoint lists",
            paper=PAPER,
            section="in the published code only",
            undefined_when=UNLISTED,
        ),
        f"importance/noise-ceiling-{importance}": Card(
            measure=f"Noise ceiling of {title}",
            formula=f"mean over texts and all pairs of seeds of tau-b between {about} of the one and of"
            f" the other,"
            " on the texts whose importances are stored whole",
            range=CORRELATION,
            direction="higher: the importance itself is more stable; attention cannot be asked to agree more",
            null="0: importances that share nothing but the text",
            unit="rank correlation",
            paper=PAPER,
            section="ours",
            undefined_when=f"there is one seed, {UNRANKED}",
        ),
    }


def _also(importance: str) -> dict[str, Card]:
    """The cards of attention against an importance that was asked beside the two of the paper."""
    about, spelled = IMPORTANCES[importance], column(importance)
    what = f"{about.title} ({about.says})"
    return {
        f"importance/tau-{spelled}": Card(
            measure=f"Kendall's tau-b of attention and {about.title}",
            formula=f"mean over texts of tau-b between attention and the magnitude of {what}",
            range=CORRELATION,
            direction="higher: attention ranks tokens more as importance does",
            null="0: a ranking that has nothing to do with attention; what the two share by construction is"
            " seen on untrained models",
            unit="rank correlation",
            paper=PAPER,
            section="ours: 4.1 has gradients and leave-one-out",
            undefined_when=UNRANKED,
        ),
        **_of_any(spelled, about.title, f"the magnitude of {what}"),
    }


def _norm(attention: str, meaning: str) -> Card:
    return Card(
        measure=f"Kendall's tau-b of attention and the gradient's norm, attention {attention}",
        formula=f"mean over texts of tau-b between attention and ||ds/de_t||, {meaning}",
        range=CORRELATION,
        direction="higher: attention ranks tokens more as the norm does",
        null="none known: how far it is 0 depends on the encoder",
        unit="rank correlation",
        paper=PAPER,
        section="ours: a variant of 4.1",
        undefined_when=UNRANKED,
    )


CARDS: dict[str, Card] = {
    **_agreement("gradient", "gradients"),
    **_agreement("loo", "leave-one-out"),
    **{name: card for importance in ALSO for name, card in _also(importance).items()},
    "importance/tau-loo": Card(
        measure="Kendall's tau-b of attention and leave-one-out",
        formula=f"mean over texts of tau-b between attention and {LOO}, the remaining tokens scored again",
        range=CORRELATION,
        direction="higher: attention ranks tokens more as importance does",
        null="none: given weights have no scores of their own to be computed again; see tau-loo-held",
        unit="rank correlation",
        paper=PAPER,
        section=SECTION["loo"],
        undefined_when=UNRANKED,
    ),
    "importance/tau-loo-significant": Card(
        measure="Share of texts where attention and leave-one-out agree significantly",
        formula=f"share of texts where tau-b between attention and {LOO} has p <= 0.05, two-sided,"
        " without correction for many texts; disagreement counts, too",
        range=SHARE,
        direction="higher: fewer texts that chance explains; in long texts weak agreement is significant",
        null="none, as of tau-loo; see tau-loo-held-significant",
        unit="share of texts",
        paper=PAPER,
        section=SECTION["loo"],
        undefined_when=UNRANKED,
    ),
    "importance/tau-gradient-loo": Card(
        measure="Kendall's tau-b of gradients and leave-one-out",
        formula=f"mean over texts of tau-b between {GRADIENT} and {LOO}",
        range=CORRELATION,
        direction="higher: the two importances agree more",
        null="0",
        unit="rank correlation",
        paper=PAPER,
        section="in the published code only",
        undefined_when=UNRANKED,
    ),
    "importance/tau-norm-held": _norm("held", "the derivative taken as if attention did not depend on e_t"),
    "importance/tau-norm-free": _norm("free", "the derivative taken through attention as well"),
}
