"""The figures of dispersion of influence."""

from __future__ import annotations

from attentest.charts.figure import Figure
from attentest.charts.lanes import inputs_and_states

FIGURES: tuple[Figure, ...] = (
    Figure(
        "gradient",
        "Words or hidden states, by gradients",
        "How well attention ranks what gradients find important, text by text: words above, hidden states"
        " below. A state's gradient carries its weight as a factor; diamonds show what that alone does.",
        lambda rows, view, title: inputs_and_states(rows, title=title, subtitle=view.subtitle),
        redraws="ME-4, Figure 1: inputs and hidden states by gradients",
    ),
    Figure(
        "loo",
        "Words or hidden states, by leaving out",
        "The same where a word is left out of the text, or a state out of the sum.",
        lambda rows, view, title: inputs_and_states(rows, "loo", title=title, subtitle=view.subtitle),
        redraws="ME-4, Figure 4: inputs and hidden states by leaving out",
    ),
)
