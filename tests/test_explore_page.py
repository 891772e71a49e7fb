"""The explorer over HTTP, as a page of its own and on the command line; no browser is needed."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.cli import main
from stillvec.exploration import Explorer, PageServer, build_export_page, build_live_page, build_page_data, page_server
from stillvec.exploration.page_export import SCRIPTS
from stillvec.exploration.word_lookup import LexiconRelations
from stillvec.lexicons import Edge
from stillvec.numerics import tsne
from stillvec.progress import Progress, drain

EVIL = "<script>alert(1)</script>"
WORDS = [*(f"word{n}" for n in range(40)), EVIL, "{{script}}", "</script>", "new york", "été"]


def vectors_of(seed: int) -> WordVectors:
    return WordVectors(
        Vocabulary(WORDS, range(len(WORDS), 0, -1)), np.random.default_rng(seed).normal(size=(len(WORDS), 6))
    )


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tsne, "N_STEPS", 30)  # a map that is not looked at


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(Explorer({"a": vectors_of(0), "b": vectors_of(1)})) as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        yield bound
        bound.shutdown()


def send_request(server: PageServer, path: str, host: str | None = None, method: str = "GET") -> tuple[int, Any, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return (
        answer.status,
        json.loads(body) if "json" in str(answer.getheader("Content-Type")) else body.decode(),
        answer.headers,
    )


# over HTTP


def test_questions_are_answered_as_the_explorer_answers(server: PageServer) -> None:
    explorer = server.explorer
    expected = {
        "/api/about": explorer.describe(),
        "/api/complete?typed=word1": explorer.complete("word1"),
        "/api/neighbours?word=word1&k=3": explorer.find_neighbours("word1", 3),
        f"/api/neighbours?word={quote(EVIL)}": explorer.find_neighbours(EVIL),
        "/api/analogy?a=word1&b=word2&c=word3&method=3cosmul": explorer.solve_analogy(
            "word1", "word2", "word3", 8, "3cosmul"
        ),
        "/api/odd?word=word1&word=word2&word=new+york": explorer.find_odd_one_out(["word1", "word2", "new york"]),
        "/api/axes?set=b&x=word1&x=word2&word=word3": explorer.project_words("b", ["word1", "word2"], [], ["word3"]),
        "/api/card?word=%C3%A9t%C3%A9": explorer.describe_word("été"),
    }
    for path, answer in expected.items():
        assert send_request(server, path)[:2] == (200, json.loads(json.dumps(answer))), path


@pytest.mark.parametrize(
    ("path", "status", "sentence"),
    [
        ("/api/neighbours", 400, "expected one 'word', got 0"),
        ("/api/neighbours?word=a&word=b", 400, "expected one 'word', got 2"),
        ("/api/neighbours?word=word1&k=many", 400, "got 'many'"),
        ("/api/neighbours?word=word1&k=0", 400, "got 0"),
        ("/api/neighbours?word=wrod1", 200, "did you mean 'word1'"),
        ("/api/analogy?a=word1&b=word2&c=word3&method=x", 400, "'x'"),
        ("/api/odd?word=word1", 400, "got 1"),
        ("/api/axes?set=c&x=word1&x=word2", 400, "'c'"),
        ("/api/map?set=..%2F..", 400, "'../..'"),
        ("/api/examples?word=word1", 400, "--corpus"),
        ("/api/nothing", 404, "Nothing at /api/nothing"),
        ("/about", 404, "Nothing at /about"),
        ("/../../etc/passwd", 404, "Nothing at"),
        ("/api/odd?word=" + "x" * 30_000, 414, "20,000 characters"),
    ],
)
def test_a_wrong_question_gets_a_sentence(server: PageServer, path: str, status: int, sentence: str) -> None:
    got, reported, _ = send_request(server, path)
    assert got == status
    assert sentence in reported["error"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1"])
def test_another_name_gets_nothing(server: PageServer, host: str) -> None:
    for path in ("/", "/api/about"):
        status, reported, _ = send_request(server, path, host)
        assert status == 403
        assert "only answers requests for" in reported["error"]


def send_raw(server: PageServer, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=30) as connection:
        connection.sendall(request.replace(b"HOST", f"127.0.0.1:{server.server_port}".encode()))
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_an_invalid_address_is_400_without_a_traceback(server: PageServer, capfd: pytest.CaptureFixture[str]) -> None:
    answer = send_raw(server, b"GET http://[::1/ HTTP/1.1\r\nHost: HOST\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("header", [b"Content-Length: 99", b"Transfer-Encoding: chunked"])
def test_a_body_is_not_read_as_the_next_request(server: PageServer, header: bytes) -> None:
    answer = send_raw(
        server, b"GET / HTTP/1.1\r\nHost: HOST\r\n" + header + b"\r\n\r\nGET / HTTP/1.1\r\nHost: HOST\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


def test_two_host_headers_are_refused(server: PageServer) -> None:
    for hosts in (b"Host: HOST\r\nHost: x.example", b"Host: x.example\r\nHost: HOST"):
        assert send_raw(server, b"GET / HTTP/1.1\r\n" + hosts + b"\r\n\r\n").startswith(b"HTTP/1.1 403")


def test_idle_connections_are_closed_and_their_number_is_limited(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server._Handler, "timeout", 1)
    slots = threading.BoundedSemaphore(2)
    monkeypatch.setattr(server, "_slots", slots)
    opened = [socket.create_connection(("127.0.0.1", server.server_port), timeout=30) for _ in range(4)]
    assert opened[3].recv(1) == b""
    opened[0].sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.server_port}\r\n\r\n".encode())
    assert opened[0].recv(12) == b"HTTP/1.1 200"  # those within the limit are still open
    assert opened[1].recv(1) == b""
    for connection in opened:
        connection.close()
    assert slots.acquire(timeout=30)
    slots.release()
    assert send_request(server, "/")[0] == 200


def test_its_own_names_are_served_and_only_read(server: PageServer) -> None:
    assert send_request(server, "/", f"LOCALHOST:{server.server_port}")[0] == 200
    assert send_request(server, "/", method="DELETE")[0] == 501
    assert server.server_address[0] == "127.0.0.1"


def test_the_page_may_do_nothing_but_ask_its_server(server: PageServer) -> None:
    status, page, headers = send_request(server, "/")
    policy = headers["Content-Security-Policy"]
    assert (status, page) == (200, build_live_page()[0])
    assert "default-src 'none'" in policy
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_port_that_is_taken_or_invalid_is_reported(server: PageServer) -> None:
    with pytest.raises(stillvec.StillvecError, match=f"127.0.0.1:{server.server_port}"):
        PageServer(server.explorer, server.server_port)
    with pytest.raises(stillvec.StillvecError, match="got 70000"):
        PageServer(server.explorer, 70000)


# the page


class Reader(HTMLParser):
    """Reads a page strictly: every tag is closed in its order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [str(value) for key, value in attrs if key == "id"]
        if tag not in {"meta", "input", "link"}:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data


def written(**settings: Any) -> tuple[str, dict[str, Any]]:
    vectors = vectors_of(0)
    relations = LexiconRelations([Edge("word1", EVIL, 1.0, "synonym", "noun")], vectors.words)
    data = drain(build_page_data(Explorer({EVIL: vectors}, relations), **settings))
    return build_export_page(data), data


def test_the_pages_are_well_formed_and_name_nothing_outside() -> None:
    for page in (build_live_page()[0], written()[0]):
        reader = Reader(page)
        assert len(reader.ids) == len({*reader.ids})
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
        assert {*re.findall(r"https?://[^\s\"'<>)]+", page)} <= {"http://www.w3.org/2000/svg"}  # a name, not a place
        assert "{{" not in page.replace("{{script}}", "")


def test_the_script_asks_for_no_element_that_the_page_lacks() -> None:
    page = build_live_page()[0]
    made = {"sentences", "data"}  # by the script, and by the export
    assert {*re.findall(r'\$\("([\w-]+)"\)', page)} <= {*Reader(page).ids} | made


def test_no_markup_is_made_of_text() -> None:
    for name in SCRIPTS:
        script = files("stillvec.exploration").joinpath(name).read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function", script)


def test_colours_and_type_are_those_of_the_report() -> None:
    colours = files("stillvec.report").joinpath("colours.css").read_text("utf-8")
    assert "--paper" in colours
    assert colours in written()[0]


def _cosines(rows: Any) -> Any:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units @ units.T


def test_a_written_page_holds_the_vectors_as_bytes_and_no_word_ends_its_data() -> None:
    page, data = written()
    script, code = Reader(page).scripts
    assert json.loads(script) == json.loads(json.dumps(data))
    assert "LocalSource" in code
    vectors, (packed,) = vectors_of(0), data["data"]
    assert packed["words"] == WORDS
    rows = np.frombuffer(base64.b64decode(packed["q"]), np.int8).reshape(len(WORDS), -1).astype(np.float64)
    cosines = (
        (rows * vectors.matrix).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(vectors.matrix, axis=1)
    )
    assert cosines.min() > 0.9999
    norms = np.frombuffer(base64.b64decode(packed["n"]), "<f4")
    assert norms == pytest.approx(np.linalg.norm(vectors.matrix, axis=1), rel=1e-5)
    assert data["relations"]["word1"] == {"synonym": [EVIL]}
    assert data["parts"]["word1"] == "noun"
    off = np.abs(_cosines(rows) - _cosines(np.asarray(vectors.matrix, np.float64))).max()
    assert data["sets"][0]["off"] == pytest.approx(off, abs=1e-6)
    assert [*data["maps"]] == [EVIL]


def test_a_written_page_has_the_most_frequent_words_only() -> None:
    _, data = written(n_words=12, with_map=False)
    assert data["data"][0]["words"] == WORDS[:12]
    assert 0 < data["sets"][0].pop("off") < 0.02
    assert data["sets"][0] == {"name": EVIL, "words": 12, "whole": len(WORDS), "dim": 6}
    assert data["maps"] == {}
    with pytest.raises(stillvec.StillvecError, match="at least 10 words"):
        written(n_words=3)


# the command line


@pytest.fixture
def folders(tmp_path: Path) -> list[str]:
    paths = [tmp_path / "x" / "same", tmp_path / "y" / "same"]
    for seed, path in enumerate(paths):
        stillvec.save(vectors_of(seed), path)
    return [*map(str, paths)]


def test_a_page_is_written_completely_and_its_size_printed(
    folders: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, lexicon = tmp_path / "page.html", tmp_path / "lexicon.txt"
    lexicon.write_text("word1 word2 word3\n")
    assert main(["explore", *folders, "--export", str(out), "--words", "20", "--lexicon", str(lexicon), "--quiet"]) == 0
    output = capsys.readouterr()
    assert re.search(r"page.html: 20 words, [\d.]+ MB; it needs no server", output.out)
    assert output.err == ""
    data = json.loads(Reader(out.read_text("utf-8")).scripts[0])
    assert [each["name"] for each in data["sets"]] == ["x/same", "y/same"]  # by as much as tells them apart
    assert data["relations"]["word1"]["related"]


def test_explore_exports_vectors_in_memory_and_reports_progress(tmp_path: Path) -> None:
    events: list[Progress] = []
    path = tmp_path / "page.html"
    stillvec.explore({"mine": vectors_of(0)}, export=path, n_words=15, progress=events.append)
    data = json.loads(Reader(path.read_text("utf-8")).scripts[0])
    assert [(each["name"], each["words"]) for each in data["sets"]] == [("mine", 15)]
    assert {event.stage for event in events} == {"finding neighbours", "computing the map"}


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["missing"], "missing"),
        (["FOLDER", "FOLDER"], "twice"),
        (["FOLDER"] * 4, "got 4"),
        (["FOLDER", "--corpus", "missing.txt"], "missing.txt"),
        (["FOLDER", "--lexicon", "missing.txt"], "missing.txt"),
        (["FOLDER", "--columns", "missing.csv"], "missing.csv"),
        (["FOLDER", "--export", "."], "got a folder"),
        (["FOLDER", "--port", "99999", "--no-browser"], "65,535"),
    ],
)
def test_a_wrong_call_is_one_sentence(
    folders: list[str], flags: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explore", *(folders[0] if flag == "FOLDER" else flag for flag in flags)]) in (1, 2)
    stderr = capsys.readouterr().err
    assert sentence in stderr
    assert stderr.count("\n") == 1


def test_the_page_is_served_until_it_is_interrupted(folders: list[str]) -> None:
    command = [sys.executable, "-m", "stillvec", "explore", folders[0], "--no-browser"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    ) as running:
        try:
            assert running.stdout is not None
            found = re.search(r"http://\S+", running.stdout.readline())
            assert found is not None
            address = found[0]
            with urllib.request.urlopen(f"{address}api/about", timeout=60) as answer:
                assert json.load(answer)["sets"][0]["name"] == "same"
            running.send_signal(signal.SIGINT)
            rest, errors = running.communicate(timeout=60)
        finally:
            running.kill()
    assert (running.returncode, rest, errors) == (0, "stopped\n", "")


def test_a_projection_without_its_package_is_reported_before_the_page_is_served(
    folders: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stillvec.registry._is_installed", lambda name: False)
    for flags in ([], ["--export", "page.html"]):
        assert main(["explore", folders[0], "--projections", "umap", "--no-browser", *flags]) == 1
        assert "stillvec[umap]" in capsys.readouterr().err


def test_an_exported_page_has_the_columns_and_the_projections_asked_for(folders: list[str], tmp_path: Path) -> None:
    out, table = tmp_path / "page.html", tmp_path / "c.tsv"
    table.write_text("word\tkind\nword1\t<b>\nword2\tx\n")
    flags = ["--words", "20", "--columns", str(table), "--projections", "pca", "--quiet"]
    assert main(["explore", folders[0], "--export", str(out), *flags]) == 0
    data = json.loads(Reader(out.read_text("utf-8")).scripts[0])
    assert (data["projections"], [*data["maps"]["same"]]) == (["pca"], ["pca"])
    (column,) = data["fields"]["same"]["columns"]
    assert (column["name"], sorted(column["levels"])) == ("kind", ["<b>", "x"])
