"""The figures of sparser and sparser attention."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.lanes import sparsity_entropies
from attentest.charts.sparsity import agreement_by_lambda, entropy_by_realised

FIGURES: tuple[Figure, ...] = (
    Figure(
        "entropy-gradient",
        "Does sparser attention make importance sparser?",
        "How spread the gradient importance of words is, a lane a model, sparser attention further down."
        " Diamonds: the same projections without training.",
        lambda rows, view, title: sparsity_entropies(rows, title=title, subtitle=view.subtitle),
        redraws="ME-2, Figure 2: entropy of gradient importance by sparsity",
    ),
    Figure(
        "entropy-loo",
        "The same by leaving out",
        "How spread leave-one-out importance is.",
        lambda rows, view, title: sparsity_entropies(rows, "loo", title=title, subtitle=view.subtitle),
        redraws="ME-2, Figure 2: entropy of leave-one-out importance by sparsity",
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
        redraws="ME-3: agreement with importance by sparsity",
    ),
    Figure(
        "tau-on-support",
        "And among the words that have weight?",
        "The same without the words that attention leaves out.",
        lambda rows, view, title: agreement_by_lambda(
            rows, view.findings, "-on-support", title=title, subtitle=view.subtitle
        ),
    ),
)
