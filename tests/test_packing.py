"""A store as one file, and back: the same cells and bytes; a file that was changed is refused whole."""

import io
import json
import tarfile

import pytest

from attentest.cli.main import run
from attentest.refusal import Refusal
from attentest.store.cell import Cell
from attentest.store.checking import check
from attentest.store.packing import pack, unpack
from attentest.store.store import Store

FILES = {"model.safetensors": b"\x00weights\xff", "training.json": b"{}"}


def a_cell(seed):
    return Cell(stage="model", version=1, config={"seed": seed}, inputs={})


@pytest.fixture
def packed(store, tmp_path):
    for seed in range(3):
        store.write(a_cell(seed), FILES, {"seconds": 1.0})
    file = tmp_path / "store.tar"
    assert pack(store.url, file)["cells"] == 3
    return file


def test_a_store_comes_back_without_its_weights(store, packed, tmp_path):
    other = Store(tmp_path / "other")
    assert unpack(packed, other.url)["written"] == 3
    assert other.done() == store.done()
    for key in store.done():
        assert other.find("cells", key, "cell.json") == store.find("cells", key, "cell.json")
        assert other.read(key, "training.json") == b"{}" and not other.holds(key, "model.safetensors")
    assert check(other.url)["damaged"] == [] and check(other.url)["without_weights"] == 3
    assert unpack(packed, other.url)["written"] == 0


def test_the_same_store_gives_the_same_bytes_and_what_is_there_is_left_alone(store, packed, tmp_path):
    again = tmp_path / "again.tar"
    pack(store.url, again)
    assert again.read_bytes() == packed.read_bytes()
    assert unpack(packed, store.url)["written"] == 0
    assert all(store.is_whole(key) for key in store.done())


def changed(file, change):
    """The archive with its members, a list of name and content, changed."""
    with tarfile.open(file) as archive:
        members = [(each, archive.extractfile(each).read()) for each in archive]
    with tarfile.open(file, "w") as archive:
        for member, content in change(members):
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def named(name, kind=tarfile.REGTYPE, link=""):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


KEY = a_cell(7).key


@pytest.mark.parametrize(
    "change",
    [
        lambda members: [*members, (named("../outside.json"), b"{}")],
        lambda members: [*members, (named("/etc/passwd"), b"")],
        lambda members: [*members, (named(f"cells/{KEY}/../x.json"), b"")],
        lambda members: [*members, (named(f"cells/{KEY}/cell.json", tarfile.SYMTYPE, "/etc/passwd"), b"")],
        lambda members: [*members, (named(f"cells/{KEY}/rows.parquet"), b"rows")],
        lambda members: [*members, (named(f"cells/{KEY}/cell.json"), members[-1][1])],
        lambda members: [*members, *members[:2]],
        lambda members: [(each, content.replace(b"{}", b"[]")) for each, content in members],
        lambda members: [(each, content.replace(b'"seed": 1', b'"seed": 9')) for each, content in members],
    ],
)
def test_what_is_no_packed_store_is_refused_before_anything_is_written(packed, tmp_path, change):
    changed(packed, change)
    with pytest.raises(Refusal, match="whole and unchanged"):
        unpack(packed, str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def test_a_cut_archive_is_refused(packed, tmp_path):
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    with pytest.raises(Refusal, match="whole and unchanged"):
        unpack(packed, str(tmp_path / "other"))


def test_on_the_command_line_one_file_is_asked_for(store, packed, tmp_path, capsys):
    other = str(tmp_path / "other")
    assert run(["store", "import", str(packed), "--store", other, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] == 3
    assert run(["store", "export", "--store", store.url]) == 2
    assert "neither --findings nor --without-weights" in capsys.readouterr().err
    assert run(["store", "export", "--store", store.url, "--without-weights", str(tmp_path / "a.tar")]) == 0


def test_texts_that_need_credentials_are_packed_only_when_asked(store, tmp_path, capsys):
    store.write(
        Cell(stage="corpus", version=1, config={"name": "mimic-diabetes"}), {"corpus.json": b"{}"}, {}
    )
    words = ["store", "export", "--store", store.url, "--without-weights", str(tmp_path / "a.tar")]
    assert run(words) == 2 and "need credentials" in capsys.readouterr().err
    assert run([*words, "--include-text"]) == 0
