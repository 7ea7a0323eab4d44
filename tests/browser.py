"""A real Chromium for the tests of the pages; where there is none they are skipped, with the reason."""

import shutil
from contextlib import contextmanager

import pytest

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")


@contextmanager
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield opened
        opened.close()
