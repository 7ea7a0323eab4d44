"""The figures of Meister et al. (2021)."""

from __future__ import annotations

from attentest.charts.catalogue import (
    agreement_by_lambda,
    entropy_by_realised,
    frozen_curves,
    inputs_and_states,
    sparsity_entropies,
)
from attentest.gallery.figure import Figure, Figures

MEISTER: Figures = {
    "dispersion": (
        Figure(
            "gradient",
            "Words or hidden states, by gradients",
            "How well attention ranks what gradients find important, text by text: words above, hidden states"
            " below. A state's gradient carries its weight as a factor; diamonds show what that alone does.",
            lambda rows, view, title: inputs_and_states(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "loo",
            "Words or hidden states, by leaving out",
            "The same where a word is left out of the text, or a state out of the sum.",
            lambda rows, view, title: inputs_and_states(rows, "loo", title=title, subtitle=view.subtitle),
        ),
    ),
    "sparsity": (
        Figure(
            "entropy-gradient",
            "Does sparser attention make importance sparser?",
            "How spread the gradient importance of words is, a lane a model, sparser attention further down."
            " Diamonds: the same projections without training.",
            lambda rows, view, title: sparsity_entropies(rows, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "entropy-loo",
            "The same by leaving out",
            "How spread leave-one-out importance is.",
            lambda rows, view, title: sparsity_entropies(rows, "loo", title=title, subtitle=view.subtitle),
        ),
        Figure(
            "realised",
            "Against how sparse attention really is",
            "Scores have a free scale, so a training may undo lambda: here the models stand where their"
            " attention came to rest.",
            lambda rows, view, title: entropy_by_realised(
                rows, view.findings, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "tau",
            "Does sparser attention agree better with importance?",
            "Rank correlation with both importances over all words. Zeros of sparse attention tie, which by"
            " itself moves it: see the next figure.",
            lambda rows, view, title: agreement_by_lambda(
                rows, view.findings, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "tau-on-support",
            "And among the words that have weight?",
            "The same without the words that attention leaves out.",
            lambda rows, view, title: agreement_by_lambda(
                rows, view.findings, "-on-support", title=title, subtitle=view.subtitle
            ),
        ),
    ),
    "frozen-adversary": (
        Figure(
            "curves",
            "Attention moved, alone and not",
            "Adversaries with more and more reward for attending elsewhere. Where the curve of frozen models"
            " falls and that of models from scratch does not, what attention carried has moved with it.",
            lambda rows, view, title: frozen_curves(rows, view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
}
