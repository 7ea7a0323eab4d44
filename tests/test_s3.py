"""A store in an object store, behind a real S3 server on loopback: the same cells, bytes and sentences."""

import json
import os
import socket
import subprocess
import sys
import threading

import pytest

pytest.importorskip("s3fs", reason="needs the extra s3")
pytest.importorskip("moto.server", reason="needs the extra dev")

import fsspec
from moto.server import ThreadedMotoServer

from attentest.bench.conclusion import conclude_all, list_cells
from attentest.bench.corpora import corpus_cell
from attentest.bench.verbs import run_study
from attentest.cli.main import run
from attentest.corpus.files import to_files
from attentest.refusal import Refusal
from attentest.store import index
from attentest.store.cell import Cell
from attentest.store.checking import check
from attentest.store.store import Store
from tests.toy_study import data_files, toml

FILES = {"model.safetensors": b"\x00weights\xff", "training.json": b"{}"}
SECRET = "never-to-be-seen"


class Line:
    """A way to the server that breaks the first connections it carries, once it has seen a request."""

    def __init__(self, port):
        self.port, self.breaks, self.broken = port, 0, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(caller,), daemon=True).start()

    def _carry(self, caller):
        with caller, socket.create_connection(("127.0.0.1", self.port)) as server:
            if self.broken < self.breaks:
                self.broken += 1
                caller.recv(1)
                return
            back = threading.Thread(target=self._copy, args=(server, caller), daemon=True)
            back.start()
            self._copy(caller, server)
            back.join(5)

    @staticmethod
    def _copy(source, target):
        try:
            while part := source.recv(1 << 16):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture(scope="module")
def line():
    os.environ["MOTO_S3_DEFAULT_MAX_KEYS"] = "7"  # pages of a listing, so that a few cells need several
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    between = Line(server.get_host_and_port()[1])
    yield between
    between.listener.close()
    server.stop()


@pytest.fixture
def url(line, monkeypatch, tmp_path):
    """The URL of a store that nobody has written to; credentials are where AWS tools look for them."""
    known = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    known |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{line.listener.getsockname()[1]}"}
    known |= {"ATTENTEST_CACHE": str(tmp_path / "cache"), "AWS_EC2_METADATA_DISABLED": "true"}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    fsspec.config.conf.clear()
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.clear_instance_cache()
    files = fsspec.filesystem("s3", use_listings_cache=False)
    files.mkdir(f"bucket-{tmp_path.name.replace('_', '-')[:40].lower()}")
    yield f"s3://bucket-{tmp_path.name.replace('_', '-')[:40].lower()}/some/store"
    files.clear_instance_cache()


def a_cell(seed):
    return Cell(stage="model", version=1, config={"seed": seed}, inputs={"corpus": "0" * 64})


def test_cells_come_back_and_are_listed_in_pages(url, monkeypatch):
    store = Store(url)
    with pytest.raises(Refusal, match="no such folder"):
        store.existing()
    cells = [a_cell(n) for n in range(8)]
    for cell in cells:
        store.write(cell, FILES, {"seconds": 1.0})
    other = Store(url).existing()
    assert other.done() == sorted(cell.key for cell in cells)
    assert {name: other.read(cells[0].key, name) for name in FILES} == FILES
    monkeypatch.setattr(index, "WORTH", 1)
    for _ in range(2):
        assert dict(Store(url).descriptions()) == {key: other.about(key) for key in other.done()}
    assert other.find(index.INDEX) is not None


def test_a_reader_never_sees_half_a_cell_and_a_half_written_one_is_written_again(url, monkeypatch):
    store, cell = Store(url), a_cell(0)
    written = []
    real = store.files.pipe_file

    def pipe(path, content):
        reader = Store(url)
        assert not reader.has(cell.key) and reader.done() == [] and not reader.descriptions()
        written.append(path.rpartition("/")[2])
        if len(written) == 2:
            raise KeyboardInterrupt
        real(path, content)

    monkeypatch.setattr(store.files, "pipe_file", pipe)
    with pytest.raises(KeyboardInterrupt):
        store.write(cell, FILES, {})
    monkeypatch.undo()
    assert not Store(url).has(cell.key) and check(url)["damaged"] == []
    Store(url).write(cell, FILES, {})
    assert Store(url).is_whole(cell.key)


@pytest.mark.slow
def test_two_writers_of_one_cell_agree(url):
    start = threading.Barrier(4)

    def write():
        start.wait()
        Store(url).write(a_cell(0), FILES, {})

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert {name: Store(url).read(a_cell(0).key, name) for name in FILES} == FILES
    assert check(url)["damaged"] == []


@pytest.mark.slow
def test_a_damaged_cell_is_set_aside_there_too(url):
    store, cell = Store(url), a_cell(0)
    store.write(cell, FILES, {})
    store.write(a_cell(1), FILES, {})
    store.files.pipe_file(store.folder.path("cells", cell.key, "cell.json"), b"{}")
    listed = list_cells(url)
    assert [entry["cell"] for entry in listed["damaged"]] == [cell.key]
    assert [entry["cell"] for entry in listed["cells"]] == [a_cell(1).key]
    assert Store(url).set_aside() == {cell.key}


@pytest.mark.slow
def test_what_was_read_once_is_not_fetched_again_and_a_damaged_copy_is(url, monkeypatch, tmp_path):
    store, key = Store(url), a_cell(0).key
    store.write(a_cell(0), FILES, {})
    assert store.read(key, "model.safetensors") == FILES["model.safetensors"]
    fetched = []
    real = store.files.cat_file
    monkeypatch.setattr(store.files, "cat_file", lambda path: fetched.append(path) or real(path))
    assert store.read(key, "model.safetensors") == FILES["model.safetensors"]
    assert not [path for path in fetched if path.endswith("safetensors")]
    [copy] = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    copy.write_bytes(b"damaged")
    assert store.read(key, "model.safetensors") == FILES["model.safetensors"]
    assert len([path for path in fetched if path.endswith("safetensors")]) == 1


@pytest.mark.slow
def test_a_cut_connection_is_tried_again(url, line):
    line.broken, line.breaks = 0, 2
    store = Store(url)
    store.files.clear_instance_cache()
    Store(url).write(a_cell(0), FILES, {})
    assert Store(url).is_whole(a_cell(0).key)
    line.breaks = 0


@pytest.mark.slow
def test_an_object_store_that_does_not_answer_is_refused_without_a_word_of_credentials(
    url, monkeypatch, capsys
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    fsspec.filesystem("s3").clear_instance_cache()
    assert run(["list", "--store", url]) == 2
    said = capsys.readouterr().err
    assert "does not answer as it should" in said and SECRET not in said and "Traceback" not in said


@pytest.mark.slow
def test_a_bucket_that_is_not_there_and_credentials_in_a_url_are_refused(url):
    with pytest.raises(Refusal, match="no such bucket"):
        Store("s3://nobody-has-this-bucket/store").write(a_cell(0), FILES, {})
    with pytest.raises(Refusal, match="credentials in it") as refused:
        Store(f"s3://test:{SECRET}@bucket/store")
    assert SECRET not in str(refused.value)


WITHOUT = """
import sys
sys.modules["s3fs"] = None
from attentest.store.store import Store
try:
    Store("s3://bucket/store")
except ValueError as refusal:
    print(refusal)
"""


def test_without_s3fs_the_line_that_installs_it_is_said():
    said = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert "pip install 'attentest[s3]'" in said.stdout


@pytest.mark.slow
def test_a_study_in_an_object_store_has_the_bytes_of_one_in_a_folder(url, tmp_path, planted):
    folder, recipe = str(tmp_path / "folder"), toml(tmp_path)
    for place in (url, folder):
        Store(place).write(corpus_cell("planted-keyword"), to_files(planted), {})
        said = run_study(recipe, place, engine="inline", device="cpu")
        assert said["failed"] == []
    assert data_files(url) == data_files(folder)
    assert conclude_all(url)["same"] == conclude_all(folder)["same"]
    told = [Store(url).find("cells", key, "cell.json").decode() for key in Store(url).done()]
    assert SECRET not in json.dumps(told)
