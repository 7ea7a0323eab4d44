"""Histograms in a terminal: the columns are as high as the shares, and nothing vanishes."""

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from attentest.terminal.charts import BLOCKS, HEIGHT, columns, paired_histograms


def eighths(lines, place):
    return sum(BLOCKS.index(line[place]) for line in lines)


def test_columns_are_as_high_as_their_shares():
    assert columns([0.0, 0.5, 1.0, 0.001], 1.0, height=2) == ["  █ ", " ██▁"]
    assert columns([0.25], 1.0, height=2) == [" ", "▄"]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(1, 8))
def test_every_column_is_its_share_of_the_height_to_an_eighth_of_a_line(shares, height):
    top = max(shares)
    lines = columns(shares, top, height)
    assert len(lines) == height and {len(line) for line in lines} == {len(shares)}
    for place, share in enumerate(shares):
        found = eighths(lines, place)
        if share == 0:
            assert found == 0
        else:
            assert found >= 1 and abs(found - 8 * height * share / top) <= 1


def test_two_histograms_share_one_scale():
    console = Console(width=60, file=io.StringIO(), record=True)
    shown = paired_histograms(
        [0.0, 1.0], [0.5, 0.5], headings=("a", "b\x1b[31m"), notes=("left", "right"), ends=("0", "", "1")
    )
    console.print(shown)
    lines = console.export_text().splitlines()
    drawn = lines[1 : 1 + HEIGHT]
    left, right = [line[2:4] for line in drawn], [line[8:10] for line in drawn]
    assert [line[1] for line in left] == ["█"] * HEIGHT and {line[0] for line in left} == {" "}
    assert [line for line in right] == ["  "] * 3 + ["██"] * 3
    assert "\x1b" not in "".join(lines) and lines[-1].split() == ["left", "right"]
