"""A report that is served leads to the live page and to its models there; all else is as on disk."""

import numpy as np
import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.experiments.catalogue import CONCLUSIONS
from attentest.gallery import pictures
from attentest.gallery.site import build
from attentest.statistics.record import to_frame
from attentest.store.cell import Cell
from attentest.store.store import Store
from attentest.store.tables import to_parquet
from attentest.web.site import Pages, links, own_pages
from tests.browser import drawn, is_icon, patient_page
from tests.observed import importance_rows
from tests.serving import application, fetched, put_model, served

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.browser
PAGE, SCRIPT = "toy-bilstm-additive.html", "scripts/served.js"
AXES = {"corpus": "toy", "encoder": "bilstm", "attention": "additive", "projection": "softmax"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A store of two seeds, of which the weights of one are held; its report; the key that can be asked."""
    store = Store(tmp_path_factory.mktemp("served") / "store")
    key, _ = put_model(store, encoder="bilstm")
    rows, inputs = importance_rows(), {}
    for seed, model in ((0, key), (1, "f" * 64)):
        about = {"experiment": "importance", "mode": "corrected", "parameters": {}}
        seen = Cell(stage="observation", version=1, config=about, inputs={"model": model})
        own = rows[rows["seed"] == seed].drop(columns="seed")
        store.write(seen, {"rows.parquet": to_parquet(own.to_dict("records"))}, {})
        inputs[f"seed {seed}"] = seen.key
    finding = Cell(stage="finding", version=1, config={**about, **AXES, "model": {}}, inputs=inputs)
    concluded = CONCLUSIONS["importance"].conclude(rows, mode="corrected", rng=np.random.default_rng(0))
    store.write(finding, {"findings.parquet": to_parquet(to_frame(concluded))}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", {})
        files = build(store.url, {}, version="1")
    return store, files, key


@pytest.fixture(scope="module")
def address(site):
    store, files, key = site
    pages = {name: text.encode() for name, text in files.items()} | links([key])
    with served(application(store, pages=pages)) as here:
        yield here


@pytest.fixture
def page(browser, address):
    complaints = []
    with patient_page(browser, base_url=f"http://{address}/") as opened:
        opened.on("console", lambda said: is_icon(said.location["url"]) or complaints.append(said.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        yield opened
        assert not complaints


def test_a_models_page_leads_to_its_model_on_the_live_page_and_back(page, site):
    *_, key = site
    page.goto(PAGE)
    asks = drawn(page).locator("[data-live] a")
    expect(asks).to_have_count(1)  # the weights of the other seed are not here
    asks.click()
    page.wait_for_url(f"**/live.html#model={key}")
    expect(page.locator("#model")).to_have_value(key)
    page.get_by_role("link", name="Results").click()
    page.wait_for_url("**/index.html")
    page.locator("nav.pages").get_by_role("link", name="Live").click()
    page.wait_for_url("**/live.html")


def test_a_page_that_waits_for_the_report_shows_it_when_it_is_there(site, browser):
    store, files, _ = site
    pages = Pages(own_pages())
    with (
        served(application(store, pages=pages)) as here,
        patient_page(browser) as page,
    ):
        page.goto(f"http://{here}/{PAGE}")
        expect(page.locator("h1")).to_have_text("One moment")
        pages.show({name: text.encode() for name, text in files.items()})
        expect(page.locator("nav.pages")).to_be_visible()
        assert page.url == f"http://{here}/{PAGE}"


def test_only_one_script_differs_from_the_report(address, site):
    _, files, key = site
    for name, text in files.items():
        told = fetched(address, f"/{name}")[2].decode()
        assert (told == text) is (name != SCRIPT), name
    assert key in fetched(address, f"/{SCRIPT}")[2].decode() and key not in files[SCRIPT]


def test_a_key_cannot_become_markup_or_another_address():
    hostile = '"];alert(1)//</script>'
    [(name, script)] = links([hostile]).items()
    assert name == SCRIPT and b'"\\"];alert(1)//</script>"' in script
