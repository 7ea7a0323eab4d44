"""Fixtures: randomness, a planted corpus, an empty store, a browser. No test reaches the network."""

import os

os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("ATTENTEST_FSYNC", "0")  # stores of tests are scratch

import tests.checked  # noqa: F401  # isort: skip  # before anything of the package is imported

import socket
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from attentest.auditing.questions import BUDGETS
from attentest.bench.corpora import corpus_cell
from attentest.corpus.catalogue import load_corpus
from attentest.corpus.files import to_files
from attentest.store.store import Store
from tests.browser import chromium
from tests.drawn import drawn_once
from tests.shared import folder_of_the_run

# Assertions in these explain themselves as those of tests do.
pytest.register_assert_rewrite("tests.adversarial", "tests.findings_rules", "tests.fleets")

# Tests are about what comes out, never about the clock: a first call may import half of scipy.
settings.register_profile(
    "attentest", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
# `pytest -m "slow or hypothesis" --hypothesis-profile thorough`, as .ci/run does, looks further.
settings.register_profile("thorough", settings.get_profile("attentest"), max_examples=300)
settings.load_profile("attentest")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    connect = socket.socket.connect

    def guarded(self, address):
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise OSError(f"a test tried to reach {address[0]}; tests stay on loopback")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _own_data(monkeypatch, tmp_path):
    """The user's own data directory is empty: no test reads or writes registrations of whoever runs it."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))


@pytest.fixture(scope="session", autouse=True)
def _drawn_once(tmp_path_factory):
    """The processes of a run share their drawings; without the extra there are none."""
    if find_spec("vl_convert") is None:
        yield
        return
    folder = folder_of_the_run(tmp_path_factory) / "drawn"
    folder.mkdir(exist_ok=True)
    with drawn_once(folder):
        yield


@pytest.fixture
def drawn_afresh(monkeypatch):
    """Figures are drawn again, as they are for users."""
    vl_convert = pytest.importorskip("vl_convert")
    monkeypatch.setattr(vl_convert, "vegalite_to_svg", vl_convert.vegalite_to_svg.__wrapped__)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def planted():
    """planted-keyword, small: one word decides, so a model learns it in seconds."""
    whole = load_corpus("planted-keyword")
    return replace(whole, train=whole.train[:400], dev=whole.dev[:100], test=whole.test[:100])


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of a process; each test opens pages in a context of its own."""
    with chromium() as opened:
        yield opened


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def short_search():
    """Of an audit's search for other attention there are few steps, which took most of its time.

    For tests of all that surrounds the questions: they have `usefixtures("short_search")`.
    """
    whole = BUDGETS["quick"]
    BUDGETS["quick"] = replace(whole, searched=4, steps=5)
    yield
    BUDGETS["quick"] = whole


@pytest.fixture
def few_planted(store, planted):
    """The store holds planted-keyword with a few hundred texts: what is planned is the same, only quicker."""
    store.write(corpus_cell("planted-keyword"), to_files(planted), {})
