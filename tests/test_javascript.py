"""The JavaScript module in `js/`: in Node and in Chromium, its results are those of Python."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors, refine, save
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vocabulary import WordCounter

MODULE = Path(__file__).parents[1] / "js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(not MODULE.exists(), reason="a wheel has no JavaScript module")

TEXTS = [
    "The dog's U.S. owner doesn't pay 1,000.50 dollars; \"don’t!\" they said — New York's e-mail, C++ and l'art.",
    "L'homme qu'il a vu à Besançon n'était pas là aujourd’hui; où est l'été ? Cœur, naïveté et déjà-vu.",
    "Straße, Übergröße und Äpfel: Die Bäckerei öffnet um 7.30 Uhr. ẞ und ß.",
    "Ο Οδυσσέας είδε ΤΟΝ ΔΡΟΜΟ ΤΗΣ ΟΔΟΣ ΣΟΦΙΑΣ. Σίσυφος, Σ. και ΌΛΟΣ Ο ΚΌΣΜΟΣ’Σ.",
    "Снег идёт с утра; ёлка, подъезд и «Война и мир» Л. Н. Толстого.",
    "雪国の夜、東京タワーは静かだった。 カタカナ と ひらがな ガ が。",
    "中文也在这里，二〇二四年。 한국어 문장입니다 각각.",
    "قال الرجل: «الثلج أبيض»، والنَّارُ حَمْراء. می‌خواهم کتاب‌ها را بخوانم.",
    "हिन्दी में बर्फ़ सफ़ेद होती है। क्षत्रिय श्री क्‍ष ১২৩ தமிழ் ภาษาไทย",
    "צה״ל ורב־סרן ג׳ורג׳ הלכו לים. İstanbul'da IĞDIR ve ısı. TITLE Ǆ ǅ ǆ ﬁ ﬂ",
    "e\u0301te\u0301 na\u0308ive A\u030a Å \u1100\u1161\u11a8 x\u0301y 𝒳𝓎 𐐀𐐨",
    "emoji 😀 word_with_underscore _ __ a_b 3.14 v2.0 1,5 ,5",
    "tabs\tand\nlines\r\nand\u00a0spaces\u2003here\u200b zero\u200dwidth",
    "'quoted' ''s 's s' rock'n'roll O'Neill's D'Artagnan",
    "new york new yorker xnew york c++ c++x xc++ e-mail e-mails re-e-mail ice-cream ice cream, New\u00a0York NEW YORK",
    "", " ", "!!!", "zzzz", "the " * 50 + "end",
]  # fmt: skip
TERMS = [
    "new york",
    "c++",
    "e-mail",
    "ice cream",
    "l'",
    "don’t",
    "été",
    "e\u0301t",
    "ΣΟΦΙΑΣ ΣΟΦΙΑΣ",
    "3.14 v2.0",
    "the the",
]
STEPS = {"int8": ["quantize:to=int8"], "pq": ["quantize:to=pq,parts=6"]}
STEPS |= {"bits": ["bits:length=27"], "sparse": ["prune:sparsity=0.8"]}


def vocabulary(*, lowercase: bool) -> Vocabulary:
    counter = WordCounter(lowercase=lowercase)
    counter.add(TEXTS)
    known = [word for row, word in enumerate(sorted(counter.counts())) if row % 7]
    fill = [f"filler{row}" for row in range(500)]  # so that codes take fewer bytes than the table
    return Vocabulary([*known, *(term for term in TERMS if term not in known), *fill], lowercase=lowercase)


def make_sets() -> dict[str, WordVectors]:
    random = np.random.default_rng(0)
    words, cased = vocabulary(lowercase=True), vocabulary(lowercase=False)
    rows = random.normal(size=(len(words), 24)).astype(np.float32)
    grams = SubwordTable(Ngrams(300, minn=2, maxn=4, hash_count=3), random.normal(size=(300, 24)).astype(np.float32))
    sets = {f"float{8 * size}": WordVectors(words, rows.astype(f"f{size}")) for size in (2, 4, 8)}
    sets |= {name: refine(sets["float32"], *steps) for name, steps in STEPS.items()}
    sets["subwords"] = WordVectors(words, rows, subwords=grams)
    sets["cased"] = WordVectors(cased, random.normal(size=(len(cased), 8)), subwords=None)
    return sets


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders, and what Python computes with them."""
    root = tmp_path_factory.mktemp("javascript")
    told = []
    for name, vectors in make_sets().items():
        save(vectors, root / name)
        manifest = json.loads((root / name / "manifest.json").read_text("utf-8"))
        assert manifest.get("stored") == (name if name in STEPS else None)
        weights = np.linspace(0, 2, len(vectors), dtype=np.float32)
        calls = [
            {"options": {}, "expected": vectors.encode(TEXTS).tolist()},
            {"options": {"weights": weights.tolist()}, "expected": vectors.encode(TEXTS, weights=weights).tolist()},
            {"options": {"dimensions": 5}, "expected": vectors.encode(TEXTS)[:, :5].tolist()},
        ]
        words = [*vectors.words[:50], *TERMS, *(["unseen", "ΝΈΟΣ"] if vectors.subwords else [])]
        rows = {word: vectors[word].tolist() for word in words}
        near = {word: vectors.nearest(word, 5) for word in vectors.words[:20] if vectors[word].any()}
        told.append({"folder": name, "texts": TEXTS, "calls": calls, "vectors": rows, "nearest": near})
    (root / "cases.json").write_text(json.dumps(told), "utf-8")
    return root


def test_node_gives_the_results_of_python(cases: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed.")
    command = [node, "--test", str(MODULE / "test" / "module.test.js")]
    done = subprocess.run(
        command, env={**os.environ, "STILLVEC_CASES": str(cases)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "# skipped 0" in done.stdout


@pytest.fixture
def address(cases: Path) -> Iterator[str]:
    """The module and the folders on a server."""
    site = cases / "site"
    shutil.copytree(MODULE, site / "js", dirs_exist_ok=True)
    (site / "page.html").write_text("<!doctype html><title>page</title>", "utf-8")
    for folder in cases.iterdir():
        if folder != site and not (site / folder.name).exists():
            (site / folder.name).symlink_to(folder)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here.")
def test_chromium_gives_the_results_of_python(address: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed.")
    script = """async () => {
      const { findDifferences } = await import("/js/test/differences.js");
      const { load } = await import("/js/index.js");
      await load("float32/");  // relative to the page
      return findDifferences(await (await fetch("/cases.json")).json(), (folder) => `/${folder}`);
    }"""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/page.html")
        worst = page.evaluate(script)
        browser.close()
    assert worst["neighbours"] == []
    assert max(worst["encode"], worst["vector"]) < 1e-6
    assert worst["cosine"] < 1e-5


def test_the_package_has_the_version_and_all_files() -> None:
    from stillvec import __version__

    package = json.loads((MODULE / "package.json").read_text("utf-8"))
    assert package["version"] == __version__
    assert "dependencies" not in package
    names = {file.name for file in MODULE.iterdir() if file.is_file()}
    assert {"index.js", "index.d.ts", "README.md", "package.json"} <= names
