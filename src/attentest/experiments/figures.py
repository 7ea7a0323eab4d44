"""The figures of every experiment that has some: `FIGURES` of its `charts.py`. Needs the extra `web`."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from attentest.charts.figure import Figure, Figures
from attentest.experiments.catalogue import CONCLUSIONS


def _figures(name: str) -> tuple[Figure, ...]:
    charts = f"attentest.experiments.{name.replace('-', '_')}.charts"
    if find_spec(charts) is None:
        return ()
    figures: tuple[Figure, ...] = getattr(importlib.import_module(charts), "FIGURES", ())
    return figures


FIGURES: Figures = {name: figures for name in CONCLUSIONS if (figures := _figures(name))}
