"""What a study of information draws over all of its settings: ranks, boxes by seed, flatness (WE-1, WE-5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from attentest.charts.rank_groups import rank_groups
from attentest.charts.settings import flatness_scatter, tau_boxes
from attentest.compare.over_settings import flatness, trainings
from attentest.compare.points import GridPoint
from attentest.gallery.pictures import Picture, picture
from attentest.studies.recipe import Study

BY_RANK = "information"
DIAGRAM = "figures/rank-groups.svg"


def study_pictures(study: Study, points: Sequence[GridPoint]) -> Iterator[Picture]:
    """None, unless the study asks for information by rank."""
    if BY_RANK not in {step.name for step in study.experiment}:
        return
    title = "Words by rank of attention"
    yield picture(
        DIAGRAM,
        title,
        "The words and weights are made up. Every text's words are put in the order of their attention; all"
        " that stand at one rank are one variable X. What X tells about the output Y is set beside the mean"
        " attention of its rank.",
        rank_groups(title=title, subtitle="a made example, not a finding"),
    )
    settings = trainings(study, points)
    stem = f"figures/study-{study.study}"
    for place, (corpus, own) in enumerate(settings.groupby("corpus")):
        title = "Agreement of attention and information"
        yield picture(
            f"{stem}-taus-{place}.svg",
            f"{title}: {corpus}",
            "1: every rank of attention tells more of the output than those below it. A box is over seeds.",
            tau_boxes(own, title=title, subtitle=str(corpus)),
        )
    if len(settings):
        title = "Flat attention and agreement"
        yield picture(
            f"{stem}-flatness.svg",
            title,
            "Each dot a training. The paper says that flat attention goes with little agreement: dots would"
            " fall to the right.",
            flatness_scatter(
                settings,
                flatness(settings, np.random.default_rng(0)),
                title=title,
                subtitle="all settings of the study",
            ),
        )
