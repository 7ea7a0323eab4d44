"""The figures of Wiegreffe & Pinter (2019), and of the deception of Pruthi et al. (2020)."""

from __future__ import annotations

from attentest.charts.catalogue import (
    adversary_plane,
    apart_scatter,
    apart_violins,
    beyond_seeds,
    deception_scores,
    guide_gains,
    guide_scores,
    uniform_losses,
    uniform_scores,
)
from attentest.gallery.figure import Figure, Figures

WIEGREFFE_PINTER: Figures = {
    "uniform-baseline": (
        Figure(
            "scores",
            "With attention and without",
            "The model as it is, and trained anew with all weights alike. Black bars: the best answer that"
            " never looks at the text.",
            lambda rows, view, title: uniform_scores(view.findings, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "lost",
            "What uniform attention costs",
            "Right of the black bar, the loss is more than two seeds of one model differ by: the task needs"
            " attention. Elsewhere the task says little about it.",
            lambda rows, view, title: uniform_losses(view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
    "seed-variance": (
        Figure(
            "seeds",
            "Attention of other seeds",
            "How far it lies from the base model's, by the base's largest weight. Diamonds: the base's own"
            " weights in random order. Seeds that lie as far as these agree on nothing.",
            lambda rows, view, title: apart_violins(
                rows, "seeds", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "output",
            "And their output",
            "Each dot a text: to the right, other seeds attend elsewhere; further up, they answer otherwise.",
            lambda rows, view, title: apart_scatter(
                rows, "seeds", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "beyond",
            "An adversary, or just another seed?",
            "Above the line the exact adversary moves attention further than other seeds do: only there is"
            " it evidence against attention.",
            lambda rows, view, title: beyond_seeds(
                rows, title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
    "guided": (
        Figure(
            "scores",
            "An MLP under others' weights",
            "A model that sees one token at a time, its words weighed by each guide in turn. Black bars: the"
            " best answer that never looks at the text.",
            lambda rows, view, title: guide_scores(view.findings, title=title, subtitle=view.subtitle),
        ),
        Figure(
            "gains",
            "What each guide is worth",
            "Right of zero, its weights say more about the words than uniform ones. Black bars: the weights"
            " of an untrained model.",
            lambda rows, view, title: guide_gains(view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
    "trained-adversary": (
        Figure(
            "plane",
            "What it costs to look elsewhere",
            "Adversaries trained with more and more reward for attending elsewhere. Points below the curve"
            " move attention as far at less cost: adversaries made text by text are no model.",
            lambda rows, view, title: adversary_plane(
                rows, view.findings, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "exact",
            "Exact adversaries, text by text",
            "How far they move attention at the same output, by the base's largest weight.",
            lambda rows, view, title: apart_violins(
                rows, "exact", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "search",
            "Searched adversaries, text by text",
            "The same of the published search, for the texts it was run on.",
            lambda rows, view, title: apart_violins(
                rows, "search", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
        Figure(
            "search-output",
            "And the output under them",
            "To be read beside that of other seeds: an adversary may not move the output by more than ε, and"
            " so lies at the bottom.",
            lambda rows, view, title: apart_scatter(
                rows, "search", title=title, subtitle=view.subtitle, **view.by_class
            ),
        ),
    ),
}

PRUTHI: Figures = {
    "deception": (
        Figure(
            "penalties",
            "Attention that hides what is used",
            "A model deceives where its attention on the impermissible words (first dot) is next to nothing"
            " and its accuracy stays far above that without the words. If it stays up even when that"
            " attention is zeroed, the words speak through other tokens. Black bars: uniform attention, and"
            " the commonest answer.",
            lambda rows, view, title: deception_scores(view.findings, title=title, subtitle=view.subtitle),
        ),
    ),
}
