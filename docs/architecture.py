"""Draws docs/architecture.svg from the table of imports in tests/house.py: `python docs/architecture.py`."""

import sys
from html import escape
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from tests.house import MAY_IMPORT, torch_parts  # noqa: E402

HERE = Path(__file__).parent
WIDTH, HIGH, WIDE, GAP = 1080, 30, 168, 46


def parts():
    """The parts that are more than a helper of all others, without the two ends `__init__` and `__main__`."""
    return [part for part in MAY_IMPORT if part not in ("refusal", "notebook", "__init__", "__main__")]


def below(part, seen=None):
    """Every part that a part uses, directly or by way of others."""
    seen = set() if seen is None else seen
    for used in MAY_IMPORT[part] - seen:
        seen.add(used)
        below(used, seen)
    return seen


def depth(part):
    """How many parts lie below a part, one under the other."""
    return 1 + max((depth(used) for used in MAY_IMPORT[part]), default=-1)


def edges():
    """Who uses whom, without what follows from others."""
    for part in parts():
        direct = MAY_IMPORT[part]
        yield from (
            (part, used) for used in sorted(direct) if not any(used in below(o) for o in direct - {used})
        )


def places():
    """The corner of every box: a row for each depth, the highest on top."""
    rows = {}
    for part in parts():
        rows.setdefault(depth(part), []).append(part)
    for number, row in enumerate(sorted(rows, reverse=True)):
        left = (WIDTH - len(rows[row]) * (WIDE + 12)) / 2
        for place, part in enumerate(rows[row]):
            yield part, (left + place * (WIDE + 12), 10 + number * (HIGH + GAP))


def picture():
    """The drawing: boxes of parts, blue where torch is used, and a line down to each part they use."""
    at, torch = dict(places()), torch_parts()
    height = max(y for _, y in at.values()) + HIGH + 10
    lines = [
        f'<path d="M{at[a][0] + WIDE / 2:.0f} {at[a][1] + HIGH:.0f} L{at[b][0] + WIDE / 2:.0f} {at[b][1]:.0f}"/>'
        for a, b in edges()
    ]
    boxes = [
        f'<rect class="{"torch" if part in torch else "plain"}" x="{x:.0f}" y="{y:.0f}" width="{WIDE}" height="{HIGH}" rx="4"/>'
        f'<text x="{x + WIDE / 2:.0f}" y="{y + 19:.0f}">{escape(part)}</text>'
        for part, (x, y) in at.items()
    ]
    style = (
        "text{font:11.5px sans-serif;text-anchor:middle;fill:#111}path{stroke:#999;fill:none}"
        "rect{stroke:#555}.plain{fill:#f3f3f3}.torch{fill:#cfe2f7}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
    return "\n".join([head, f"<style>{style}</style>", *lines, *boxes, "</svg>", ""])


if __name__ == "__main__":
    (HERE / "architecture.svg").write_text(picture(), encoding="utf-8")
