"""The gallery in a real Chromium: brush, keys, addresses, files, one file; no complaint, nothing fetched."""

import csv
import io
import re
from xml.etree import ElementTree

import pytest

pytest.importorskip("altair")
pytest.importorskip("jinja2")
pytest.importorskip("vl_convert")

from attentest.experiments.figures import FIGURES
from attentest.gallery import pictures
from attentest.gallery.folder import publish
from attentest.gallery.single import single
from attentest.gallery.site import build
from attentest.notebook import harmless
from attentest.store.store import Store
from tests.browser import drawn, patient_page, until
from tests.gallery import HOSTILE
from tests.gallery_texts import LONG, put_failure, put_texts

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.browser
TEXTS = "explore-mine-bilstm-additive.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory, browser):
    """A report on disk with one figure a model, and the same as one file."""
    folder = tmp_path_factory.mktemp("site")
    store = Store(folder / "store")
    put_texts(store)
    put_failure(store, "out of <b>memory</b>")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "FIGURES", {"permutation": FIGURES["permutation"][:1]})
        files = build(store.url, {"mine": "here"}, version="1")
    publish(files, folder / "pages")
    (folder / "one.html").write_text(single(files), encoding="utf-8")
    return folder


class Seen:
    """A page, and everything that it said or asked for."""

    def __init__(self, page, folder):
        self.page, self.folder, self.complaints, self.asked = page, folder, [], []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.asked.append(request.url))

    def _failed(self, request):
        if request.failure != "net::ERR_ABORTED":  # we had gone on to another page
            self.complaints.append(request.url)

    def go(self, name, state="", file="pages"):
        self.page.goto("about:blank")
        path = self.folder / file / name if file == "pages" else self.folder / file
        self.page.goto(path.as_uri() + (f"#{state}" if state else ""))
        return self.page

    def saved(self, button):
        with self.page.expect_download() as coming:
            button.click()
        return coming.value.path().read_bytes()


@pytest.fixture
def seen(browser, site):
    with patient_page(browser, viewport={"width": 1280, "height": 900}) as page:
        told = Seen(page, site)
        yield told
    assert not told.complaints
    assert all(url.startswith(("file:", "data:", "blob:", "about:")) for url in told.asked)


def rows(page, table):
    return page.locator(f"table.{table} tbody tr")


def state(page):
    return page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.slice(1)))")


def addressed(page, wanted):
    """Go on once the address says so."""
    until(page, lambda: wanted.items() <= state(page).items())


def brushable(page):
    """The scatter, once it is drawn and listens."""
    chart = page.locator(".chart:not([aria-busy=true]) canvas")
    chart.wait_for()
    return chart


# --- the explorer


def lengths(page):
    return [int(c.replace(",", "")) for c in page.locator("table.texts td:nth-child(4)").all_inner_texts()]


def test_filters_narrow_the_table_and_are_in_the_address(seen):
    page = seen.go(TEXTS)
    page.get_by_text("40 of 40 texts").wait_for()
    page.get_by_label("length, least").fill("200")
    page.get_by_label("length, least").press("Tab")
    addressed(page, {"in.length": "200~"})
    page.get_by_role("button", name="length").click()
    expect(page.locator("table.texts th[aria-sort=descending]")).to_have_count(1)
    shown = lengths(page)
    assert shown and min(shown) >= 200 and shown == sorted(shown, reverse=True)
    assert state(page) == {"in.length": "200~", "sort": "length"}
    again = drawn(seen.go(TEXTS, "in.length=200~&sort=length"))
    assert lengths(again) == shown
    again.get_by_role("button", name="Clear all").click()
    again.get_by_text("40 of 40 texts").wait_for()


@pytest.mark.parametrize("end", [(0.7, 0.6), (1.05, 1.1)], ids=["within", "beyond the edge"])
def test_a_brush_over_the_points_keeps_their_texts(seen, end):
    page = seen.go(TEXTS)
    box = brushable(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end[0], box["y"] + box["height"] * end[1], steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile(r"in.jsd"))
    low, high = (float(end) for end in state(page)["in.jsd"].split("~"))
    cells = page.locator("table.texts tbody tr")
    cells.first.wait_for()
    heads = page.locator("table.texts thead th").all_inner_texts()
    column = next(n for n, head in enumerate(heads) if "ε-max" in head)
    values = [float(row.locator("th, td").nth(column).inner_text()) for row in cells.all()]
    assert 0 < len(values) < 40 and all(low - 1e-3 <= value <= high + 1e-3 for value in values)


def test_texts_are_read_with_keys_and_every_weighting_is_beside_its_effect(seen):
    page = drawn(seen.go(TEXTS, "whole=yes"))
    page.keyboard.press("j")
    page.locator(".strips .column").first.wait_for()
    first = state(page)["text"]
    assert first == harmless(HOSTILE.id), "hostile names are names"
    assert page.locator(".strips bdi.word").first.inner_text() == harmless(HOSTILE.token)
    for _ in range(2):
        page.keyboard.press("j")
    page.wait_for_url(re.compile(r"t0002"))
    page.get_by_role("heading", name="t0002").wait_for()
    lanes = [
        "attention",
        "gradient",
        "leave-one-out",
        "one permutation",
        "search",
        "exact adversary",
        "uniform",
    ]
    assert list(effects(page)) == [*lanes, "human rationale"]
    assert not [cells for cells in effects(page).values() if cells[1] == "not asked"]
    page.keyboard.press("k")
    page.wait_for_url(re.compile(r"t0001"))


def effects(page):
    """By the name of each weighting: what is said under it, how far the output moves, what else is known."""
    rows = page.locator("table.effects tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.children].map(cell => cell.innerText))"
    )
    return {name: cells for name, *cells in rows}


def test_where_no_model_was_asked_the_strip_says_so_and_an_adversary_says_its_bound(seen):
    asked, not_asked = TEXTS, TEXTS.replace("bilstm", "average")
    page = seen.go(asked, "text=t0002")
    page.locator(".strips .column").first.wait_for()
    told, flips = effects(page), page.locator("table.effects td.wrong")
    own = told["attention"][0]
    assert flips.all_inner_texts() == [says for says, *_ in told.values() if says.endswith(" (flips)")]
    for name in ("uniform", "one permutation", "gradient", "leave-one-out", "human rationale"):
        says, moved, _ = told[name]
        assert 0 <= float(moved) <= 1 and says in (own, f"{'no' if own != 'no' else HOSTILE.label} (flips)")
    for name in ("search", "exact adversary"):
        assert told[name][:2] == ["–", "≤ 0.01"] and told[name][2].startswith("JSD from attention 0.")
    page = seen.go(not_asked, "text=t0002")
    page.locator(".strips .column").first.wait_for()
    told = effects(page)
    assert told["uniform"][:2] == told["one permutation"][:2] == ["–", "not asked"]


def test_every_seed_has_its_own_texts_and_address_and_comes_when_it_is_asked_for(seen):
    page = drawn(seen.go(TEXTS, "text=t0003"))
    page.locator(".strips .column").first.wait_for()
    first = effects(page)
    assert not [url for url in seen.asked if "seed-1" in url]
    page.get_by_label("Seed", exact=True).select_option("1")
    addressed(page, {"seed": "1", "text": "t0003"})
    until(page, lambda: effects(page) != first)
    second = effects(page)
    assert [url for url in seen.asked if url.endswith("-seed-1.js")]
    page.locator("h1").click()  # away from the choice, whose keys are its own
    page.keyboard.press("j")
    page.get_by_role("heading", name="t0004").wait_for()
    page.keyboard.press("k")
    page.get_by_role("heading", name="t0003").wait_for()
    again = seen.go(TEXTS, "text=t0003&seed=1")
    again.locator(".strips .column").first.wait_for()
    assert effects(again) == second
    expect(again.get_by_label("Seed", exact=True)).to_have_value("1")
    again.get_by_label("Seed", exact=True).select_option("0")
    until(again, lambda: effects(again) == first)
    assert "seed" not in state(again)
    strange = seen.go(TEXTS, "text=t0003&seed=77")
    strange.locator(".strips .column").first.wait_for()
    assert effects(strange) == first, "a seed that is not there is the first"


def test_filters_and_a_brush_narrow_together_and_the_keys_stay_within(seen):
    page = seen.go(TEXTS, "in.jsd=0.02~0.6&in.max_attention=0~1&label=no&in.tau_gradient=0.05~&whole=yes")
    brushable(page)
    data = page.evaluate("attentest.need('mine-bilstm-additive')")
    kept = [
        name
        for n, name in enumerate(data["ids"])
        if data["labels"][data["label"][n]] == "no"
        and data["whole"][n]
        and 0.02 <= (data["numbers"]["jsd"][n] or -1) <= 0.6
        and (data["numbers"]["tau_gradient"][n] or -1) >= 0.05
    ]
    assert 1 < len(kept) < 40
    expect(page.locator("table.texts tbody th small bdi")).to_have_text(kept)
    for name in (*kept, kept[-1]):  # and no further
        page.keyboard.press("j")
        page.get_by_role("heading", name=name, exact=True).wait_for()
        addressed(page, {"text": name})
    expect(page.locator("section.text")).not_to_contain_text("outside the filters")
    page = seen.go(TEXTS, "text=t0039&whole=yes")
    expect(page.locator("section.text")).to_contain_text("outside the filters")


def test_a_text_of_four_thousand_words_opens_folds_and_is_filled_as_one_scrolls(seen):
    page = seen.go(TEXTS, "text=t0001&fold=no")
    page.locator(".strips .column").first.wait_for()
    filled = page.locator(".strips .column").count()
    assert 0 < filled < LONG / 2, "only what is near is drawn"
    page.locator(".strips").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".readout")).to_contain_text("word2 (3 of 4000): attention 0.000")
    written = seen.saved(page.locator("section.text button[data-export=csv]"))
    table = list(csv.reader(io.StringIO(written.decode())))
    assert len(table) == LONG + 1 and table[0][:3] == ["place", "word", "attention"]
    assert sum(float(row[2]) for row in table[1:]) == pytest.approx(1, abs=0.05)
    again = seen.go(TEXTS, "text=t0001")
    again.get_by_label("fold what no lane weighs").wait_for()
    expect(again.locator(".strips")).to_contain_text("word")


def test_where_sentences_are_weighed_a_column_is_a_sentence(seen):
    page = seen.go(TEXTS, "text=t0004")
    page.locator(".strips .column").first.wait_for()
    assert page.locator(".strips bdi.word").all_inner_texts() == ["not good4", "at all fine"]


def test_words_of_any_kind_are_only_words(seen):
    page = seen.go(TEXTS, "text=" + page_safe(harmless(HOSTILE.id)))
    page.locator(".strips .column").first.wait_for()
    told = page.locator(".strips bdi.word").all_inner_texts()
    assert told[1] == harmless(HOSTILE.hidden) and "10,000 signs" in told[2]
    assert page.locator("main img, main iframe, main script").count() == 0


def page_safe(words):
    return words.replace("%", "%25").replace("&", "%26").replace("#", "%23").replace('"', "%22")


# --- the overview and the comparison


def test_any_axis_stands_against_any_other_and_what_is_missing_says_why(seen):
    page = drawn(seen.go("index.html"))
    expect(page.locator("table.grid thead th").last).to_have_text("cnn")
    expect(page.locator("table.grid td.missing")).to_have_text(["failed: out of <b>memory</b>"])
    page.get_by_label("Only encoder").select_option("")
    page.get_by_label("Rows", exact=True).select_option("experiment")
    expect(
        page.locator("table.grid tbody th").filter(has_text="τ of attention and gradients")
    ).to_be_visible()
    rows_ = page.locator("table.grid tbody tr")
    said = {row.locator("th").inner_text().split("\n")[0]: row.locator("td") for row in rows_.all()}
    assert said["τ of attention and gradients"].all_inner_texts()[2].startswith("failed")
    removed = next(cells for head, cells in said.items() if head.startswith("share of items"))
    assert removed.all_inner_texts()[::2] == ["not run", "not run"], "removal was asked of one model only"
    page.get_by_label("Columns", exact=True).select_option("seed")
    expect(page.locator("table.grid thead")).to_contain_text("all seeds")
    again = seen.go("index.html", page.url.split("#")[1])
    expect(again.get_by_label("Columns", exact=True)).to_have_value("seed")


def test_cells_of_one_number_share_its_axis(seen):
    page = seen.go("index.html", "rows=corpus&columns=encoder&measure=importance/tau-gradient")
    drawn(page)
    assert (
        len(set(page.locator("table.grid thead svg").evaluate_all("all => all.map(e => e.ariaLabel)"))) == 1
    )
    page.get_by_label("Order of rows").select_option("falling")
    addressed(page, {"sort": "falling"})


def test_two_models_differ_by_the_difference_of_their_numbers(seen):
    page = seen.go("compare.html", "kind=models&a=mine-average-additive.html&b=mine-bilstm-additive.html")
    row = rows(page, "compared").filter(has_text="τ of attention and gradients").first
    row.wait_for()
    one, other, apart = (
        float(row.locator("td .main").nth(n).inner_text().replace("−", "-")) for n in range(3)
    )
    assert apart == pytest.approx(other - one, abs=2e-3)
    page.get_by_role("button", name="Swap").click()
    addressed(page, {"a": "mine-bilstm-additive.html"})
    page.get_by_label("Compare").select_option("seeds")
    page.locator("table.compared thead").get_by_text("seed 1").wait_for()


@pytest.mark.parametrize(
    ("name", "where"),
    [("index.html", "#arranged"), ("compare.html", "main"), (TEXTS, "main .beside ~ .exits")],
)
def test_every_view_can_be_taken_away_as_picture_and_table(seen, name, where):
    page = drawn(seen.go(name, "" if name != TEXTS else "x=length"))
    scope = page.locator(where).first
    picture = ElementTree.fromstring(seen.saved(scope.locator("[data-export=svg]").first))
    said = " ".join(picture.itertext())
    assert picture.tag.endswith("svg") and ("bilstm" in said or "t0001" in said)
    assert seen.saved(scope.locator("[data-export=png]").first).startswith(b"\x89PNG")
    table = list(csv.reader(io.StringIO(seen.saved(scope.locator("[data-export=csv]").first).decode())))
    assert len(table) >= 3 and len({len(row) for row in table}) == 1


def test_the_scatter_and_the_strips_can_be_taken_away(seen):
    page = seen.go(TEXTS, "text=t0003")
    brushable(page)
    page.locator(".strips .column").first.wait_for()
    chart = page.locator(".beside .exits")
    assert b"<svg" in seen.saved(chart.locator("[data-export=svg]"))
    assert seen.saved(chart.locator("[data-export=png]")).startswith(b"\x89PNG")
    strips = ElementTree.fromstring(seen.saved(page.locator("section.text [data-export=svg]")))
    assert "good3" in " ".join(strips.itertext())
    assert len([e for e in strips.iter() if e.tag.endswith("rect")]) > 3 * 7, "a rectangle a word and lane"


def test_a_figure_has_its_numbers_and_its_picture(seen):
    page = drawn(seen.go("mine-bilstm-additive.html"))
    figure = page.locator("figure", has=page.locator("[data-export=csv]")).last
    assert len(seen.saved(figure.locator("[data-export=csv]"))) > 100
    assert seen.saved(figure.locator("[data-export=png]")).startswith(b"\x89PNG")


# --- everywhere


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_no_page_is_wider_than_its_window(browser, site, width, scheme):
    with patient_page(browser, viewport={"width": width, "height": 800}, color_scheme=scheme) as page:
        told = Seen(page, site)
        for name in (
            "index.html",
            "mine-bilstm-additive.html",
            "compare.html",
            "calibration.html",
            "catalogue.html",
        ):
            drawn(told.go(name))
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        told.go(TEXTS, "text=t0001").locator(".strips .column").first.wait_for()
        brushable(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not told.complaints


def test_what_can_be_used_has_a_name(seen):
    for name in ("index.html", "compare.html", TEXTS):
        page = drawn(seen.go(name))
        unnamed = page.evaluate(
            """[...document.querySelectorAll("button, select, input, a[href], svg[role=img]")].filter(e =>
                !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim()))
                .map(e => e.outerHTML)"""
        )
        assert not unnamed, name


def contrast(one, other):
    def light(colour):
        parts = [int(c) / 255 for c in colour[4:-1].split(",")]
        r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    darker, lighter = sorted((light(one), light(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_stand_out_from_their_ground(browser, site, scheme):
    with patient_page(browser, color_scheme=scheme) as page:
        drawn(Seen(page, site).go("index.html"))
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for element in ("h1", ".about", "main a", "small", "button", ".verdict", ".named"):
            inks = page.locator(element).evaluate_all("all => all.map(e => getComputedStyle(e).color)")
            assert all(contrast(ink, ground) >= 4.5 for ink in inks), element


def test_one_file_does_what_the_folder_does(seen):
    page = seen.go("", file="one.html")
    page.locator("table.grid").wait_for()
    expect(page).to_have_title("Does attention explain?")
    page.locator(".here table.overview a").first.click()
    page.wait_for_url(re.compile(r"page=mine-average-additive.html"))
    page.locator(".here").get_by_text("Explore its texts").click()
    page.locator(".here table.texts").wait_for()
    page.keyboard.press("j")
    page.locator(".here .strips .column").first.wait_for()
    page.locator(".here .chart canvas").wait_for()
    addressed(page, {"page": "explore-mine-average-additive.html"})
    expect(page.locator("[data-page].here")).to_have_count(1)
