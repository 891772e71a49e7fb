"""Every endpoint of the server with valid and invalid requests, without a socket."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stillvec import index
from stillvec.errors import UsageError
from stillvec.sense_table import SenseTable
from stillvec.service import Limits
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors

pytest.importorskip("fastapi")
pytest.importorskip("usearch")
from fastapi.testclient import TestClient

from stillvec.service import handlers
from stillvec.service.application import create_app
from stillvec.service.models import ServedModels

WORDS = ["king", "queen", "man", "woman", "雪", "<script>", "nothing"]
MATRIX = np.array([[1, 1, 0], [1, 0, 1], [0.1, 1, 0], [0.1, 0, 1], [-1, 0.5, 0.2], [-1, -1, -1], [0, 0, 0]], np.float32)
LIMITS = Limits(body=20_000, batch=4, k=12, seconds=20)
SIMPLE = ("/vectors", "/similarity", "/nearest", "/analogy", "/embed", "/v1/embeddings")


def _models() -> ServedModels:
    return ServedModels({"small": WordVectors(WORDS, MATRIX), "other": WordVectors(["ice", "snow"], [[1, 0], [1, 1]])})


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(_models(), LIMITS)) as given:
        yield given


@pytest.fixture
def fresh() -> Iterator[TestClient]:
    """One that has answered nothing yet."""
    with TestClient(create_app(_models(), LIMITS), raise_server_exceptions=False) as given:
        yield given


def _refused(answer: Any, status: int) -> dict[str, Any]:
    """The one form of a refusal: its error, with a message of one sentence."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["message"][-1] in ".?"
    assert "\n" not in error["message"]
    return error


def _cosine(a: Any, b: Any) -> float:
    return float(np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))


def test_health_says_what_is_served(client: TestClient) -> None:
    said = client.get("/health").json()
    assert said["status"] == "ok"
    assert [(m["id"], m["words"], m["dim"], m["search"]) for m in said["models"]] == [
        ("small", 7, 3, "exact"),
        ("other", 2, 2, "exact"),
    ]
    assert client.get("/v1/models").json()["data"] == said["models"]
    assert client.get("/v1/models/other").json() == said["models"][1]


def test_vectors_of_words_are_their_rows(client: TestClient) -> None:
    said = client.post("/vectors", json={"words": ["Queen", "雪"]}).json()
    assert [each["word"] for each in said["data"]] == ["queen", "雪"]
    assert np.allclose([each["vector"] for each in said["data"]], MATRIX[[1, 4]])
    assert client.get("/vectors", params={"word": "queen"}).json()["data"] == said["data"][:1]


def test_similarity_is_the_cosine(client: TestClient) -> None:
    said = client.post("/similarity", json={"pairs": [["king", "queen"], ["man", "nothing"]]}).json()
    assert [each["cosine"] for each in said["data"]] == [each["score"] for each in said["data"]]  # old and new name
    assert said["data"][0]["score"] == pytest.approx(_cosine(MATRIX[0], MATRIX[1]))
    assert said["data"][1]["score"] == 0
    assert client.get("/similarity", params={"a": "king", "b": "queen"}).json()["data"] == said["data"][:1]


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_nearest_groups_inflections_on_request(search: str) -> None:
    words = ["river", "rivers", "lake", "lakes", "fire"]
    models = ServedModels({"a": WordVectors(words, [[1, 0], [1, 0.1], [1, 0.5], [1, 0.6], [0, 1]])})
    if search == "approximate":
        models["a"]._build()
    with TestClient(create_app(models, LIMITS)) as client:
        params = {"word": "river", "k": 1, "group": True, "exact": search == "exact"}
        said = client.post("/nearest", json=params).json()
        assert (said["search"], said["forms"]) == (search, ["rivers"])
        assert [(each["word"], each["forms"]) for each in said["data"]] == [("lake", ["lakes"])]
        assert client.get("/nearest", params=params).json() == said
        plain = client.get("/nearest", params={"word": "river", "k": 1}).json()
        assert [(each["word"], each["forms"]) for each in plain["data"]] == [("rivers", [])]


def test_nearest_shows_the_senses_of_a_word_that_has_several() -> None:
    vectors = WordVectors(["bank", "money", "river"], np.array([[1, 1], [1, 0], [0, 1]], np.float32))
    texts = np.frombuffer(b"two\0one\0", np.uint8).reshape(2, 1, 4)
    table = SenseTable(vectors.vocabulary, [0, 0], vectors.matrix[1:], np.array([0.75, 0.25]), texts)
    models = ServedModels({"small": vectors.with_matrix(vectors.matrix, senses=table)})
    with TestClient(create_app(models, LIMITS)) as client:
        said = client.get("/nearest", params={"word": "bank", "k": 1}).json()
        assert [(sense["share"], sense["examples"]) for sense in said["senses"]] == [(0.75, ["two"]), (0.25, ["one"])]
        assert [sense["data"][0]["word"] for sense in said["senses"]] == ["money", "river"]
        assert client.get("/nearest", params={"word": "money", "k": 1}).json()["senses"] == []


def test_nearest_to_a_word_a_text_and_a_vector_agree_with_brute_force(client: TestClient) -> None:
    cosines = {word: _cosine(MATRIX[0], row) for word, row in zip(WORDS[:-1], MATRIX, strict=False)}
    wanted = sorted(cosines, key=lambda word: -cosines[word])
    by_word = client.get("/nearest", params={"word": "king", "k": 3}).json()
    assert [each["word"] for each in by_word["data"]] == wanted[1:4]  # without itself
    assert by_word["search"] == "exact"
    for requested in ({"text": "king!"}, {"vector": [1e300, 1e300, 0]}, {"vector": [1e-300, 1e-300, 0]}):
        said = client.post("/nearest", json={**requested, "k": 3}).json()
        assert [each["word"] for each in said["data"]] == wanted[:3]
        assert [each["score"] for each in said["data"]] == pytest.approx([cosines[word] for word in wanted[:3]])


def test_nearest_to_the_zero_vector_is_answered(client: TestClient) -> None:
    said = client.post("/nearest", json={"vector": [0, 0, 0], "k": 2, "exact": False}).json()
    assert [each["score"] for each in said["data"]] == [0, 0]


def test_the_approximate_search_is_used_once_it_is_built_and_says_so() -> None:
    sets = _models()
    with TestClient(create_app(sets, LIMITS)) as client:
        exact = client.get("/nearest", params={"word": "king", "k": 3}).json()
        until = time.monotonic() + 60
        while client.get("/nearest", params={"word": "king", "k": 3, "exact": False}).json()["search"] == "exact":
            assert time.monotonic() < until
            time.sleep(0.05)
        said = client.get("/nearest", params={"word": "king", "k": 3, "exact": False}).json()
        assert [each["word"] for each in said["data"]] == [each["word"] for each in exact["data"]]
        assert client.get("/health").json()["models"][0]["recall_at_10"] == 1.0
        assert 'stillvec_recall_at_10{model="small"} 1.0' in client.get("/metrics").text
        assert client.get("/nearest", params={"word": "king", "k": 3}).json()["search"] == "exact"


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_analogy_finds_the_queen(client: TestClient, method: str) -> None:
    requested = {"a": "man", "b": "king", "c": "woman", "k": 1, "method": method}
    said = client.get("/analogy", params=requested).json()
    assert said["data"][0]["word"] == "queen"
    assert client.post("/analogy", json=requested).json() == said


def test_embed_gives_means_and_names_texts_without_a_known_word(client: TestClient) -> None:
    said = client.post("/embed", json={"texts": ["the king, a queen", "zzz", ""]}).json()
    assert np.allclose(said["data"][0], MATRIX[:2].mean(axis=0))
    assert said["unknown"] == [1, 2]
    unit = client.get("/embed", params={"text": "the king, a queen", "unit": True}).json()["data"][0]
    assert np.allclose(unit, np.array(said["data"][0]) / np.linalg.norm(said["data"][0]))


def test_embeddings_have_openais_form_and_length_one(client: TestClient) -> None:
    said = client.post("/v1/embeddings", json={"input": ["king queen", "zzz man"], "model": "small"}).json()
    assert said["object"] == "list"
    assert said["model"] == "small"
    assert said["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
    assert [(each["object"], each["index"]) for each in said["data"]] == [("embedding", 0), ("embedding", 1)]
    mean = MATRIX[:2].mean(axis=0)
    assert np.allclose(said["data"][0]["embedding"], mean / np.linalg.norm(mean))


def test_embeddings_in_base64_are_the_same_numbers(client: TestClient) -> None:
    requested = {"input": "king queen", "dimensions": 3, "user": "me"}
    plain = client.post("/v1/embeddings", json=requested).json()["data"][0]["embedding"]
    packed = client.post("/v1/embeddings", json=requested | {"encoding_format": "base64"}).json()["data"][0][
        "embedding"
    ]
    assert np.frombuffer(base64.b64decode(packed), "<f4").tolist() == plain


def test_the_first_dimensions_have_length_one_again(client: TestClient) -> None:
    mean = MATRIX[:2].mean(axis=0)[:2]
    reply = client.post("/v1/embeddings", json={"input": "king queen", "dimensions": 2}).json()
    assert np.allclose(reply["data"][0]["embedding"], mean / np.linalg.norm(mean))
    for unit in (False, True):
        body = {"texts": ["king queen", "zzz"], "dimensions": 2, "unit": unit}
        reply = client.post("/embed", json=body).json()
        assert (reply["dim"], reply["unknown"]) == (2, [1])
        assert np.allclose(reply["data"], [mean / (np.linalg.norm(mean) if unit else 1), [0, 0]])


def test_models_say_whether_their_dimensions_are_ordered() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 16))
    sets = {"ordered": rows * 0.7 ** np.arange(16), "reversed": rows * 0.7 ** np.arange(16)[::-1]}
    words = [f"w{row}" for row in range(200)]
    models = ServedModels({name: WordVectors(words, matrix) for name, matrix in sets.items()})
    with TestClient(create_app(models, LIMITS)) as client:
        listed = client.get("/v1/models").json()["data"]
    assert {model["id"]: model["ordered"] for model in listed} == {"ordered": True, "reversed": False}


def test_a_request_names_a_model_and_the_first_is_the_default(client: TestClient) -> None:
    assert client.get("/vectors", params={"word": "ice", "model": "other"}).json()["dim"] == 2
    assert client.get("/vectors", params={"word": "king"}).json()["model"] == "small"
    error = _refused(client.get("/vectors", params={"word": "king", "model": "gpt"}), 404)
    assert error["code"] == "model_not_found"
    assert "'small', 'other'" in error["message"]


def test_a_single_model_answers_openais_requests_under_any_name(client: TestClient) -> None:
    body = {"model": "text-embedding-3-small", "input": "king"}
    with TestClient(create_app(ServedModels({"small": WordVectors(WORDS, MATRIX)}), LIMITS)) as single:
        assert single.post("/v1/embeddings", json=body).json()["model"] == "small"
        _refused(single.post("/vectors", json={"model": "ada", "words": ["king"]}), 404)
    assert _refused(client.post("/v1/embeddings", json=body), 404)["code"] == "model_not_found"


def test_the_numbers_of_a_response_are_limited() -> None:
    with TestClient(create_app(_models(), Limits(values=6))) as client:
        for path, field in (("/vectors", "words"), ("/embed", "texts"), ("/v1/embeddings", "input")):
            assert client.post(path, json={field: ["king"] * 2}).status_code == 200
            assert "at most 2 items" in _refused(client.post(path, json={field: ["king"] * 3}), 400)["message"]
        assert client.post("/similarity", json={"pairs": [["king", "man"]] * 3}).status_code == 200


def test_an_unknown_word_is_404_and_names_the_nearest_spelling(client: TestClient) -> None:
    error = _refused(client.get("/nearest", params={"word": "Quen"}), 404)
    assert error["message"] == "'Quen' is not in the vocabulary of 'small'; did you mean 'queen'?"
    assert (error["param"], error["code"]) == ("word", "word_not_found")
    assert len(_refused(client.get("/nearest", params={"word": "k" * 5000}), 404)["message"]) < 200
    assert _refused(client.post("/nearest", json={"text": "zzz yyy"}), 404)["param"] == "text"


def test_a_word_never_seen_is_answered_by_its_ngrams() -> None:
    table = SubwordTable(Ngrams(50, 2, 3), np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    vectors = WordVectors(WORDS, MATRIX, subwords=table)
    made = table.vectors(["kings"])[0]
    with TestClient(create_app(ServedModels({"small": vectors}), LIMITS)) as client:
        assert client.get("/vectors?word=Kings").json()["data"][0]["vector"] == pytest.approx(made.tolist())
        embedded = client.get("/embed?text=kings").json()
        assert embedded["data"][0] == pytest.approx(made.tolist())
        assert embedded["unknown"] == []
        found = [each["word"] for each in client.get("/nearest?word=kings&k=7").json()["data"]]
        found.remove("nothing")
        assert found == sorted(WORDS[:-1], key=lambda word: -_cosine(MATRIX[WORDS.index(word)], made))


def test_a_word_that_looks_like_markup_is_a_word(client: TestClient) -> None:
    answer = client.get("/vectors", params={"word": "<script>"})
    assert answer.json()["data"][0]["word"] == "<script>"
    assert answer.headers["content-type"] == "application/json"
    error = _refused(client.get("/vectors", params={"word": "<b>alert</b>"}), 404)
    assert "<b>alert</b>" in error["message"]


BAD: dict[str, tuple[str, Any, str]] = {
    "token arrays": ("/v1/embeddings", {"input": [1, 2, 3]}, "send the text itself"),
    "lists of token arrays": ("/v1/embeddings", {"input": [[1, 2], [3]]}, "send the text itself"),
    "an empty input": ("/v1/embeddings", {"input": ""}, "non-empty string"),
    "no input": ("/v1/embeddings", {"model": "small"}, "'input'"),
    "too many dimensions": ("/v1/embeddings", {"input": "king", "dimensions": 4}, "from 1 to 3 for 'small', got 4"),
    "no dimensions": ("/embed", {"texts": ["king"], "dimensions": 0}, "from 1 to 3 for 'small', got 0"),
    "another encoding": ("/v1/embeddings", {"input": "king", "encoding_format": "hex"}, "'float' or 'base64'"),
    "too many inputs": ("/v1/embeddings", {"input": ["king"] * 5}, "at most 4 items, got 5"),
    "too many words": ("/vectors", {"words": ["king"] * 5}, "at most 4 items, got 5"),
    "no words": ("/vectors", {"words": []}, "'words'"),
    "too many pairs": ("/similarity", {"pairs": [["king", "king"]] * 5}, "at most 4 items, got 5"),
    "a pair of three": ("/similarity", {"pairs": [["king", "queen", "man"]]}, "'pairs.0'"),
    "too many neighbours": ("/nearest", {"word": "king", "k": 13}, "at most 12, got 13"),
    "no neighbours": ("/nearest", {"word": "king", "k": 0}, "greater than or equal to 1"),
    "a number as text": ("/nearest", {"word": "king", "k": "3"}, "valid integer"),
    "nothing to be near to": ("/nearest", {"k": 3}, "got none of them"),
    "two things to be near to": ("/nearest", {"word": "king", "text": "king"}, "got 'text' and 'word'"),
    "a short vector": ("/nearest", {"vector": [1, 2]}, "must have 3 numbers, got 2"),
    "too many answers": ("/analogy", {"a": "man", "b": "king", "c": "woman", "k": 13}, "at most 12, got 13"),
    "a method that is none": ("/analogy", {"a": "man", "b": "king", "c": "man", "method": "x"}, "'3cosadd'"),
    "too many texts": ("/embed", {"texts": [""] * 5}, "at most 4 items, got 5"),
    "a text instead of texts": ("/embed", {"texts": "king"}, "valid list"),
    "an unknown field": ("/embed", {"texts": ["king"], "normalise": True}, "'normalise'"),
    "a list": ("/embed", [1], "Invalid body"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence_and_400(client: TestClient, case: str) -> None:
    path, body, sentence = BAD[case]
    assert sentence in _refused(client.post(path, json=body), 400)["message"]


BODIES = {
    "half of a body": b'{"words": ["king"',
    "no UTF-8": b'{"words": ["\xff"]}',
    "half a character": b'{"words": ["\\ud800"]}',
    "a number that is none": b'{"vector": [NaN, 1, 2]}',
    "an endless number": b'{"vector": [1e999, 1, 2]}',
    "a number without end": b'{"vector": [' + b"9" * 4000 + b", 1, 2]}",
    "a number longer than Python reads": b'{"vector": [' + b"9" * 6000 + b", 1, 2]}",
    "a deep body": b"[" * 9000,
    "nothing": b"",
}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/vectors", {"words": ["\ud800"]}),
        ("/similarity", {"pairs": [["king", "\udfff king"]]}),
        ("/nearest", {"text": "king \ud800"}),
        ("/nearest", {"word": "\ud800"}),
        ("/embed", {"texts": ["\ud800", "king \ud800 雪"]}),
        ("/v1/embeddings", {"input": "king \ud800", "model": "\ud800"}),
    ],
)
def test_half_a_character_is_400_everywhere(client: TestClient, path: str, body: Any) -> None:
    answer = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert _refused(answer, 400)


@pytest.mark.parametrize("case", BODIES)
@pytest.mark.parametrize("path", SIMPLE)
def test_a_body_that_cannot_be_read_is_400(client: TestClient, path: str, case: str) -> None:
    _refused(client.post(path, content=BODIES[case], headers={"content-type": "application/json"}), 400)


def test_unknown_paths_and_methods_have_the_same_form(client: TestClient) -> None:
    assert "'/nowhere'" in _refused(client.get("/nowhere"), 404)["message"]
    answer = client.delete("/nearest")
    _refused(answer, 405)
    assert answer.headers["allow"] == "GET, POST"


def test_a_failure_of_ours_has_the_same_form_and_tells_nothing(
    fresh: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("a secret")

    monkeypatch.setattr(handlers, "_encode_query", broken)
    answer = fresh.get("/nearest", params={"word": "king"})
    assert _refused(answer, 500)["type"] == "server_error"
    assert "secret" not in answer.text
    assert 'path="/nearest",status="500"} 1' in fresh.get("/metrics").text


def test_a_large_body_is_refused_by_its_announced_length(client: TestClient) -> None:
    answer = client.post("/embed", json={"texts": ["x" * 20_000]})
    assert "20,000 bytes" in _refused(answer, 413)["message"]


def test_a_large_body_without_a_length_is_refused_while_it_is_read(client: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(1000):
            yield b" " * 1000

    headers = {"content-type": "application/json"}
    assert "20,000 bytes" in _refused(client.post("/embed", content=endless(), headers=headers), 413)["message"]
    just = json.dumps({"texts": ["king"]}).ljust(20_000).encode()
    assert client.post("/embed", content=iter([just]), headers=headers).status_code == 200
    assert client.post("/embed", content=iter([just, b" "]), headers=headers).status_code == 413


def test_work_that_takes_too_long_is_504(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "_encode_query", lambda *given: time.sleep(0.5))
    with TestClient(create_app(_models(), Limits(seconds=0.1))) as client:
        error = _refused(client.get("/nearest", params={"word": "king"}), 504)
        assert "0.1 seconds" in error["message"]
        assert client.get("/health").status_code == 200


def test_a_token_is_required_everywhere_except_for_health_and_the_docs_page() -> None:
    with TestClient(create_app(_models(), LIMITS, token="s3cret")) as client:
        assert client.get("/health").status_code == 200
        assert client.get("/docs").status_code == 200
        for given in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "s3cret"},
            {"Authorization": "Bearer é"},
        ):
            headers = {name: value.encode() for name, value in given.items()}
            for path in ("/v1/models", "/metrics", "/docs/", "/openapi.json", "/nowhere", "/vectors?word=king"):
                answer = client.get(path, headers=headers)
                assert _refused(answer, 401)["code"] == "invalid_api_key"
                assert answer.headers["www-authenticate"] == "Bearer"
        answer = client.get("/vectors?word=king", headers={"Authorization": "bearer s3cret"})
        assert answer.status_code == 200


def test_a_wrong_token_and_a_missing_one_have_different_messages() -> None:
    with TestClient(create_app(_models(), LIMITS, token="s3cret")) as client:
        missing = _refused(client.get("/v1/models"), 401)["message"]
        wrong = _refused(client.get("/v1/models", headers={"Authorization": "Bearer wrong"}), 401)["message"]
        assert "Authorization: Bearer TOKEN" in missing
        assert "wrong" in wrong
        assert "s3cret" not in missing + wrong


@pytest.mark.parametrize("path", SIMPLE)
def test_a_body_that_is_not_declared_as_json_says_which_header_to_send(client: TestClient, path: str) -> None:
    headers = {"content-type": "application/x-www-form-urlencoded"}  # what curl -d sends
    error = _refused(client.post(path, content=b'{"input": "king"}', headers=headers), 400)
    assert "Content-Type: application/json" in error["message"]


@pytest.mark.parametrize("token", [None, "s3cret"])
def test_the_root_redirects_to_the_docs(token: str | None) -> None:
    with TestClient(create_app(_models(), LIMITS, token=token)) as client:
        answer = client.get("/", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (307, "docs")
        assert client.get("/").status_code == 200
        assert "/" not in create_app(_models()).openapi()["paths"]


def test_a_slash_at_the_end_of_a_path_changes_nothing() -> None:
    with TestClient(create_app(_models(), LIMITS, token="s3cret"), follow_redirects=False) as client:
        headers = {"Authorization": "Bearer s3cret"}
        for path, body in (("/vectors", {"words": ["king"]}), ("/v1/embeddings", {"input": "king"})):
            plain, slash = (client.post(path + end, json=body, headers=headers) for end in ("", "/"))
            assert (slash.status_code, slash.json()) == (200, plain.json())
        assert client.get("/v1/models/", headers=headers).json() == client.get("/v1/models", headers=headers).json()
        assert client.get("/health/").status_code == 200  # without a token, as /health
        assert client.get("/metrics/").status_code == 401
        assert client.get("/docs/", headers=headers).headers["location"].endswith("/docs")
        assert _refused(client.get("/nothing/", headers=headers), 404)


def test_the_description_has_this_servers_numbers(client: TestClient) -> None:
    description = client.get("/openapi.json").json()
    parts = description["components"]["schemas"]
    assert parts["EmbedRequest"]["properties"]["texts"]["maxItems"] == 4
    assert parts["NearestRequest"]["properties"]["k"]["maximum"] == 12
    assert "422" not in description["paths"]["/nearest"]["post"]["responses"]
    assert set(SIMPLE) <= set(description["paths"])


def test_the_docs_page_loads_nothing_from_other_hosts_and_may_not(client: TestClient) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert not re.search(r"(https?:)?//\w", re.sub(r"(?m)^// .*$|\s// .*$", "", answer.text))  # but for comments
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", answer.text)
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert "/docs" not in client.get("/openapi.json").json()["paths"]


def test_metrics_count_what_was_answered_and_do_not_grow_with_addresses(fresh: TestClient) -> None:
    fresh.get("/nearest", params={"word": "king"})
    fresh.get("/nearest", params={"word": "zzz"})
    for number in range(50):
        fresh.request(f"M{number}", f"/nowhere/{number}")
    answer = fresh.get("/metrics")
    lines = answer.text.splitlines()
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'stillvec_requests_total{method="GET",path="/nearest",status="200"} 1' in lines
    assert 'stillvec_requests_total{method="GET",path="/nearest",status="404"} 1' in lines
    assert 'stillvec_requests_total{method="other",path="other",status="404"} 50' in lines
    assert 'stillvec_request_seconds_count{path="/nearest"} 2' in lines
    assert 'stillvec_request_seconds_bucket{path="/nearest",le="+Inf"} 2' in lines
    assert "stillvec_requests_in_flight 1" in lines
    assert len(lines) < 60


def test_the_log_has_addresses_and_no_words() -> None:
    events: list[str] = []
    with TestClient(create_app(_models(), LIMITS, log=events.append)) as client:
        client.get("/vectors", params={"word": "king"})
        client.get("/a%0Ab")
    assert [line.rpartition(" ")[0].rpartition(" ")[0] for line in events] == ["GET /vectors 200", "GET /a%0Ab 404"]


@pytest.mark.parametrize("name", ["body", "batch", "k", "seconds", "requests", "threads"])
def test_a_limit_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        Limits(**{name: 0})


def test_a_limit_below_the_default_number_of_neighbours_is_refused() -> None:
    with pytest.raises(UsageError, match="at least 10"):
        Limits(k=9)


@pytest.fixture(scope="module")
def searching() -> Iterator[TestClient]:
    vectors = WordVectors(WORDS, MATRIX)
    texts = {"a": "The king and his queen.", "b": "A man; a woman.", "<b>": "雪 and <script>", "long": "king " * 6000}
    models = ServedModels({"small": vectors}, index=index(texts, vectors, passages="document"))
    with TestClient(create_app(models, LIMITS)) as given:
        yield given


def test_documents_are_searched(searching: TestClient) -> None:
    answer = searching.post("/v1/search", json={"query": "the queen", "k": 2, "text": True}).json()
    assert (answer["documents"], answer["passages"], answer["method"]) == (4, 4, "hybrid")
    first = answer["data"][0]
    assert (first["id"], first["position"], first["text"]) == ("a", 0, "The king and his queen.")
    assert [first["snippet"][start:end] for start, end in first["highlights"]] == ["The", "queen"]
    unseen = searching.post("/v1/search", json={"query": "雪", "method": "bm25"}).json()["data"]
    assert [(hit["id"], hit["text"]) for hit in unseen] == [("<b>", None)]
    assert searching.post("/v1/search", json={"query": "xyzzy"}).json()["data"] == []
    assert 'path="/v1/search"' in searching.get("/metrics").text


@pytest.mark.parametrize(
    ("request_", "param"),
    [
        ({"query": ""}, "query"),
        ({"query": "king", "k": 13}, "k"),
        ({"query": "king", "method": "magic"}, "method"),
        ({"query": "king", "model": "small"}, "model"),
        ({"query": "king", "text": True}, "text"),  # a passage of 30,000 characters
        ({}, "query"),
    ],
)
def test_bad_searches_are_refused(searching: TestClient, request_: dict[str, Any], param: str) -> None:
    assert _refused(searching.post("/v1/search", json=request_), 400)["param"] == param


def test_search_is_offered_only_with_an_index(searching: TestClient, client: TestClient) -> None:
    assert "/v1/search" not in client.get("/openapi.json").json()["paths"]
    assert client.post("/v1/search", json={"query": "king"}).status_code == 404
    schema = searching.get("/openapi.json").json()
    assert schema["components"]["schemas"]["SearchRequest"]["properties"]["k"]["maximum"] == LIMITS.k
