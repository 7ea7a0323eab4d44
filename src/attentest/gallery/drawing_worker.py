"""A process that draws the pages of grid points: `python -m attentest.gallery.drawing_worker`.

The first line it reads says which store and which studies; each further line is the file of a grid point, and
is answered by a line with all that was made of it. What goes wrong is answered by an empty object: whoever
asked draws that point again, and says what is wrong with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from attentest.compare.points import grid_points
from attentest.compare.stored import Stored
from attentest.compare.verdicts import judged
from attentest.gallery.page_writer import Writer
from attentest.gallery.point_files import Asked, point_files
from attentest.refusal import Refusal
from attentest.store.store import Store
from attentest.studies.recipe import Study


def main() -> None:
    """Draw until the input ends."""
    task: dict[str, Any] = json.loads(sys.stdin.readline())
    store = Store(task["store"])
    store.left_out.update(task["left_out"])
    points = grid_points(Stored(store))
    known = {name: Study.model_validate(study) for name, study in task["studies"].items()}
    said = [one for study in known.values() for one in judged(study, points)]
    here, asked, write = {point.file: point for point in points}, Asked(**task["asked"]), Writer()

    def drawn(file: str) -> Mapping[str, Any]:
        try:
            point = here[file]
            own = [one for one in said if one.point is point]
            made = point_files(write, point, own, known, **asked.of(point))
        except (Refusal, KeyError):
            return {}
        write.files |= {name: made.files[name] for name in made.files if name.startswith("data/texts-")}
        return vars(made)

    for line in sys.stdin:
        print(json.dumps(drawn(line.rstrip("\n"))), flush=True)


if __name__ == "__main__":
    main()
