"""The page /docs in a real browser through Playwright, where both are."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from stillvec.vectors import WordVectors

pytest.importorskip("fastapi")
pytest.importorskip("usearch")
pytest.importorskip("playwright")
import uvicorn
from playwright import sync_api

from stillvec.service.application import create_app
from stillvec.service.limits import Limits
from stillvec.service.models import ServedModels
from stillvec.service.server import bind_socket, format_address

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here.")
EVIL = "<img src=x onerror=alert(1)>"
TOKEN = "a-token"


@pytest.fixture(scope="module")
def place() -> Iterator[str]:
    words = ["ice", "snow", "man", "king", "woman", "queen", EVIL]
    vectors = WordVectors(words, [[1, 0.1], [1, 0.2], [0.3, 1], [0.2, 1], [0.1, 1], [0, 1], [1, 0]])
    app = create_app(ServedModels({"a/first": vectors, EVIL: vectors}), Limits(k=11), token=TOKEN)
    with bind_socket("127.0.0.1", 0, allow_remote=True) as taken:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield format_address(taken)
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def page(place: str) -> Iterator[Any]:
    """Opened, with the token given; no dialog, no error, no request but to the server."""
    requested: list[str] = []
    troubles: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 390, "height": 844})
        opened.on("request", lambda request: requested.append(request.url))
        opened.on("pageerror", lambda error: troubles.append(str(error)))
        opened.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        opened.goto(f"{place}/docs#post/nearest")
        opened.fill("#bearer", "another")
        opened.keyboard.press("Enter")
        opened.wait_for_selector("#error >> text=wrong")
        opened.fill("#bearer", TOKEN)
        opened.keyboard.press("Enter")
        opened.wait_for_selector("details[open]")
        yield opened
        browser.close()
    assert troubles == []
    assert [url for url in requested if not url.startswith((place, "data:"))] == []


def test_every_address_is_documented_and_its_example_is_answered(page: Any, place: str) -> None:
    output = create_app(ServedModels({"one": WordVectors(["x"], [[1.0]])})).openapi()["paths"]
    assert page.locator("details[open]").get_attribute("id") == "post/nearest"  # the one that the address names
    every = page.locator("details").all()
    assert [each.get_attribute("id") for each in every] == [f"{way}{path}" for path in output for way in output[path]]
    for each in every:
        if each.get_attribute("open") is None:
            each.locator("summary").click()
        each.locator("button").click()
        each.locator(".answer").wait_for()
        assert each.locator("h3 .note").inner_text().startswith("200 in "), each.locator(".answer").inner_text()
    assert page.url == f"{place}/docs#get/metrics"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")  # also on a telephone


def test_what_is_typed_is_queried_and_markup_stays_text(page: Any) -> None:
    nearest = page.locator("details").filter(has=page.locator("summary >> text='Nearest neighbours of a word'"))
    if nearest.get_attribute("open") is None:
        nearest.locator("summary").click()
    assert "integer, 1 to 11" in nearest.inner_text()  # this server's own limit
    nearest.locator("input[name=word]").fill(EVIL)
    nearest.locator("select[name=model]").select_option(EVIL)
    nearest.locator("input[name=k]").fill("1")
    nearest.locator("button").click()
    sync_api.expect(nearest.locator(".answer")).to_contain_text('"word": "ice"')
    answer = json.loads(nearest.locator(".answer").inner_text())
    assert (answer["model"], len(answer["data"])) == (EVIL, 1)
    assert TOKEN not in nearest.inner_text()
    assert page.locator("img").count() == 0
    nearest.locator("input[name=word]").fill("it's")
    nearest.locator("button").click()
    sync_api.expect(nearest.locator("h3 .note")).to_contain_text("404 in ")
    assert "word=it%27s" in nearest.locator("pre").first.inner_text()
