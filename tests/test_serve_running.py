"""A real server in a process of its own, on the loopback: clients, limits, the token, the stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.formats import load, save
from stillvec.service import serve
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
pytest.importorskip("usearch")

Process = subprocess.Popen[str]
Start = Callable[..., tuple[Process, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    near = {"king": [1, 1, 0], "queen": [1, 0, 1], "man": [0.1, 1, 0], "woman": [0.1, 0, 1], "<script>": [-1, -1, -1]}
    far = {"ice": [1, 0.9, 1], "snow": [0.9, 1, 1]}  # words of the examples in the description
    path = tmp_path_factory.mktemp("served") / "small"
    save(WordVectors(near | far, np.array([*near.values(), *far.values()], np.float32)), path)
    return path


@pytest.fixture(scope="module")
def start(folder: Path) -> Iterator[Start]:
    """Starts `stillvec serve` on a free port and gives the process and its address."""
    begun: list[Process] = []

    def starting(*flags: str, token: str | None = None) -> tuple[Process, str]:
        environment = {name: value for name, value in os.environ.items() if name != "STILLVEC_TOKEN"}
        environment |= {} if token is None else {"STILLVEC_TOKEN": token}
        call = [sys.executable, "-m", "stillvec", "serve", "--port", "0", *flags, str(folder)]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        process = subprocess.Popen(call, env=environment | {"PYTHONUNBUFFERED": "1"}, **pipes)
        begun.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("serving at "):
                return process, line.split()[2].rstrip(",")
        raise AssertionError(f"The server ended with {process.wait()} before it served.")

    yield starting
    for process in begun:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def address(start: Start, folder: Path) -> str:
    return start(f"text-embedding-3-small={folder}")[1]  # beside the one that has the folder's name


def _request(url: str, body: object = None, token: str | None = None, host: str | None = None) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    headers |= {} if host is None else {"Host": host}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def _connected(address: str) -> socket.socket:
    host, _, port = address.removeprefix("http://").rpartition(":")
    return socket.create_connection((host, int(port)), timeout=30)


def _rest(connection: socket.socket) -> str:
    return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


def test_a_real_openai_client_works_unchanged(address: str) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
    said = client.embeddings.create(model="small", input=["king queen", "man"])  # in base64, as it asks by itself
    plain = client.embeddings.create(model="small", input="king queen", encoding_format="float")
    mean = np.array([2, 1, 1]) / np.sqrt(6)
    assert np.allclose(said.data[0].embedding, mean)
    assert np.allclose(plain.data[0].embedding, mean)
    assert said.usage.total_tokens == 3
    assert client.embeddings.create(model="text-embedding-3-small", input="man").data[0].embedding
    assert [model.id for model in client.models.list()] == ["text-embedding-3-small", "small"]
    with pytest.raises(openai.NotFoundError, match="'ada'") as caught:
        client.embeddings.create(model="ada", input="king")
    assert caught.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError, match="send the text itself"):
        client.embeddings.create(model="small", input=[1, 2, 3])


def test_a_word_that_looks_like_markup_goes_over_the_wire(address: str) -> None:
    status, said = _request(f"{address}/nearest?word=%3Cscript%3E&k=1")
    assert status == 200
    assert said["data"][0]["word"] in {"king", "queen", "man", "woman"}


@pytest.mark.parametrize(
    ("flags", "token", "status"), [((), None, 403), (("--open",), None, 200), ((), "a-token-of-24-characters", 200)]
)
def test_another_name_is_refused_where_nothing_else_guards(
    start: Start, flags: tuple[str, ...], token: str | None, status: int
) -> None:
    _, address = start(*flags, token=token)
    port = address.rpartition(":")[2]
    for name in (f"localhost:{port}", f"[::1]:{port}", "127.0.0.1"):
        assert _request(f"{address}/v1/models", token=token, host=name)[0] == 200, name
    got, reported = _request(f"{address}/v1/models", token=token, host="x.example")
    assert got == status
    assert ("'Host' header" in str(reported)) == (status == 403)


def test_the_message_about_a_large_body_reaches_the_client(address: str) -> None:
    with _connected(address) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
        said = _rest(connection)
    assert said.startswith("HTTP/1.1 413")
    assert "4,194,304 bytes" in said


def test_a_body_in_chunks_is_refused_before_its_end(address: str) -> None:
    with _connected(address) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(65):  # 64 KiB each, and the limit is 4 MiB; the end never comes
            connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
        assert connection.recv(12) == b"HTTP/1.1 413"


def test_a_request_that_never_comes_whole_is_ended(start: Start) -> None:
    _, address = start("--limit", "seconds=0.3")
    with _connected(address) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        said = _rest(connection)
    assert said.startswith("HTTP/1.1 408")
    assert "0.3 seconds" in said


def test_more_requests_than_are_taken_at_once_are_503_and_health_is_not(start: Start) -> None:
    _, address = start("--limit", "requests=1")
    with _connected(address) as connection:
        connection.sendall(b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{")
        until = time.monotonic() + 30
        while (answer := _request(f"{address}/vectors?word=king"))[0] == 200:  # until the other is being read
            assert time.monotonic() < until
        assert answer[0] == 503
        assert answer[1]["error"]["code"] == "overloaded"
        assert _request(f"{address}/health")[0] == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_lets_the_request_that_was_begun_end(start: Start, number: int) -> None:
    process, address = start("--log")
    body = b'{"texts": ["king"]}'
    with _connected(address) as connection:
        head = (
            b"POST /embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        connection.sendall(head % len(body) + body[:5])
        while "stillvec_requests_in_flight 2" not in _text(f"{address}/metrics"):
            time.sleep(0.05)
        process.send_signal(number)
        until = time.monotonic() + 30
        while _listens(address):  # no new ones are taken
            assert time.monotonic() < until
            time.sleep(0.05)
        connection.sendall(body[5:])
        said = _rest(connection)
    assert said.startswith("HTTP/1.1 200")
    assert process.wait(30) == 0
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    assert lines[-1] == "stopped"
    assert any(line.startswith("POST /embed 200 ") for line in lines)
    assert "Traceback" not in "".join(lines)


def _text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def _listens(address: str) -> bool:
    try:
        _connected(address).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_token_from_the_environment_or_a_file_is_required(start: Start, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-token-from-a-file\n", encoding="utf-8")
    for token, (_, address) in {
        "a-token-from-outside": start(token="a-token-from-outside"),
        "a-token-from-a-file": start("--token-file", str(tmp_path / "token"), token="not-this"),
    }.items():
        assert _request(f"{address}/vectors?word=king")[0] == 401
        assert _request(f"{address}/vectors?word=king", token=token)[0] == 200
        assert _request(f"{address}/health")[0] == 200


def test_a_port_that_is_taken_is_one_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", str(folder), "--port", port]) == 2
    out, output = capsys.readouterr()
    assert out == ""
    assert output.startswith(f"stillvec: Cannot listen on 127.0.0.1:{port} (address already in use)")
    assert output.count("\n") == 1


WRONG = {
    "other machines without a token": (["--host", "0.0.0.0"], "--token-file"),
    "all of IPv6 without a token": (["--host", "::"], "--token-file"),
    "a host that is none": (["--host", "no.such.host.invalid"], "no.such.host.invalid"),
    "a port that is none": (["--port", "70000"], "from 0 to 65,535"),
    "a limit that is none": (["--limit", "bodies=3"], "did you mean 'body'?"),
    "a limit that is no number": (["--limit", "k=many"], "a whole number"),
    "no file of a token": (["--token-file", "nowhere/token"], "nowhere/token"),
    "vectors that are not there": (["nowhere"], "nowhere"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.delenv("STILLVEC_TOKEN", raising=False)
    flags, sentence = WRONG[case]
    missing_file = case in ("no file of a token", "vectors that are not there")
    assert main(["serve", "--port", "0", *flags, str(folder)]) == (1 if missing_file else 2)
    out, output = capsys.readouterr()
    assert sentence in output
    assert (out, output.count("\n")) == ("", 1)


def test_names_of_two_sets_must_differ(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(folder), str(folder), "--port", "0"]) == 2
    assert "'small'" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "two words", "naïve"])
def test_a_token_that_no_header_can_hold_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("STILLVEC_TOKEN", token)
    assert main(["serve", str(folder), "--port", "0"]) == 2
    assert "STILLVEC_TOKEN: expected a token" in capsys.readouterr().err


def test_a_file_of_bytes_is_not_a_token(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"\xff\xfe\x00")
    assert main(["serve", "--port", "0", "--token-file", str(tmp_path / "token"), str(folder)]) == 2
    assert f"{tmp_path / 'token'}: expected a token" in capsys.readouterr().err


def test_without_the_extra_the_verb_says_which_it_is(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", str(folder), "--port", "0"]) == 1
    assert "pip install 'stillvec[serve]'" in capsys.readouterr().err


def test_serve_takes_vectors_in_memory_and_needs_a_token_for_other_machines() -> None:
    vectors = WordVectors(["king"], [[1.0, 0.0]])
    with pytest.raises(UsageError) as caught:
        serve(vectors, host="0.0.0.0", port=0)
    assert caught.value.code == "no-token"
    with pytest.raises(UsageError, match="at least one set"):
        serve({}, port=0)


@pytest.mark.slow
def test_schemathesis_finds_nothing(start: Start, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    fit(
        load(folder),
        [(f"{word} {number}", word) for word in ("ice", "king") for number in range(20)],
        out=tmp_path / "head",
    )
    _, address = start(str(tmp_path / "head"), token="a-token-of-24-characters")
    call = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json", "--max-examples", "20"]
    flags = ["--header", "Authorization: Bearer a-token-of-24-characters", "--no-color", "--generation-deterministic"]
    done = subprocess.run([*call, *flags], capture_output=True, text=True, timeout=900, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "No issues found" in done.stdout
