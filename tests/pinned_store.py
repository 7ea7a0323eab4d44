"""A store with every experiment of the catalogue, made by the code of one commit and kept as a fixture.

`python -m tests.pinned_store` makes it anew in about a minute; with the word `findings` it concludes anew
from the rows that are there, as where a conclusion got a higher version. It runs the studies of
`tests/data/pinned` on corpora of a few texts, writes the store's files into one archive and what its pages
show into another. Model weights are left out, and what differs between two runs (time, host, seconds) is made
the same. The archive is made anew only together with a change of a version, of an experiment or of what a
page shows.
"""

import io
import json
import lzma
import re
import shutil
import sys
import tarfile
import tempfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd

from attentest.bench.conclusion import conclude
from attentest.bench.corpora import corpus_cell
from attentest.bench.plan import Planner
from attentest.bench.verbs import run_study
from attentest.corpus.catalogue import load_corpus
from attentest.corpus.files import to_files
from attentest.gallery.site import build
from attentest.store.store import Store
from attentest.store.tables import to_parquet
from attentest.studies.recipe import load_study

FOLDER = Path(__file__).parent / "data" / "pinned"
ARCHIVE = FOLDER / "store.tar.xz"
PAGES = FOLDER / "pages.json.xz"
STUDIES = tuple(str(FOLDER / f"{name}.toml") for name in ("pinned", "pinned-questions", "pinned-calibration"))
CUT = {"babi-1-simulated": 16}  # corpora without a parameter for their size, and texts of each split
PROSE = ("says", "heads", "title", "name", "direction", "command")  # fields of what a page takes
IDENTIFIER = re.compile(r"[a-z0-9@.,=()/+_-]+")
PART = "bilstm"  # the encoder whose models' pages are looked at more often than all
LEFT_OUT = ("model.safetensors",)
SAME = {"written": "2000-01-01T00:00:00+00:00", "host": "pinned", "torch": "pinned", "seconds": 1.0}


def put_cut_corpora(store):
    """Corpora cut small stand under the keys of the whole ones, so that no study prepares the whole ones."""
    for name, texts in CUT.items():
        whole = load_corpus(name)
        small = replace(whole, **{split: some[:texts] for split, some in whole.splits().items()})
        store.write(corpus_cell(name), to_files(small), {})


def run_studies(url, studies=STUDIES):
    """All cells of the studies, in this process and on a CPU."""
    for study in studies:
        done = run_study(study, url, engine="inline", device="cpu")
        assert done["failed"] == [], done["failed"]


def unpack(folder):
    """The stored archive as a store in that folder; gives its URL."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return str(folder)


def corpora_of(url, other):
    """A store at `other` that has the corpora of the store at `url` and nothing else."""
    store = Store(url)
    for key in store.done():
        if store.about(key)["stage"] == "corpus":
            shutil.copytree(Path(url) / "cells" / key, Path(other) / "cells" / key)
    return str(other)


def part_of(url, other, encoder):
    """A store at `other` with the findings of one encoder's models and whatever they were made from."""
    store = Store(url)
    cells = {key: store.cell(key) for key in store.done()}
    wanted = {
        key
        for key, cell in cells.items()
        if cell.config.get("encoder") == encoder and cell.stage == "finding"
    }
    more = wanted
    while more:
        more = {key for one in more for key in cells[one].inputs.values()} - wanted
        wanted |= more
    for key in wanted:
        shutil.copytree(Path(url) / "cells" / key, Path(other) / "cells" / key)
    return str(other)


def same_findings(found, stored, of="findings"):
    """Everything but fractions exactly; those to nine digits, since processors round the last bits."""
    fractions = [name for name in stored if stored[name].dtype.kind == "f"]
    pd.testing.assert_frame_equal(found[fractions], stored[fractions], rtol=1e-9, atol=1e-12, obj=of)
    rest = [name for name in stored if name not in fractions]
    pd.testing.assert_frame_equal(found[rest], stored[rest], check_exact=True, obj=of)
    assert [*found.columns] == [*stored.columns], of


def pages_of(url):
    """What the report of a store shows: by file, the identifiers and the numbers on it, and no prose."""
    files = build(url, {}, version="0", studies=STUDIES)
    return {name: shown(name, content) for name, content in sorted(files.items()) if not _is_shared(name)}


def _is_shared(name):
    """Whether every report has this file, whatever the store holds."""
    of_package = name.startswith("study-") and not name.startswith("study-pinned")
    always = ("scripts/", "calibration", "data/figures-calibration")  # its tables come with the package
    return of_package or name.startswith(always) or name in ("style.css", "icon.svg")


def shown(name, content):
    """The identifiers and numbers of one file."""
    if name.endswith(".html"):
        page = _Page()
        page.feed(content)
        return {"ids": page.ids, "numbers": page.numbers}
    if name.startswith("data/figures-"):
        return _drawn(_handed(content))
    if name.endswith(".js"):
        return _without_prose(_handed(content))
    return None  # a drawing: its data are in the script of the same name


def _handed(script):
    """The value that a script hands to a page: `attentest.take(name, value);`."""
    return json.loads("[" + script.strip().removeprefix("attentest.take(").removesuffix(");") + "]")[1]


def _drawn(specification):
    """The numbers that a Vega-Lite figure draws: a list for each row, without the names of its columns."""
    tables = [
        [sorted(value for value in row.values() if _is_number(value)) for row in table]
        for table in specification.get("datasets", {}).values()
    ]
    return sorted(tables, key=json.dumps)


def _is_number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without_prose(value):
    """The same structure with its numbers, truths and identifiers; whatever a reader reads becomes null."""
    if isinstance(value, list):
        return [_without_prose(each) for each in value]
    if not isinstance(value, dict):
        return None if isinstance(value, str) and not IDENTIFIER.fullmatch(value) else value
    if "$schema" in value:
        return _drawn(value)
    return {
        key: _without_prose(_of_ours(each) if key == "studies" else each)
        for key, each in value.items()
        if key not in PROSE
    }


def _of_ours(studies):
    """Of studies by their name those of this store; a page also names all that come with the package."""
    own = [name for name in studies if name.startswith("pinned")]
    return {name: studies[name] for name in own} if isinstance(studies, dict) else own


class _Page(HTMLParser):
    """The ids of a page in their order, and what stands in its tables as numbers and no words."""

    def __init__(self):
        super().__init__()
        self.ids, self.numbers, self._cell = [], [], None

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "td":
            self._cell = ""

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        if tag == "td" and self._cell is not None:
            cell, self._cell = " ".join(self._cell.split()), None
            if re.search(r"\d", cell) and not re.search("[A-Za-z]", cell.replace(" to ", "")):
                self.numbers.append(cell)


def _plain(member, content):
    """A file of the store as it is archived: descriptions say nothing that differs between runs."""
    if not member.endswith("/cell.json"):
        return content
    about = json.loads(content)
    about |= {name: value for name, value in SAME.items() if name in about}
    about.pop("checksum", None)  # of what it said before
    return json.dumps(about, indent=1, sort_keys=True, ensure_ascii=False).encode()


def _pack(url):
    with lzma.open(ARCHIVE, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(Path(url).glob("cells/*/*")):
            if path.name not in LEFT_OUT:
                member = path.relative_to(url).as_posix()
                content = _plain(member, path.read_bytes())
                entry = tarfile.TarInfo(member)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))


def written_pages():
    """What the pages showed when the archive was made: of the whole store, and of the models of `PART`."""
    return json.loads(lzma.decompress(PAGES.read_bytes()))


def _conclude_anew(url):
    """Finding cells of today's versions, from the stored rows, in place of those of earlier ones."""
    store = Store(url)
    planner = Planner(store, device="cpu")
    planned = {cell.key: cell for study in STUDIES for cell in planner.study(load_study(study))}
    for key in store.done():
        if store.cell(key).stage == "finding" and key not in planned:
            shutil.rmtree(Path(url) / "cells" / key)
    for cell in planned.values():
        if not store.is_whole(cell.key):
            store.write(cell, {"findings.parquet": to_parquet(conclude(cell, store))}, {})


def main():
    """Make both archives; with the word `findings` from the stored rows, with `pages` only that of pages."""
    with tempfile.TemporaryDirectory() as folder:
        made = f"{folder}/made"
        if not sys.argv[1:]:
            put_cut_corpora(Store(made))
            run_studies(made)
            _pack(made)
        elif sys.argv[1:] == ["findings"]:
            _conclude_anew(unpack(Path(made)))
            _pack(made)
        url = unpack(Path(folder) / "unpacked")
        part = part_of(url, f"{folder}/part", PART)
        both = {"whole": pages_of(url), "part": pages_of(part)}
        spelled = json.dumps(both, indent=0, sort_keys=True, ensure_ascii=False)
        PAGES.write_bytes(lzma.compress(spelled.encode()))


if __name__ == "__main__":
    main()
