"""The live page in Chromium: type, read, drag by mouse and keyboard, and nothing of anybody's text runs."""

import json
import re

import pytest

from attentest.foreign.loading import adopt
from attentest.live.answers import Live
from attentest.live.given import described
from attentest.live.session import given_model
from attentest.store.store import Store
from attentest.web.application import Application
from attentest.web.contract import Model
from attentest.web.guard import Guard
from attentest.web.shelf import Shelf
from attentest.web.site import Pages, no_pages, own_pages
from tests.browser import is_icon, patient_page, until
from tests.families import LABELS, tiny, tokenizer
from tests.serving import AT_MOST, application, put_model, served
from tests.toys import toy_corpus, toy_model

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.browser

TEXT = "the cat sat far"
FILM = "the unlikely film was not good"
HOSTILE = '<img src=x onerror=alert(1)> "quoted" \u202eback\u202c </script><script>alert(2)</script> '


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A store with a model of words, one of questions and one of many answers, and its server."""
    store = Store(tmp_path_factory.mktemp("page") / "store")
    lab = application(store)
    lab.reader = Live(store)
    lab.plain, _ = put_model(store, encoder="bilstm")
    lab.asked, _ = put_model(store, toy_corpus(query=True), encoder="average", decoder="affine")
    many = toy_corpus(labels=tuple(f"<b>answer {n}</b>" for n in range(9)), lengths=(5,) * 9)
    lab.many, _ = put_model(store, many, encoder="average")
    with served(lab, seconds=AT_MOST) as lab.address:  # a busy browser may open a connection and use it late
        yield lab


@pytest.fixture
def page(browser, lab):
    """A page on which any complaint, dialog or request to elsewhere fails the test."""
    said = []
    with patient_page(browser, viewport={"width": 1280, "height": 900}) as page:
        page.on("console", lambda message: is_icon(message.location["url"]) or said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: (said.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("requestfailed", lambda request: is_icon(request.url) or said.append(request.url))
        page.on("request", lambda r: r.url.startswith("http://127.0.0.1:") or said.append(r.url))
        page.complaints = said
        yield page
        decided(page)  # a question that is left without its answer would be a request that failed
        assert not said


def opened(page, lab, key=None, text=TEXT):
    page.goto(f"http://{lab.address}/live.html")
    page.select_option("#model", key or lab.plain)
    page.fill("#text", text)
    return page


def read(page):
    page.click("#read")
    page.wait_for_selector("#weights .unit")
    settled(page)


def settled(page, wanted="own weights"):
    """Until the decision under the weights on the page is there."""
    page.wait_for_selector(f"#moved:has-text({json.dumps(wanted)})")
    decided(page)


def decided(page):
    """Until no question is under way: while a hand moves there may be several, one after the other."""
    until(page, lambda: not page.evaluate("typeof waiting !== 'undefined' && waiting"))


def weights(page):
    return [
        float(value)
        for value in page.locator("#weights input").evaluate_all("all => all.map(e => e.value ** 2)")
    ]


def spelled(value):
    """A number as the page has it."""
    if value and abs(value) < 0.001:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    return f"{value:.3f}".replace("-", "−")


def probability(page, column):
    return page.locator(f"#answers tr td:nth-of-type({column}) output").all_inner_texts()


def test_a_typed_text_is_read_and_shown(page, lab):
    read(opened(page, lab))
    said = lab.reader.read(model=lab.plain, text=TEXT, query=None, epsilon=None)
    assert page.locator("#weights .word").all_inner_texts() == TEXT.split()
    assert page.inner_text("#state") == f"The model says {said['predicted']}."
    assert (
        probability(page, 1) == [f"{chance:.3f}" for chance in said["probabilities"]] == probability(page, 2)
    )
    titles = (
        page.locator("#panels figure").nth(0).locator(".token").evaluate_all("all => all.map(e => e.title)")
    )
    assert titles == [f"{weight:.3f}" for weight in said["weights"]]
    page.click("#numbers summary")
    expect(page.locator("#rows tr")).to_have_count(4)  # drawn once the table is open, not before
    assert page.locator("#rows tr").nth(1).inner_text().split() == [
        "cat",
        spelled(said["weights"][1]),
        *(spelled(said["importances"][name]["scores"][1]) for name in ("gradient", "leave-one-out")),
        spelled(said["adversary"]["weights"][1]),
        spelled(said["weights"][1]),
    ]
    assert "Read, explained and attacked in" in page.inner_text("#timing")


def test_a_weight_follows_the_mouse_and_the_prediction_follows_the_weight(page, lab):
    read(opened(page, lab))
    before = weights(page)
    page.locator("#weights .bar").nth(2).scroll_into_view_if_needed()
    box = page.locator("#weights .bar").nth(2).bounding_box()
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, box["y"] + box["height"] * 0.9)
    page.mouse.down()
    page.mouse.move(middle, box["y"] + box["height"] * 0.3, steps=5)
    page.mouse.up()
    settled(page, "has")
    moved = weights(page)
    assert moved[2] == pytest.approx(0.7**2, abs=0.1) and moved[2] > before[2]
    others = [n for n in range(4) if n != 2]
    rest = (1 - moved[2]) / (1 - before[2])
    assert [moved[n] for n in others] == pytest.approx([before[n] * rest for n in others], abs=0.02)
    shown = [float(text.replace("−", "-")) for text in page.locator("#weights output").all_inner_texts()]
    said = lab.reader.decide(model=lab.plain, text=TEXT, query=None, weights=shown, renormalise=True)
    assert [float(p) for p in probability(page, 2)] == pytest.approx(said["probabilities"], abs=0.003)
    assert [float(p) for p in probability(page, 1)] != pytest.approx(said["probabilities"], abs=1e-4)


def test_a_weight_follows_the_keyboard_renormalised_or_not(page, lab):
    read(opened(page, lab))
    before = weights(page)
    page.check("[name=rest][value=stay]")
    slider = page.locator("#weights input").nth(0)
    slider.focus()
    slider.press("End")
    settled(page, "the weights sum to")
    after = weights(page)
    assert after[0] == 1 and after[1:] == pytest.approx(before[1:], abs=1e-9)
    assert slider.get_attribute("aria-valuetext") == "1.000"
    slider.press("Home")
    page.wait_for_selector("#weights .unit:first-child output:has-text('0.000')")
    page.check("[name=rest][value=share]")
    settled(page, "JSD")
    assert sum(weights(page)) == pytest.approx(1, abs=0.03) and weights(page)[0] == 0
    for _ in range(3):
        slider.press("ArrowUp")
    expect(slider).to_have_value("0.03")


def test_weights_may_start_from_other_views(page, lab):
    read(opened(page, lab))
    page.click("[data-weights=uniform]")
    settled(page, "JSD")
    expect(page.locator("#weights output")).to_have_text(["0.250"] * 4)
    page.click("[data-weights=adversary]")
    said = lab.reader.read(model=lab.plain, text=TEXT, query=None, epsilon=None)
    far = f"{said['adversary']['divergence']:.3f}"
    settled(page, f"own attention {far}")
    page.click("[data-weights=weights]")
    settled(page)


def test_nothing_of_anybodys_text_runs(page, lab):
    opened(page, lab, lab.many, HOSTILE + "x" * 10_000)
    read(page)
    shown = page.locator("#panels figure").nth(0).locator(".strip").inner_text()
    assert "<script" in shown and "\u202e" not in shown and "\ufffd" in shown
    assert page.locator("main img, main script, main b:not(.meter b)").count() == 0
    labels = page.locator("#answers th").all_inner_texts()
    assert len(labels) == 6 and all(label.startswith("<b>answer") for label in labels)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_question_belongs_to_models_that_take_one_and_the_address_keeps_it_all(page, lab, browser):
    opened(page, lab)
    expect(page.locator("#query-field")).to_be_hidden()
    page.select_option("#model", lab.asked)
    expect(page.locator("#query-field")).to_be_visible()
    page.fill("#query", "a cat & dog?")
    read(page)
    state, link = page.inner_text("#state"), page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#weights .unit")
    settled(page)
    assert page.input_value("#query") == "a cat & dog?" and page.input_value("#text") == TEXT
    assert page.inner_text("#state") == state and page.url == link


def test_what_cannot_be_read_is_said(page, lab):
    opened(page, lab, text="cat " * 10_000)
    page.click("#read")
    page.wait_for_selector("#state.wrong")
    assert "10,000 words" in page.inner_text("#state") and page.is_hidden("#result")
    page.fill("#text", "   ")
    page.click("#read")
    page.wait_for_selector("#state:has-text('no words')")
    page.fill("#text", "qwertz")
    read(page)
    notes = page.inner_text("#notes")
    assert "1 of 1 words are unknown" in notes and "no choice" in notes
    assert page.locator("[data-weights=adversary]").is_disabled()
    # Complaints of the browser about the refusals above are as they should be, and are all there are.
    until(page, lambda: len(page.complaints) >= 2)
    assert len(page.complaints) == 2 and all("422" in said for said in page.complaints)
    page.complaints.clear()


def test_a_text_of_the_test_split_is_a_click_away(page, lab):
    opened(page, lab)
    page.click("#example")
    page.wait_for_selector("#state:has-text('its label is')")
    texts = [" ".join(example.tokens) for example in toy_corpus().test]
    assert page.input_value("#text") in texts


def test_without_torch_the_page_says_so(page, lab, tmp_path):
    store = Store(tmp_path / "store")
    put_model(store, encoder="average")
    with served(application(store, live=False, why="No <i>torch</i> here.")) as address:
        page.goto(f"http://{address}/live.html")
        page.wait_for_selector("#absent:has-text('torch')")
        assert page.inner_text("#absent") == "No <i>torch</i> here."
        assert page.locator("#read").is_disabled() and page.locator("#example").is_disabled()
    page.complaints.clear()


def test_the_address_with_the_token_lets_the_browser_in(browser, lab):
    guard = Guard(host="0.0.0.0", token="abcdefghijklmnop")
    with served(application(lab.shelf.store, guard=guard)) as address, patient_page(browser) as page:
        assert page.goto(f"http://{address}/live.html").status == 401
        page.goto(f"http://{address}/live.html?token={guard.token}")
        page.wait_for_selector("#model option", state="attached")
        assert page.url == f"http://{address}/live.html", "and the token is out of sight"
        page.select_option("#model", lab.plain)
        page.fill("#text", TEXT)
        read(page)


@pytest.mark.parametrize("width", [390, 768, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_every_screen_by_day_and_by_night(page, lab, width, scheme):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    read(opened(page, lab, text=" ".join(["today", "never"] * 40)))
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    light = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is (scheme == "light")


def test_a_very_long_text_stays_usable(page, lab):
    read(opened(page, lab, text="cat dog " * 1000))
    expect(page.locator("#weights .unit")).to_have_count(2000)
    page.locator("#weights input").nth(1999).press("End")
    settled(page, "has")
    assert page.evaluate("document.documentElement.scrollHeight") < 6000


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Two models that were given when the server was started, and no store to speak of."""
    store = Store(tmp_path_factory.mktemp("given") / "store")
    models = {"a" * 64: adopt(tiny("bert"), tokenizer(), labels=LABELS), "b" * 64: toy_model(toy_corpus())}
    about = [
        {**each, "key": key}
        for key, each in zip(models, (described("./my-bert", m) for m in models.values()), strict=True)
    ]
    lab = Application(
        guard=Guard(),
        shelf=Shelf(store, (), [Model(**each) for each in about]),
        pages=Pages(own_pages(), no_pages("none yet")),
        live=Live(store, {key: given_model(model) for key, model in models.items()}),
        why="",
        version="1",
    )
    with served(lab, seconds=AT_MOST) as lab.address:
        yield lab


def test_layers_and_heads_are_a_map_to_click_through(page, given):
    opened(page, given, "a" * 64, FILM)
    page.select_option("#other", "")
    read(page)
    cells = page.locator("#heads .head")
    expect(cells).to_have_count(3 * 3)  # three layers of a mean and two heads, the last layer on top
    expect(page.locator("#heads .head[aria-pressed=true]")).to_have_attribute(
        "aria-label", re.compile("layer 2, mean over heads")
    )
    page.locator("#heads .head[aria-label^='layer 0, head 1']").click()
    page.wait_for_selector("#facts:has-text('layer 0 of 0 to 2, head 1')")
    said = given.live.read(model="a" * 64, text=FILM, query=None, epsilon=None, layer=0, head=1)
    shown = (
        page.locator("#panels figure").nth(0).locator(".token").evaluate_all("all => all.map(e => e.title)")
    )
    assert shown == [spelled(weight) for weight in said["weights"]]
    assert "layer=0&head=1" in page.url
    settled(page)
    page.click("[data-weights=uniform]")
    settled(page, "JSD")
    moved = given.live.decide(
        model="a" * 64, text=FILM, query=None, weights=[1 / 6] * 6, renormalise=True, layer=0, head=1
    )
    own = dict(zip(moved["labels"], moved["probabilities"], strict=True))
    rows = page.locator("#answers tr")
    for label, chance in zip(rows.locator("th").all_inner_texts(), probability(page, 2), strict=True):
        assert float(chance) == pytest.approx(own[label], abs=2e-3)


def test_signs_have_colours_and_two_models_read_one_text(page, given):
    opened(page, given, "a" * 64, FILM)
    assert page.input_value("#other") == "b" * 64, "the second model that was given is beside it"
    read(page)
    page.click("[data-importance=shapley]")
    page.wait_for_selector("#panels figure:has-text('Shapley values')")
    decided(page)
    said = given.live.read(model="a" * 64, text=FILM, query=None, epsilon=None, importances=["shapley"])
    strip = page.locator("#panels figure:has-text('leave-one-out') .token")
    scores = said["importances"]["leave-one-out"]["scores"]
    against = strip.evaluate_all("all => all.map(e => e.classList.contains('against'))")
    most = max(map(abs, scores))
    assert against == [score < -0.02 * most for score in scores] and any(against)
    page.wait_for_selector("#other-panels figure:has-text('Shapley values')")
    other = given.live.read(model="b" * 64, text=FILM, query=None, epsilon=None)
    titles = page.locator("#other-panels figure").nth(0).locator(".token")
    assert titles.evaluate_all("all => all.map(e => e.title)") == [spelled(w) for w in other["weights"]]
    assert other["predicted"] in page.inner_text("#other-says")


def test_a_text_is_read_again_while_somebody_types(page, given):
    opened(page, given, "b" * 64, "the cat")
    page.select_option("#other", "")
    read(page)
    page.check("#typing")
    page.locator("#text").press("End")
    page.locator("#text").press_sequentially(" sat")
    expect(page.locator("#weights .word")).to_have_text(["the", "cat", "sat"])
    settled(page)


@pytest.mark.parametrize("width", [390, 1280])
def test_the_map_and_both_models_fit_the_screen(page, given, width):
    page.set_viewport_size({"width": width, "height": 900})
    read(opened(page, given, "a" * 64, "the unlikely film was not good " * 4))
    page.wait_for_selector("#other-panels figure")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
