"""What the bars of a study count."""

import pytest

from attentest.bench.engine.contract import Event
from attentest.store.cell import Cell
from attentest.terminal.progress import ProgressBars

SAID = {"epoch": 1, "epochs": 2, "fraction": 0.5, "loss": 0.1, "dev": 0.9}


@pytest.fixture
def bars():
    cells = [Cell(stage="model", version=1, config={"seed": seed}, inputs={}) for seed in (0, 1)]
    bars = ProgressBars("a study")
    bars.planned({cell.key: cell for cell in cells})
    for cell in cells:
        bars.heard(Event("begun", cell.key))
    return bars


def share(bars):
    return bars.bars.tasks[0].percentage / 100


def test_half_of_one_of_two_is_a_quarter(bars):
    bars.heard(Event("progress", next(iter(bars.cells)), SAID))
    assert share(bars) == pytest.approx(0.25)


@pytest.mark.parametrize("kind", ["retried", "postponed"])
def test_what_must_be_done_again_is_not_done_and_counts_once_it_is(bars, kind, capsys):
    first, second = bars.cells
    bars.heard(Event("progress", first, SAID))
    bars.heard(Event(kind, first, {"error": "no memory"}))
    assert share(bars) == 0 and "no memory" in capsys.readouterr().err
    bars.heard(Event("done", first))  # the same worker went on with it, so it was not begun again
    bars.heard(Event("done", second))
    assert share(bars) == pytest.approx(1) and len(bars.bars.tasks) == 1
