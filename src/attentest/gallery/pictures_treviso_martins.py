"""The figures of the communication game of Treviso & Martins (2020)."""

from __future__ import annotations

from attentest.charts.catalogue import communication_curves, communication_models
from attentest.gallery.figure import Figure, Figures

TREVISO_MARTINS: Figures = {
    "communication": (
        Figure(
            "explainers",
            "What a few words tell about the classifier",
            "How often somebody who hears only the words that an explainer sends says what the classifier"
            " says. Only what lies above random words was told by their choice. The surrogate never looks"
            " into the classifier: where it is best, being understood is no proof of being faithful.",
            lambda rows, view, title: communication_curves(
                view.findings, title=title, subtitle=view.subtitle
            ),
        ),
        Figure(
            "models",
            "Attention of other projections, and of models that learnt nothing",
            "Each classifier is guessed from its own attention's words. Sparse attention may send fewer than"
            " k, and is held against as few random ones; a model that mostly says the same is guessed by"
            " anybody.",
            lambda rows, view, title: communication_models(
                view.findings, title=title, subtitle=view.subtitle
            ),
        ),
    ),
}
