"""Heads over HTTP: every kind beside vectors, what is refused, limits, many threads, and a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec.errors import UsageError
from stillvec.heads.fitted_head import Head
from stillvec.service import Limits
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

pytest.importorskip("fastapi")
pytest.importorskip("usearch")
from fastapi.testclient import TestClient

from stillvec.service.application import create_app
from stillvec.service.models import ServedModels

COLD, WARM, PLAIN = ("ice", "snow"), ("fire", "heat"), ("the", "a", "was", "here")
TEXTS = ["the snow was here", "a fire", "", "nothing known"]
LIMITS = Limits(batch=5, values=2400, body=50_000)


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).standard_normal((8, 6)).astype(np.float32) * 0.3
    matrix[:2, 0] += 3
    matrix[2:4, 0] -= 3
    return WordVectors((*COLD, *WARM, *PLAIN), matrix)


@pytest.fixture(scope="module")
def heads(vectors: WordVectors) -> dict[str, Head]:
    random = np.random.default_rng(1)
    words = [[*random.choice(PLAIN, 2), str(random.choice(COLD if n % 2 else WARM))] for n in range(80)]
    texts = [(" ".join(each), "cold" if n % 2 else "warm") for n, each in enumerate(words)]
    several = [(" ".join(each), ("cold", "plain") if n % 2 else ("warm",)) for n, each in enumerate(words)]
    tagged = [(tuple(each), ("O", "O", "B-COLD" if n % 2 else "B-WARM")) for n, each in enumerate(words)]
    return {
        "weather": fit(vectors, texts),
        "topics": fit(vectors, several, multilabel=True),
        "near": fit(vectors, texts, "knn:k=3"),
        "order": fit(vectors, texts, "cnn:epochs=8,rate=0.02"),
        "names": fit(vectors, tagged, "tagger:epochs=8,rate=0.03,patience=9", ("experts:size=4",)),
    }


@pytest.fixture(scope="module")
def client(vectors: WordVectors, heads: dict[str, Head]) -> Iterator[TestClient]:
    with TestClient(create_app(ServedModels({"words": vectors}, heads=heads), LIMITS)) as given:
        yield given


def ask(client: TestClient, **request: Any) -> Any:
    answer = client.post("/v1/predict", json=request)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_slash_at_the_end_of_the_path_changes_nothing(client: TestClient) -> None:
    answer = client.post("/v1/predict/", json={"texts": TEXTS}, follow_redirects=False)
    assert (answer.status_code, answer.json()) == (200, ask(client, texts=TEXTS))


@pytest.mark.parametrize("name", ["weather", "topics", "near", "order"])
def test_labels_and_probabilities_are_those_of_the_head(client: TestClient, heads: dict[str, Head], name: str) -> None:
    head, said = heads[name], ask(client, texts=TEXTS, model=name)
    assert (said["model"], said["head"]) == (name, head.name)
    labels = [tuple(item["labels"]) if head.multilabel else item["label"] for item in said["data"]]
    assert labels == head.predict(TEXTS)
    likely = [[item["probabilities"][label] for label in head.labels] for item in said["data"]]
    np.testing.assert_allclose(likely, head.predict_proba(TEXTS), atol=1e-6)
    assert all("words" not in item for item in said["data"])


def test_a_tagger_gives_tags_with_their_place_in_the_text(client: TestClient, heads: dict[str, Head]) -> None:
    text = "the  snow, a fire"
    item, words = ask(client, texts=[text, ["the", "snow"]], model="names", explain=True)["data"]
    assert [text[each["start"] : each["end"]] for each in item["words"]] == [each["word"] for each in item["words"]]
    assert [each["tag"] for each in item["words"]] == heads["names"].predict([text])[0]
    assert [each["tag"] for each in words["words"]] == ["O", "B-COLD"]
    assert "start" not in words["words"][0]
    assert 0.3 < words["words"][1]["probability"] < 1
    assert [*words["experts"]] == ["COLD", "O", "WARM"]
    assert "experts" not in ask(client, texts=[text], model="names")["data"][0]


def test_explanations_are_those_of_the_head(client: TestClient, heads: dict[str, Head]) -> None:
    for name in ("weather", "order"):
        (item,), (why,) = ask(client, texts=TEXTS[:1], model=name, explain=True)["data"], heads[name].explain(TEXTS[:1])
        assert [each["weight"] for each in item["words"]] == pytest.approx(why.weights, abs=1e-6)
        assert [TEXTS[0][each["start"] : each["end"]] for each in item["words"]] == TEXTS[0].split()
        assert item["explained"] == "cold"
    (item,) = ask(client, texts=TEXTS[:1], model="near", explain=True)["data"]
    assert [each["label"] for each in item["examples"]] == ["cold"] * 3
    assert all(each["cosine"] <= 1 for each in item["examples"])


def test_models_list_heads_and_the_first_is_the_default(client: TestClient) -> None:
    models = client.get("/v1/models").json()["data"]
    assert [model["id"] for model in models] == ["words", "weather", "topics", "near", "order", "names"]
    assert models[1] == client.get("/v1/models/weather").json()
    assert (models[1]["head"], models[1]["labels"], models[1]["unit"]) == ("linear", ["cold", "warm"], "text")
    assert ask(client, texts=["ice"])["model"] == "weather"
    assert client.get("/nearest", params={"word": "ice"}).json()["model"] == "words"
    lines = client.get("/metrics").text.splitlines()
    assert 'stillvec_labels{model="topics"} 3' in lines
    assert any(
        line.startswith('stillvec_requests_total{method="POST",path="/v1/predict",status="200"}') for line in lines
    )


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "no texts": ({"texts": []}, 400, "'texts'"),
    "a text instead of texts": ({"texts": "ice"}, 400, "valid list"),
    "a number": ({"texts": ["ice", 5]}, 400, "'texts.1'"),
    "too many texts": ({"texts": ["ice"] * 6}, 400, "at most 5 items, got 6"),
    "a long text": ({"texts": ["x" * 301]}, 400, "at most 300 characters, got 301"),
    "words for a classifier": ({"texts": ["ice", ["ice"]]}, 400, "item 1 of 'texts' is a list"),
    "another head": ({"texts": ["ice"], "model": "wether"}, 404, "expected one of 'weather'"),
    "vectors": ({"texts": ["ice"], "model": "words"}, 404, "'words' is not a head"),
    "an unknown field": ({"texts": ["ice"], "k": 3}, 400, "'k'"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_requests_are_one_sentence(client: TestClient, case: str) -> None:
    request, status, sentence = BAD[case]
    answer = client.post("/v1/predict", json=request)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]["message"]


def test_a_head_is_no_set_of_vectors(client: TestClient) -> None:
    answer = client.get("/nearest", params={"word": "ice", "model": "weather"})
    assert answer.status_code == 404
    assert "'weather' is not a set of vectors; expected one of 'words'" in answer.json()["error"]["message"]


def test_the_characters_of_an_explained_request_are_limited(vectors: WordVectors, heads: dict[str, Head]) -> None:
    models = ServedModels({}, heads={"weather": heads["weather"]})
    client = TestClient(create_app(models, Limits(values=80)))
    texts = ["ice snow"] * 11
    assert client.post("/v1/predict", json={"texts": texts}).status_code == 200
    answer = client.post("/v1/predict", json={"texts": texts, "explain": True})
    assert answer.status_code == 400
    assert "at most 80 characters, got 88" in answer.json()["error"]["message"]


def test_a_server_of_heads_alone_offers_no_words(heads: dict[str, Head]) -> None:
    alone = TestClient(create_app(ServedModels({}, heads={"weather": heads["weather"]})))
    assert alone.post("/v1/predict", json={"texts": ["ice"]}).json()["data"][0]["label"] == "cold"
    assert alone.get("/nearest", params={"word": "ice"}).status_code == 404
    schema = alone.get("/openapi.json").json()
    assert schema["components"]["schemas"]["PredictRequest"]["properties"]["texts"]["items"] == {"type": "string"}
    paths = schema["paths"]
    assert {*paths} == {"/v1/predict", "/v1/models", "/v1/models/{model}", "/health", "/metrics"}
    words = TestClient(create_app(ServedModels({"w": heads["near"].vectors})))
    assert "/v1/predict" not in words.get("/openapi.json").json()["paths"]
    with pytest.raises(UsageError):
        ServedModels({})


def test_threads_that_compose_unseen_words_do_not_disturb_each_other(vectors: WordVectors) -> None:
    ngrams = Ngrams(500, 2, 3)
    table = np.random.default_rng(3).standard_normal((500, 6)).astype(np.float32)
    composing = WordVectors(vectors.words, vectors.matrix, subwords=SubwordTable(ngrams, table))
    head = fit(composing, [(f"the {COLD[n % 2] if n % 2 else WARM[n % 2]} x{n}", str(n % 2)) for n in range(60)])
    texts = [f"unseen{number} word{number * 7}" for number in range(200)]
    expected = [head.predict_proba([text])[0].tolist() for text in texts]
    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(lambda text: head.predict_proba([text])[0].tolist(), texts)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert len(vars(head._shared_lookup).get("_oov_numbers", {})) == 0  # a server would keep every word it was sent


def test_a_head_is_served_by_the_command(vectors: WordVectors, heads: dict[str, Head], tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "words")
    for name in ("weather", "names"):
        heads[name].save(tmp_path / name)
    sources = [f"tags={tmp_path / 'names'}", str(tmp_path / "weather"), "--in-memory", str(tmp_path / "words")]
    call = [sys.executable, "-m", "stillvec", "serve", "--port", "0", *sources]
    process = subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"})
    try:
        assert process.stdout is not None
        address = next(line.split()[2].rstrip(",") for line in process.stdout if line.startswith("serving at "))
        body = json.dumps({"texts": TEXTS, "model": "weather"}).encode()
        request = urllib.request.Request(f"{address}/v1/predict", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)
        with urllib.request.urlopen(f"{address}/v1/models", timeout=60) as answer:
            models = json.load(answer)["data"]
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert [item["label"] for item in said["data"]] == heads["weather"].predict(TEXTS)
    assert [model["id"] for model in models] == ["words", "tags", "weather"]


def test_a_head_of_spans_is_served(vectors: WordVectors, tmp_path: Path) -> None:
    path = tmp_path / "entities.jsonl"
    lines = [{"words": ["the", word], "spans": [[1, 1, "c" if word in COLD else "w"]]} for word in COLD + WARM]
    path.write_text("\n".join(map(json.dumps, lines * 10)), "utf-8")
    head = fit(vectors, path, "span:size=8,epochs=4", device="cpu", packing="none")
    with TestClient(create_app(ServedModels({}, heads={"entities": head}), LIMITS)) as client:
        assert client.get("/v1/models").json()["data"][0]["unit"] == "span"
        assert client.get("/openapi.json").status_code == 200
        texts = ["the [ice]", "[fire] was here"]
        said = ask(client, texts=texts, explain=True)["data"]
        assert [item["label"] for item in said] == head.predict(texts)
        refused = client.post("/v1/predict", json={"texts": ["no span"]})
        assert refused.status_code == 400
        assert "brackets" in refused.text
