"""Builds a site of all results: `python docs/gallery.py results gallery`; no corpora, models or GPU needed.

Each folder of findings becomes a store and a site of its own, and one page links them. They cannot share a
store: on a GPU the same settings and seed give another training, so two runs hold different numbers under
one key.
"""

import shutil
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

import pyarrow.parquet as pq

from attentest.cli.results import make_report
from attentest.store.importing import findings_files, import_several

PAGE = Path(__file__).with_name("gallery.html")


@dataclass(frozen=True)
class Run:
    """A folder of findings, and the name of its site."""

    folder: Path
    name: str

    def rows(self) -> list[str]:
        """A row of the front page for each file: its study, with a link to the study's page."""
        return [self._row(file) for file in findings_files(self.folder)]

    def _row(self, file: Path) -> str:
        columns = ["corpus", "seeds", "device"]
        table = pq.read_table(file, columns=columns).to_pandas()
        devices = sorted(
            {device for each in table["device"].map(tuple).unique() for device in each if device}
        )
        cells = (
            ", ".join(sorted(table["corpus"].unique())),
            str(table["seeds"].max()),
            ", ".join(devices) or "not recorded",
            f"{len(table):,}",
        )
        link = f'<a href="{self.name}/study-{escape(file.stem)}.html">{escape(title(file.stem))}</a>'
        told = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        site = f'<a href="{self.name}/index.html">{self.name}</a>'
        return f'<tr><th scope="row">{link}</th>{told}<td>{site}</td></tr>'


def title(study: str) -> str:
    """The title of a study of the package, or its name."""
    recipe = resources.files("attentest.studies") / f"{study}.toml"
    return str(tomllib.loads(recipe.read_text(encoding="utf-8"))["title"]) if recipe.is_file() else study


def runs(results: Path) -> list[Run]:
    """The folder itself and the folders in it that hold findings, by name."""
    inner = [folder for folder in sorted(results.iterdir()) if folder.is_dir()]
    return [Run(results, "results"), *(Run(folder, folder.name) for folder in inner)]


def build(results: Path, out: Path) -> list[Run]:
    """Write the sites and the page that links them; a folder of an earlier build is replaced."""
    shutil.rmtree(out, ignore_errors=True)
    found = runs(results)
    for run in found:
        with tempfile.TemporaryDirectory() as store:
            import_several([run.folder], store)
            make_report(out / run.name, store)
    rows = "\n".join(row for run in found for row in run.rows())
    (out / "index.html").write_text(
        PAGE.read_text(encoding="utf-8").format(first=found[0].name, rows=rows), encoding="utf-8"
    )
    return found


if __name__ == "__main__":
    done = build(Path(sys.argv[1]), Path(sys.argv[2]))
    print(f"{len(done)} runs. Open {Path(sys.argv[2]) / 'index.html'}")
