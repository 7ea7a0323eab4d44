"""A real Chromium for the tests of the pages; where there is none they are skipped, with the reason.

A page answers when it can: a click is over before what it draws is there. So whatever a test reads after it
did something it waits for, as a condition; the patience below is for machines that are busy with other work.
"""

import shutil
import time
from contextlib import contextmanager

import pytest

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")
PATIENCE = 180.0  # seconds


@contextmanager
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("Chromium is not installed")
    sync_api.expect.set_options(timeout=PATIENCE * 1000)
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield opened
        opened.close()


@contextmanager
def patient_page(browser, **options):
    """A page in a context of its own, whose waits end when what they wait for is there."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    try:
        yield context.new_page()
    finally:
        context.close()


def is_icon(address):
    """The browser asks for the icon by itself, late, and gives it up or loses it when page or server end."""
    return address.endswith("/icon.svg")


def until(page, met):
    """Go on once `met()` holds: for conditions that are no element's."""
    end = time.monotonic() + PATIENCE
    while not met():
        assert time.monotonic() < end, "what the test waits for has not come"
        page.wait_for_timeout(20)  # lets the page's messages in


def drawn(page):
    """Go on once every view of the page has been filled."""
    filled = "performance.getEntriesByName('open').length === document.querySelectorAll('[data-view]').length"
    until(page, lambda: page.evaluate(filled))
    return page
