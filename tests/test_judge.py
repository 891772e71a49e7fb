"""A test of one's own field: which pairs are proposed, how ratings are kept, the page, and the command around it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from math import exp, log2
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest

import stillvec
from stillvec import Corpus, WordVectors, cli
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.pair_proposals import _common_words, find_characteristic_words, propose_pairs
from stillvec.evaluation.rated_pairs_file import RatingFiles
from stillvec.exploration import field_test
from stillvec.exploration.field_test import open_test
from stillvec.exploration.rating_server import RatingServer
from stillvec.vocabulary.function_words import list_function_words

TOPICS = [[f"{letter * 2}{name}" for name in ("aa", "bb", "cc", "dd", "ee", "ff")] for letter in "pqrstu"]
WORDS = [word for topic in TOPICS for word in topic]
PAIRS = [("ice", "snow"), ("fire", "house"), ("sea", "ship"), ("dog", "book")]


def make_corpus(folder: Path) -> Path:
    generator = np.random.default_rng(0)
    lines = [" ".join(["with", "that", *generator.choice(TOPICS[n % 6], 3)]) + "." for n in range(400)]
    (folder / "field.txt").write_text("\n".join(lines))
    return folder / "field.txt"


def make_vectors(seed: int) -> WordVectors:
    generator = np.random.default_rng(seed)
    return WordVectors([*WORDS, "with", "that"], generator.standard_normal((len(WORDS) + 2, 8)))


def test_characteristic_words_are_those_of_residual_idf(tmp_path: Path) -> None:
    paragraphs = [*Corpus(make_corpus(tmp_path)).paragraphs()]

    def value(word: str) -> float:
        n, d = len(paragraphs), sum(word in text.rstrip(".").split() for text in paragraphs)
        c = sum(text.rstrip(".").split().count(word) for text in paragraphs)
        return (-log2(d / n) + log2(1 - exp(-c / n))) * log2(d)

    found = find_characteristic_words(paragraphs, [*WORDS, "with", "that", "absent"], 10)
    shares = {word: np.mean([word in text.rstrip(".").split() for text in paragraphs]) for word in WORDS}
    wanted = sorted((word for word in WORDS if shares[word] <= 0.1), key=value, reverse=True)[:10]
    assert found == wanted


def test_a_test_has_the_name_of_its_folder_or_file(tmp_path: Path) -> None:
    (tmp_path / "field").mkdir()
    for given in (tmp_path / "field", make_corpus(tmp_path / "field")):
        name = open_test(given, make_vectors(0), tmp_path / "own", 12, 0).name
        assert name == "field"
    assert open_test(str(make_corpus(tmp_path)), make_vectors(0), tmp_path / "own", 12, 0).name == "field"
    (tmp_path / "field" / "field.txt").rename(tmp_path / "field" / "chapter.txt")
    assert open_test(tmp_path / "field", make_vectors(0), tmp_path / "other", 12, 0).name == "field"


def test_function_words_are_not_proposed() -> None:
    filled = [*list_function_words("en"), "cells", "heat", "ions"]
    vectors = WordVectors(filled, np.ones((len(filled), 2)))
    assert _common_words([vectors]) == ["cells", "heat", "ions"]


def test_pairs_are_new_spread_over_words_and_the_same_for_a_seed(tmp_path: Path) -> None:
    corpus, sets = Corpus(make_corpus(tmp_path)), [make_vectors(0), make_vectors(1)]
    pairs = propose_pairs(corpus, sets, 20)
    assert pairs == propose_pairs(corpus, sets, 20)
    assert pairs != propose_pairs(corpus, sets, 20, seed=1)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs) == 20
    assert all(a[:4] != b[:4] and {a, b} <= {*WORDS} for a, b in pairs)
    near = {
        frozenset((a, b))
        for vectors in sets
        for a in WORDS
        for b, _ in vectors.subset({word for pair in pairs for word in pair} | {a}).nearest(a, 3)
    }
    alike = sum(a[0] == b[0] for a, b in pairs)  # of one topic: near in the corpus
    assert 3 <= alike < 20
    assert sum(frozenset(pair) in near for pair in pairs) >= 6
    with pytest.raises(UsageError, match="10 words"):
        propose_pairs(corpus, [make_vectors(0).subset(WORDS[:5])], 20)


def test_every_rating_is_written_and_read_again(tmp_path: Path) -> None:
    files = RatingFiles(tmp_path, "own")
    files.propose(PAIRS)
    files.rate(0, 4)
    files.rate(2, None)
    files.rate(3, 0)
    again = RatingFiles.open(tmp_path, "own")
    assert (again.pairs, again.ratings) == (PAIRS, {0: 4, 2: None, 3: 0})
    assert (again.n_rated, again.n_left) == (2, 1)
    assert files.rated.read_text() == "ice\tsnow\t4\ndog\tbook\t0\n"
    again.rate(2, 3)  # no longer skipped
    again.rate(0, 1)
    assert RatingFiles.open(tmp_path, "own").ratings == {0: 1, 2: 3, 3: 0}
    files.rated.write_text("moon\tsun\t2\n" + files.rated.read_text())  # added by hand
    RatingFiles.open(tmp_path, "own").rate(1, 2)
    assert "moon\tsun\t2" in files.rated.read_text()
    for number, score in ((4, 1), (-1, 1), (0, 5)):
        with pytest.raises(UsageError):
            again.rate(number, score)


def test_a_damaged_file_is_named_and_not_overwritten(tmp_path: Path) -> None:
    files = RatingFiles(tmp_path, "own")
    files.propose(PAIRS)
    files.rate(0, 4)
    files.rated.write_text("ice\tsnow\t4\ndog\tbook\tmany\n")
    with pytest.raises(DatasetError) as caught:
        RatingFiles.open(tmp_path, "own")
    assert (caught.value.path, caught.value.line) == (str(files.rated), 2)
    files.proposed.unlink()
    with pytest.raises(DatasetError):  # ratings without their pairs: nothing is proposed anew over them
        RatingFiles.open(tmp_path, "own")
    assert "many" in files.rated.read_text()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RatingServer]:
    files = RatingFiles(tmp_path, "own")
    files.propose(PAIRS)
    with RatingServer(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server: RatingServer, name: str, **values: object) -> dict[str, object]:
    query = urlencode({"token": server.token, **values})
    with urlopen(f"{server.address}api/{name}?{query}", timeout=10) as reply:
        return dict(json.load(reply))


def test_the_page_rates_skips_and_refuses_what_has_no_token(server: RatingServer) -> None:
    with urlopen(server.address, timeout=10) as reply:
        assert server.token in reply.read().decode()
    assert ask(server, "pairs")["ratings"] == ["", "", "", ""]
    assert ask(server, "rate", pair=1, score=3) == {"rated": 1, "left": 3}
    assert ask(server, "rate", pair=0, score="skip") == {"rated": 1, "left": 2}
    assert ask(server, "pairs")["ratings"] == ["skip", 3, "", ""]
    assert server.files.rated.read_text() == "fire\thouse\t3\n"
    for wrong in ({"pair": 0, "score": 9}, {"pair": 7, "score": 1}, {"pair": 0, "score": 1, "token": "x"}):
        with pytest.raises(HTTPError) as caught:
            ask(server, "rate", **wrong)
        assert caught.value.code == 400
    assert server.files.n_rated == 1


def test_finishing_ends_the_server(tmp_path: Path) -> None:
    files = RatingFiles(tmp_path, "own")
    files.propose(PAIRS)
    with RatingServer(files) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        assert ask(server, "finish") == {"rated": 0}
        thread.join(timeout=10)
        assert not thread.is_alive()


class _Answers:
    """In place of the page: rates so many pairs, then stops as Ctrl-C does."""

    def __init__(self, n_rated: int) -> None:
        self.n_rated = n_rated

    def __call__(self, server: RatingServer, poll_interval: float = 0.5) -> None:
        open_pairs = [at for at in range(len(server.files.pairs)) if at not in server.files.ratings]
        for at in open_pairs[: self.n_rated]:
            server.files.rate(at, at % 5)
        raise KeyboardInterrupt


def test_the_command_proposes_continues_and_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus = make_corpus(tmp_path)
    for name, seed in (("a.vec", 0), ("b.vec", 1)):
        stillvec.save(make_vectors(seed), name)
    call = [
        "evaluate",
        "a.vec",
        "b.vec",
        "--own",
        str(corpus),
        "--pairs",
        "15",
        "--no-browser",
        "--quiet",
        "--no-cache",
    ]
    monkeypatch.setattr(field_test.RatingServer, "serve_forever", lambda server, **_: _Answers(6)(server))
    assert cli.main(call) == 1  # six ratings are too few
    assert "6 pairs are rated" in capsys.readouterr().out
    proposed = (tmp_path / "own" / "proposed" / "field.tsv").read_text()
    assert cli.main(call) == 0
    shown = capsys.readouterr().out
    assert "9 of 15 pairs to rate" in shown
    assert "12 of 15 pairs are rated" in shown
    assert "similarity: spearman" in shown
    assert (tmp_path / "own" / "proposed" / "field.tsv").read_text() == proposed
    assert len((tmp_path / "own" / "similarity" / "field.tsv").read_text().splitlines()) == 12
    assert cli.main([*call, "--tasks", "similarity"]) == 2
    assert cli.main(["evaluate", "a.vec", "--own", "nothing.txt", "--no-browser"]) in (1, 2)
    assert cli.main([*call[:6], "3", "--no-browser"]) == 2


def test_the_library_gives_the_same_test(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path)
    files = open_test(corpus, make_vectors(0), tmp_path / "own", 12, 0)
    assert (files.name, len(files.pairs)) == ("field", 12)
    for at in range(12):
        files.rate(at, at % 5)
    assert stillvec.judge(corpus, make_vectors(0), data=tmp_path / "own").n_left == 0  # nothing is left to rate
    report = stillvec.evaluate(make_vectors(0), tmp_path / "own", only="field")
    assert report.scores[0].n_covered == 12
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        open_test(corpus, make_vectors(0), tmp_path / "file", 12, 0)
