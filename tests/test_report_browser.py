"""The page in a real browser, where there is one: it is drawn, no word becomes a script, headings sort."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from report_sets import EVIL, EVIL_NAME, page_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no Chromium here.")


def dom(folder: Path, page: str, *flags: str) -> str:
    """What the browser made of a page."""
    file = folder / "seen.html"
    file.write_text(page, "utf-8")
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *flags, "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_probe(page: str, script: str) -> str:
    """The page with one more script, which is allowed for the test; it tells what it saw in the title."""
    free = re.sub(r"script-src &#x27;[^;]*;", "script-src &#x27;unsafe-inline&#x27;;", page)
    assert free != page
    return free.replace("</body>", f"<script>{script}</script></body>")


def title_of(seen: str) -> str:
    """That of the page, which comes before those of dots."""
    return re.findall("<title>(.*?)</title>", seen)[0]


def test_a_word_that_looks_like_a_script_stays_a_word(tmp_path: Path) -> None:
    page = page_of(tmp_path, ["a", EVIL_NAME], words=[EVIL], title=EVIL)
    caught = "<script>window.alerted=0;window.alert=()=>{window.alerted+=1}</script><body>"
    probe = (
        "document.title=[alerted,document.scripts.length,document.images.length,document.querySelector('h1').innerText]"
    )
    seen = dom(tmp_path, with_probe(page.replace("<body>", caught), probe))
    assert title_of(seen) == "0,3,0,&lt;script&gt;alert(1)&lt;/script&gt;"


def test_the_page_fits_a_phone_and_its_own_script_sorts(tmp_path: Path) -> None:
    page = page_of(tmp_path, ["a", "b", "c"])
    sort = (
        "const t=document.querySelector('#coverage table.sortable')||document.querySelector('table.sortable');"
        "const b=t.querySelectorAll('thead button');b[1].click();b[1].click();"
        "document.title=[b.length>1,t.querySelectorAll('[aria-sort=ascending]').length,"
        "document.documentElement.scrollWidth<=window.innerWidth]"
    )
    for width in (390, 1280):
        seen = dom(tmp_path, with_probe(page, sort), f"--window-size={width},800")
        assert title_of(seen) == "true,1,true"


def test_its_own_script_runs_under_its_own_policy(tmp_path: Path) -> None:
    assert "<button" in dom(tmp_path, page_of(tmp_path, ["a", "b"]))


def test_headers_stay_whole_on_a_phone_and_what_scrolls_fades(tmp_path: Path) -> None:
    names = ["decontextualized", "skipgram-baseline", "auto", "attentive_skipgram"]
    look = (
        "const names=[...document.querySelectorAll('.heat thead .num .name')];"
        "const styles=names.map(name=>getComputedStyle(name));"
        "document.title=[names.length>3,styles.every(s=>s.writingMode==='vertical-rl'&&s.whiteSpace==='nowrap'),"
        "[...document.querySelectorAll('.scroll')].every(s=>getComputedStyle(s).maskImage!=='none')]"
    )
    seen = dom(tmp_path, with_probe(page_of(tmp_path, names), look), "--window-size=390,800")
    assert title_of(seen) == "true,true,true"
