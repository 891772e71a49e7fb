"""The explorer in a real browser through Playwright, where both are: served, and as one file."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from stillvec import Corpus, Vocabulary, WordVectors, index
from stillvec.exploration import Explorer, PageServer, build_export_page, build_page_data
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.word_columns import load_columns
from stillvec.exploration.word_lookup import LexiconRelations
from stillvec.lexicons import Edge
from stillvec.numerics import tsne
from stillvec.progress import drain

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here.")

EVIL = "<script>alert(1)</script>"
NAMES = ("first", '"><img src=x onerror=alert(2)>')
WORDS = ["ice", "icy", "iceberg", "fire", "he", "she", "good", "bad", EVIL, *(f"word{n}" for n in range(60))]


TOPICS = ("cold", "<img src=x onerror=alert(3)>", "=1+1")


def vectors_of(seed: int) -> WordVectors:
    rows = np.random.default_rng(seed).normal(size=(len(WORDS), 24))
    rows[1] = rows[0] + 0.2 * rows[1]  # in both sets icy is the nearest of ice
    rows[8] = rows[0] + 0.6 * rows[8]
    return WordVectors(Vocabulary(WORDS, range(len(WORDS), 0, -1)), rows)


def explorer() -> Explorer:
    edges = [Edge("ice", EVIL, 1.0, "synonym", "noun"), Edge("ice", "fire", 1.0, "antonym", "noun")]
    corpus = Corpus.from_texts([f"Some ice lay <b>there</b> {EVIL} by a [lake](http://x.example). {EVIL} is a word."])
    sets = dict(zip(NAMES, map(vectors_of, (0, 1)), strict=True))
    topics = [TOPICS[number % 3] for number in range(len(WORDS))]
    columns = load_columns({"word": WORDS, "topic": topics, "weight": np.linspace(10.5, 99, len(WORDS))})
    relations = LexiconRelations(edges, WORDS)
    return Explorer(sets, relations, ExampleReader(corpus, seconds=1e9), {EVIL: vectors_of(2)}, columns)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Where the page is: served, and as a file."""
    folder = tmp_path_factory.mktemp("explore")
    before = os.environ.get("STILLVEC_CACHE")
    os.environ["STILLVEC_CACHE"] = str(folder / "cache")
    tsne.N_STEPS, steps = 60, tsne.N_STEPS
    data = drain(build_page_data(explorer()))
    (folder / "page.html").write_text(build_export_page(data), "utf-8")
    with PageServer(explorer()) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {"served": server.address, "file": (folder / "page.html").as_uri()}
        server.shutdown()
    tsne.N_STEPS = steps
    os.environ.pop("STILLVEC_CACHE")
    if before is not None:
        os.environ["STILLVEC_CACHE"] = before


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Visit:
    """A page that is looked at; what it complained of, what it asked for, which dialogs it opened."""

    def __init__(self, browser: Any, place: str, width: int = 1280, scheme: str = "light", touch: bool = False) -> None:
        size = {"width": width, "height": 844}
        self.context = browser.new_context(viewport=size, color_scheme=scheme, has_touch=touch, is_mobile=touch)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.place = place
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.errors.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def __enter__(self) -> Visit:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()
        assert self.errors == []
        assert [url for url in self.asked if not url.startswith((self.place, "data:"))] == []  # no network

    def open(self, state: str = "") -> Any:
        self.page.goto(self.place + state)
        self.page.wait_for_selector("body[data-shown]")
        return self.page

    def lists(self, place: str) -> list[list[str]]:
        columns = self.page.locator(f"#{place} > div").all()
        return [column.locator(".word").all_text_contents() for column in columns]


@pytest.fixture(params=["served", "file"])
def visit(request: pytest.FixtureRequest, browser: Any, places: dict[str, str]) -> Iterator[Visit]:
    with Visit(browser, places[request.param]) as opened:
        yield opened


def test_neighbours_are_side_by_side_and_shared_ones_are_marked(visit: Visit) -> None:
    page = visit.open("#word?w=ice")
    page.wait_for_selector("#neighbours li")
    slow = [[word for word, _ in vectors_of(seed).nearest("ice", 12)] for seed in (0, 1)]
    assert [found[:3] for found in visit.lists("neighbours")] == [
        each[:3] for each in slow
    ]  # bytes may swap later ones
    assert page.locator("#neighbours > div:first-child li.all .word").all_text_contents()[0] == "icy"
    shown = page.locator("#neighbours > div:first-child li").first
    assert float(shown.locator(".value").inner_text()) == pytest.approx(
        vectors_of(0).similarity("ice", "icy"), abs=0.006
    )


def test_inflections_are_grouped_on_request_and_from_word_to_word(visit: Visit) -> None:
    page = visit.open("#word?w=word1")
    page.wait_for_selector("#neighbours li")
    assert page.locator("#neighbours .forms").count() == 0
    page.check("#group")
    page.wait_for_selector("body[data-shown='#word?w=word1&g=1']")
    near = vectors_of(0).nearest("word1", 12, group=True)
    first = page.locator("#neighbours > div:first-child li .words").first
    assert first.locator("> .word").inner_text() == near[0].word
    page.locator("#neighbours li .word").first.click()
    page.wait_for_function("location.hash.endsWith('&g=1') && !location.hash.includes('word1&')")


def test_a_word_that_looks_like_a_script_stays_a_word(visit: Visit) -> None:
    page = visit.open(f"#word?w={EVIL.replace('/', '%2F')}")
    page.wait_for_selector("#neighbours li")
    assert page.locator("#head h1").inner_text() == EVIL
    assert page.locator("img").count() == 0
    assert page.locator("script:not([type])").count() == 1
    assert [*page.locator("#sets b").all_text_contents()] == [*NAMES]
    page.goto(visit.place + "#word?w=ice")
    sync_api.expect(page.locator("#head h1")).to_have_text("ice")
    page.locator("#neighbours").get_by_role("button", name=EVIL).first.click()
    sync_api.expect(page.locator("#head h1")).to_have_text(EVIL)


def test_search_completes_by_keyboard_and_the_back_button_goes_back(visit: Visit) -> None:
    page = visit.open("#word?w=fire")
    page.wait_for_selector("#neighbours li")
    page.locator("body").press("/")
    page.keyboard.type("ice")
    sync_api.expect(page.locator("#completions li")).to_have_text(["ice", "iceberg"])  # "ic" had others before
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#head h1:text-is('iceberg')")
    assert page.url.endswith("#word?w=iceberg")
    page.go_back()
    page.wait_for_selector("#head h1:text-is('fire')")


def test_an_unknown_word_is_reported_with_a_link_to_the_nearest_spelling(visit: Visit) -> None:
    page = visit.open("#word?w=icebreg")
    page.wait_for_selector("#error:visible")
    assert "'icebreg' is not in the vocabulary" in page.locator("#error").inner_text()
    page.locator("#error button", has_text="iceberg").click()
    page.wait_for_selector("#head h1:text-is('iceberg')")
    assert page.locator("#error").is_hidden()


def test_analogies_and_the_odd_one_are_those_of_the_vectors(visit: Visit) -> None:
    page = visit.open("#analogy?a=he&b=she&c=good")
    page.wait_for_selector("#analogous li")
    assert visit.lists("analogous")[0][0] == vectors_of(0).analogy("he", "she", "good")[0][0]
    page = visit.open("#odd")
    page.locator("#odd-form input").fill("ice, icy, fire")
    page.keyboard.press("Enter")
    page.wait_for_selector("#odd-ones li.out")
    assert page.locator("#odd-ones li.out .word").all_text_contents() == ["fire", "fire"]
    assert page.url.endswith("#odd?w=ice&w=icy&w=fire")


def test_axes_place_words_where_python_does(visit: Visit) -> None:
    page = visit.open("#axes?x=he-she&words=ice,fire,qqq")
    page.wait_for_selector(".drawing")
    texts = page.locator(".drawing title").all_text_contents()
    answer = explorer().project_words(NAMES[0], ["he", "she"], [], ["ice", "fire"])
    for word, value in zip(answer["words"], answer["x"], strict=True):
        (found,) = [float(each.split(": ")[1]) for each in texts if each.startswith(f"{word}: ")]
        assert found == pytest.approx(value, abs=0.02)
    assert "Not in the vocabulary: qqq." in page.locator("#plot").inner_text()
    page = visit.open("#axes?x=he-she&y=bad:good&words=ice,fire")
    page.wait_for_selector(".drawing >> text=↑ good")
    page.locator(".drawing [role=link]").first.click()
    page.wait_for_selector("#head h1:text-is('ice')")


def test_a_card_has_its_layers_relations_and_sentences_served_or_not(browser: Any, places: dict[str, str]) -> None:
    for kind, place in places.items():
        with Visit(browser, place) as visit:
            page = visit.open("#word?w=ice")
            page.wait_for_selector("#card dl")
            near = ", ".join(word for word, _ in vectors_of(2).nearest("ice", 5))
            assert page.locator("#card dt").all_text_contents() == [EVIL, "synonym", "antonym"]  # first the layer
            assert page.locator("#card dd").all_text_contents() == [near, EVIL, "fire"]
            page.wait_for_selector("#sentences mark")
            assert page.locator("#sentences blockquote").inner_text() == f"Some ice lay there {EVIL} by a lake."
            output = page.locator("#agreement").inner_text()
            assert ("rounded to 8 bits; cosines differ by up to 0.00" in output) == (kind == "file")
            page = visit.open("#word?w=fire")
            page.wait_for_selector("#sentences >> text=Not in the 2 sentences of the corpus.")


def test_the_map_is_moved_by_keys_and_a_click_opens_a_card(visit: Visit) -> None:
    page = visit.open("#map")
    page.wait_for_selector("#legend button")
    before = page.screenshot(clip=page.locator("#canvas").bounding_box())
    page.locator("#canvas").focus()
    for key in ("+", "+", "ArrowLeft"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile(r"#map\?at=-0\.\d+%2C0\.0000%2C1\.96"))
    assert page.screenshot(clip=page.locator("#canvas").bounding_box()) != before
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel h2")
    assert page.locator("#panel h2").inner_text() in WORDS
    page.locator("#panel a").click()
    page.wait_for_selector("#head h1:visible")
    page.go_back()
    page.wait_for_selector("#panel h2:visible")
    page.locator("#colour").select_option("part")
    page.wait_for_selector("#legend >> text=noun")


UNDER = "([x, y]) => [...map.toMap(x, y), map.view.zoom]"  # the place of the map under a point of the screen


def test_a_wheel_zooms_where_the_pointer_is_and_the_page_stays(browser: Any, places: dict[str, str]) -> None:
    with Visit(browser, places["file"]) as visit:
        page = visit.open("#map")
        page.set_viewport_size({"width": 1280, "height": 500})  # lower than the page
        box = page.locator("#canvas").bounding_box()
        page.mouse.move(box["x"] + 300, box["y"] + 90)
        x, y, zoom = page.evaluate(UNDER, [300, 90])
        page.mouse.wheel(0, -500)
        page.wait_for_function("map.view.zoom > 1.5")
        assert page.evaluate(UNDER, [300, 90])[:2] == pytest.approx([x, y], abs=1e-6)
        nearer = page.evaluate(UNDER, [300, 90])[2]
        page.mouse.wheel(0, 200)
        page.wait_for_function(f"map.view.zoom < {nearer}")
        assert zoom < page.evaluate(UNDER, [300, 90])[2] < nearer
        assert page.evaluate("window.scrollY") == 0
        row = page.evaluate("map.nearest(300, 90, 1e4)")
        x, y = page.evaluate(f"map.onScreen({row})")
        page.mouse.move(box["x"] + x, box["y"] + y)
        assert page.locator("#tooltip b").inner_text() == WORDS[row]


def test_two_fingers_zoom_one_drags_and_a_tap_opens_a_card_that_does_not_hide_its_word(
    browser: Any, places: dict[str, str]
) -> None:
    with Visit(browser, places["file"], 390, touch=True) as visit:
        page = visit.open("#map")
        page.wait_for_selector("#legend button")
        box = page.locator("#canvas").bounding_box()
        hand = visit.context.new_cdp_session(page)

        def touch(kind: str, *fingers: tuple[float, float]) -> None:
            points = [{"x": box["x"] + x, "y": box["y"] + y, "id": n} for n, (x, y) in enumerate(fingers)]
            hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

        middle = [150, 160]
        x, y, _ = page.evaluate(UNDER, middle)
        touch("touchStart", (130, 160))
        touch("touchStart", (130, 160), (170, 160))
        for apart in range(24, 81, 8):
            touch("touchMove", (150 - apart, 160), (150 + apart, 160))
        touch("touchEnd", (230, 160))
        touch("touchEnd")
        page.wait_for_url(re.compile(r"at=.*%2C4\.00$"))
        assert page.evaluate(UNDER, middle) == pytest.approx([x, y, 4], abs=1e-3)
        assert page.evaluate("visualViewport.scale") == 1  # the map was zoomed, not the page
        x, y, _ = page.evaluate(UNDER, [100, 100])
        touch("touchStart", (100, 100))
        for way in range(10, 51, 10):
            touch("touchMove", (100 + way, 100 + way))
        touch("touchEnd")
        assert page.evaluate(UNDER, [150, 150]) == pytest.approx([x, y, 4], abs=1e-3)
        assert page.locator("#panel").is_hidden()  # neither was a tap

        page.evaluate("map.setView(0, 0, 1)")
        low = "[...map.words.keys()].reduce((p, q) => (map.onScreen(q)[1] > map.onScreen(p)[1] ? q : p))"
        row = page.evaluate(low)  # the lowest, where the panel will be
        at = page.evaluate(f"map.onScreen({row})")
        page.touchscreen.tap(box["x"] + at[0], box["y"] + at[1])
        page.wait_for_selector("#panel h2:visible")
        assert page.locator("#panel h2").inner_text() == WORDS[row]
        page.wait_for_function(f"map.onScreen({row})[1] < {at[1]} - 20")
        page_y = box["y"] + page.evaluate(f"map.onScreen({row})")[1]
        assert box["y"] < page_y < page.locator("#panel").bounding_box()["y"]
        page.locator("#panel .close").tap()
        page.wait_for_selector("#panel", state="hidden")


# the map: select, filter, colour, compare


def draw_lasso(page: Any, rows: list[int], canvas: str = "#canvas", which: str = "map", **keys: str) -> None:
    """Draw a small square around each word; with more than one word, the later ones are added with Shift."""
    for number, row in enumerate(rows):
        x, y = page.evaluate(f"{which}.onScreen({row})")
        box = page.locator(canvas).bounding_box()
        if number:
            page.keyboard.down("Shift")
        page.mouse.move(box["x"] + x - 5, box["y"] + y - 5)
        page.mouse.down()
        for dx, dy in ((5, -5), (5, 5), (-5, 5), (-5, -4)):
            page.mouse.move(box["x"] + x + dx, box["y"] + y + dy)
        page.mouse.up()
        if number:
            page.keyboard.up("Shift")


def spread_rows(page: Any, n: int = 6) -> list[int]:
    """Words that have some pixels around them for themselves."""
    alone = (
        "[...map.words.keys()].filter((row) => { const [x, y] = map.onScreen(row); return [...map.words.keys()].every("
        "(other) => other === row || Math.hypot(map.onScreen(other)[0] - x, map.onScreen(other)[1] - y) > 12); })"
    )
    return list(page.evaluate(alone))[:n]


def chosen_words(page: Any) -> list[str]:
    return list(page.locator("#chosen-words .word").all_text_contents())


def saved_text(page: Any, kind: str) -> str:
    page.locator("#format").select_option(kind)
    with page.expect_download() as caught:
        page.locator("#export").click()
    assert caught.value.suggested_filename == f"words.{kind}"
    return Path(caught.value.path()).read_bytes().decode()


def test_a_lasso_selects_words_that_are_listed_exported_and_mapped_again(visit: Visit) -> None:
    page = visit.open()  # the page begins with the map
    page.wait_for_selector("#legend button")
    rows = spread_rows(page)
    page.locator("#lasso").click()
    draw_lasso(page, rows)
    expected = [WORDS[row] for row in sorted(rows)]
    assert chosen_words(page) == expected
    assert page.locator("#n-chosen").inner_text() == f"{len(rows)} words selected"
    assert saved_text(page, "txt") == "".join(f"{word}\n" for word in expected)
    records = [*csv.DictReader(io.StringIO(saved_text(page, "csv")))]
    assert [record["word"] for record in records] == expected
    assert [int(record["count"]) for record in records] == [len(WORDS) - WORDS.index(word) for word in expected]
    assert [record["topic"] for record in records] == [TOPICS[WORDS.index(word) % 3] for word in expected]
    assert [record["word"] for record in json.loads(saved_text(page, "json"))] == expected
    header, *lines = saved_text(page, "vec").splitlines()
    assert header == f"{len(rows)} 24"
    for line, word in zip(lines, expected, strict=True):
        numbers = np.array([*map(float, line.split(" ")[1:])])
        assert numbers == pytest.approx(vectors_of(0)[word], abs=0.02)
    page.locator("#remap").click()
    page.wait_for_selector("#whole-map:visible")
    assert page.evaluate("map.words") == expected
    assert "selected words" in page.locator("#about-map").inner_text()
    page.reload()  # the address says which words
    page.wait_for_selector("#whole-map:visible")
    assert page.evaluate("map.words") == expected
    page.locator("#whole-map").click()
    page.wait_for_selector("#whole-map", state="hidden")
    assert len(page.evaluate("map.words")) == len(WORDS)


def test_words_are_selected_by_keys_and_by_the_filter_and_cleared(visit: Visit) -> None:
    page = visit.open("#map")
    page.wait_for_selector("#legend button")
    page.locator("#pattern").fill("/^word[0-4]$/")
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"5 of {len(WORDS)} words")
    page.locator("#select-shown").click()
    assert chosen_words(page) == [f"word{n}" for n in range(5)]
    page.locator("#reset-filter").click()
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"{len(WORDS)} words")
    page.locator("#canvas").focus()
    page.keyboard.press("s")
    sync_api.expect(page.locator("#n-chosen")).to_have_text(f"{len(WORDS)} words selected")
    page.keyboard.press("Escape")
    sync_api.expect(page.locator("#chosen")).to_be_hidden()
    page.locator("#pattern").fill("/(/")
    page.wait_for_selector("#error:visible >> text=regular expression")
    page.locator("#pattern").fill("iceb")
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"1 of {len(WORDS)} words")
    assert page.locator("#error").is_hidden()
    page.reload()
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"1 of {len(WORDS)} words")


def test_own_columns_colour_filter_and_search(visit: Visit) -> None:
    page = visit.open("#map")
    page.wait_for_selector("#legend button")
    page.locator("#colour").select_option("column:topic")
    page.wait_for_selector(f"#legend button >> text={TOPICS[1]}")
    n_topic = sum(number % 3 == 1 for number in range(len(WORDS)))
    page.locator("#legend button", has_text=TOPICS[1]).click()
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"{n_topic} of {len(WORDS)} words")
    page.locator("#reset-filter").click()
    page.locator("#pattern-in").select_option("column:topic")
    page.locator("#pattern").fill("img src")  # a level that looks like markup
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"{n_topic} of {len(WORDS)} words")
    page.locator("#reset-filter").click()
    page.locator("#colour").select_option("column:weight")
    page.wait_for_selector("#legend button >> text=from ")
    assert page.locator("#legend button").count() == 9
    low = page.locator("#low")
    low.focus()
    for _ in range(50):
        page.keyboard.press("ArrowRight")
    page.wait_for_url(re.compile(r"low=8"))
    shown = sum(len(WORDS) - number >= 8 for number in range(len(WORDS)))
    sync_api.expect(page.locator("#n-shown")).to_have_text(f"{shown} of {len(WORDS)} words")
    assert page.locator("img").count() == 0


def test_two_maps_share_selection_filter_and_the_word_under_the_pointer(visit: Visit) -> None:
    page = visit.open("#map")
    page.wait_for_selector("#legend button")
    page.locator("#beside").select_option(label=f"{NAMES[1]}, PCA")
    page.wait_for_selector("#canvas-2:visible")
    page.wait_for_selector("#title-2 >> text=PCA")
    row = spread_rows(page)[0]
    page.locator("#lasso").click()
    draw_lasso(page, [row])
    assert page.evaluate("second.words.filter((_, row) => second.chosen[row])") == [WORDS[row]]
    box, (x, y) = page.locator("#canvas").bounding_box(), page.evaluate(f"map.onScreen({row})")
    page.mouse.move(box["x"] + x, box["y"] + y)
    assert page.evaluate("second.words[second.hovered]") == WORDS[row]
    page.locator("#pattern").fill("word1")
    page.wait_for_url(re.compile("q=word1"))
    matching = sum("word1" in word for word in WORDS)
    page.wait_for_selector(f"#n-shown:text-is('{matching} of {len(WORDS)} words')")
    assert page.evaluate("second.shown.reduce((sum, value) => sum + value)") == matching
    page.locator("#projection").select_option("pca")
    page.wait_for_selector("#title >> text=PCA")
    assert page.evaluate("[...map.positions.slice(0, 4)]") != page.evaluate("[...second.positions.slice(0, 4)]")


def test_a_page_without_a_server_says_what_needs_one(browser: Any, places: dict[str, str]) -> None:
    with Visit(browser, places["file"]) as visit:
        page = visit.open("#map?by=umap")  # which the page does not have: the first is shown
        page.wait_for_selector("#legend button")
        assert page.locator("#projection").input_value() == "tsne"
        error = page.evaluate(
            "source.query('map', { set: 'first', method: 'umap', rows: 'AQ' }).catch((e) => e.message)"
        )
        assert "needs the server" in error


def test_scores_are_beside_their_bars_and_a_tooltip_goes_with_its_word(browser: Any, places: dict[str, str]) -> None:
    with Visit(browser, places["file"]) as visit:
        page = visit.open("#word?w=ice")
        page.wait_for_selector("#neighbours li")
        bar = "parseFloat(getComputedStyle(document.querySelector('#neighbours li'), '::before').width)"
        score = page.locator("#neighbours li .value").first.bounding_box()
        item = page.locator("#neighbours li").first.bounding_box()
        page.wait_for_timeout(300)
        assert item["x"] + page.evaluate(bar) <= score["x"]
        page = visit.open("#map")
        page.wait_for_selector("#legend button")
        box, (x, y) = page.locator("#canvas").bounding_box(), page.evaluate("map.onScreen(0)")
        page.mouse.move(box["x"] + x, box["y"] + y)
        assert page.locator("#tooltip").is_visible()
        page.evaluate("map.setView(0.3, 0.3, 3)")
        assert page.locator("#tooltip").is_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark")])
def test_every_view_fits_its_screen(browser: Any, places: dict[str, str], width: int, scheme: str) -> None:
    views = [
        "",
        "#word?w=ice",
        "#analogy?a=he&b=she&c=good",
        "#odd?w=ice&w=icy&w=he",
        "#axes?x=he-she&y=bad-good",
        "#map?w=ice",
        "#map?colour=column%3Atopic&beside=" + quote(json.dumps([NAMES[1], "pca"])),
    ]
    with Visit(browser, places["file"], width, scheme) as visit:
        for view in views:
            page = visit.open(view)
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), view


def test_documents_are_searched_and_their_words_marked(browser: Any) -> None:
    texts = {"cold": "The 🧊 and ice.", EVIL: f"{EVIL} is a fire!", "other": "word1 word2"}
    vectors = vectors_of(0)
    with PageServer(Explorer({"a": vectors}, index=index(texts, vectors))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Visit(browser, server.address, width=390) as visit:
            page = visit.open("#documents?q=ice")
            assert page.locator("#hits li").first.locator("b").inner_text() == "cold"
            assert page.locator("#hits li").first.locator("mark").all_text_contents() == ["ice"]
            page.fill("#documents-form input", "fire")
            page.select_option("#documents-form select", "bm25")
            page.click("#documents-form button")
            page.wait_for_selector("#hits mark:text('fire')")
            assert page.locator("#hits b").all_text_contents() == [EVIL]
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
            page.goto(f"{server.address}#documents?q=xyzzy")
            page.wait_for_selector("#about-documents:text('Nothing found')")
        server.shutdown()


def test_a_page_without_an_index_has_no_view_of_documents(visit: Visit) -> None:
    assert visit.open("#word?w=ice").locator("nav [data-view=documents]").is_hidden()
