"""Whatever a caller gives to a public function or method, the error is one of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_corpus import sentences

import stillvec
from stillvec.errors import StillvecError

WRONG: dict[str, Any] = {
    "None": None,
    "zero": 0,
    "a negative number": -1,
    "a fraction": 3.5,
    "NaN": float("nan"),
    "an empty string": "",
    "an unknown name": "no such thing",
    "a NUL": "a\0b",
    "bytes": b"bytes",
    "an empty list": [],
    "a list of None": [None],
    "a list of numbers": [1, 2],
    "a list of lists": [["a"], ["b", "c"]],
    "an empty mapping": {},
    "a mapping": {"a": 1},
    "an object": object(),
    "an array of NaN": np.array([np.nan, np.nan]),
    "a table": np.ones((2, 3)),
}
RNG = np.random.default_rng(0)
WORDS = ["farmer", "river", "bread", "snow", "the", "ice"]


class Place:
    """A folder with everything that the calls below need."""

    def __init__(self, folder: Path, model: str) -> None:
        self.model = model
        self.text = folder / "text.txt"
        self.text.write_text("\n".join(sentences(24)), "utf-8")
        self.data = folder / "data"
        (self.data / "similarity").mkdir(parents=True)
        (self.data / "similarity" / "a.tsv").write_text("farmer\triver\t3\nbread\tsnow\t1\nthe\tice\t2\n", "utf-8")
        (folder / "recipe.toml").write_text('[refine]\nin = "a"\nsteps = ["center"]\nout = "refined"\n', "utf-8")
        self.vectors = stillvec.WordVectors(stillvec.Vocabulary(WORDS, range(6, 0, -1)), RNG.normal(size=(6, 4)))
        stillvec.save(self.vectors, folder / "a")
        options: dict[str, Any] = {"teacher": model, "method": "aggregate", "min_count": 1, "contexts": 2}
        for name in ("one", "two"):
            stillvec.distill(self.text, **options, out=folder / name)
        self.distilled = options
        self.labelled = [("the ice", "cold"), ("bread", "food")] * 6
        self.head = stillvec.fit(self.vectors, self.labelled, "knn", out=folder / "head")
        self.columns = [text for text, _ in self.labelled], [label for _, label in self.labelled]
        self.classifier = stillvec.TextClassifier(self.vectors, "knn").fit(*self.columns)
        self.index = stillvec.index(["the river", "ice and snow"], self.vectors, out=folder / "index")


HEAD = ("predict", "predict_proba", "explain", "encode")
Calls = dict[str, tuple[Callable[..., Any], dict[str, Any]]]


def calls(place: Place) -> Calls:
    """Each public function and method with arguments that work; `*name` is a list of positional arguments."""
    v = place.vectors
    texts = stillvec.Corpus.from_texts(sentences(8))
    distilled = {"*corpus": [place.text], **place.distilled}
    trained = {"*corpus": [place.text], "method": "skipgram:epochs=1", "dim": 4, "min_count": 1, "threads": 1}
    table: Calls = {
        "Corpus": (stillvec.Corpus, {"*sources": [place.text]}),
        "Corpus.from_texts": (stillvec.Corpus.from_texts, {"texts": ["a b"]}),
        "Corpus.drop_short_paragraphs": (texts.drop_short_paragraphs, {"min_sentences": 1, "min_characters": 0}),
        "Corpus.take_report": (
            stillvec.Corpus.from_texts(["a"]).take_report,
            {"report": texts.report, "warned": False},
        ),
        "Corpus.sample": (texts.sample, {"n_characters": 10}),
        "Corpus.paragraphs_by_file": (lambda wanted: [*texts.paragraphs_by_file(wanted)], {"wanted": None}),
        "TextVectorizer": (lambda **k: stillvec.TextVectorizer(**k).fit_transform(["the ice"]), {"vectors": v}),
        "TextVectorizer.fit": (stillvec.TextVectorizer(v).fit, {"X": ["ice"]}),
        "TextVectorizer.fit_transform": (stillvec.TextVectorizer(v).fit_transform, {"X": ["ice"]}),
        "TextVectorizer.transform": (stillvec.TextVectorizer(v).fit(["ice"]).transform, {"X": ["ice"]}),
        "TextClassifier": (lambda **k: stillvec.TextClassifier(**k).fit(*place.columns), {"vectors": v, "head": "knn"}),
        "TextClassifier.fit": (stillvec.TextClassifier(v, "knn").fit, dict(zip("Xy", place.columns, strict=True))),
        "TextClassifier.predict": (place.classifier.predict, {"X": ["ice"]}),
        "TextClassifier.predict_proba": (place.classifier.predict_proba, {"X": ["ice"]}),
        "TextClassifier.save": (place.classifier.save, {"path": "saved-head"}),
        "TextClassifier.load": (stillvec.TextClassifier.load, {"path": "head"}),
        "Vocabulary": (stillvec.Vocabulary, {"words": ["a"]}),
        "Vocabulary.like": (v.vocabulary.like, {"words": ["a"]}),
        "Vocabulary.row": (v.vocabulary.row, {"word": "ice"}),
        "Vocabulary.rows_in": (v.vocabulary.rows_in, {"other": v.vocabulary}),
        "Vocabulary.union": (v.vocabulary.union, {"other": v.vocabulary}),
        "Vocabulary.build": (stillvec.Vocabulary.build, {"counts": {"a": 9}}),
        "WordVectors": (stillvec.WordVectors, {"vocabulary": ["a"], "matrix": [[1.0]]}),
        "WordVectors.__getitem__": (v.__getitem__, {"word": "ice"}),
        "WordVectors.__contains__": (v.__contains__, {"word": "ice"}),
        "WordVectors.analogy": (v.analogy, {"a": "ice", "b": "snow", "c": "the"}),
        "SearchIndex.load": (stillvec.SearchIndex.load, {"path": "index"}),
        "SearchIndex.save": (place.index.save, {"path": "copy"}),
        "SearchIndex.search": (place.index.search, {"query": "ice"}),
        "WordVectors.closer_than": (v.closer_than, {"a": "ice", "b": "snow"}),
        "WordVectors.distance": (v.distance, {"a": "ice", "b": "snow"}),
        "WordVectors.distances": (v.distances, {"word": "ice"}),
        "WordVectors.doesnt_match": (v.doesnt_match, {"words": ["ice", "snow"]}),
        "WordVectors.encode": (v.encode, {"texts": ["the ice"]}),
        "WordVectors.from_subwords": (stillvec.refine(v, "subword:buckets=9").from_subwords, {"strings": ["icy"]}),
        "WordVectors.get": (v.get, {"word": "ice"}),
        "WordVectors.get_vector": (v.get_vector, {"word": "ice"}),
        "WordVectors.measure_order": (v.measure_order, {"dim": 2}),
        "WordVectors.most_similar": (v.most_similar, {"positive": ["ice"]}),
        "WordVectors.n_similarity": (v.n_similarity, {"words_a": ["ice"], "words_b": ["snow"]}),
        "WordVectors.nearest": (v.nearest, {"query": "ice"}),
        "WordVectors.nearest_batch": (v.nearest_batch, {"queries": ["ice"]}),
        "WordVectors.push_to_hub": (v.push_to_hub, {"name": "owner/name"}),
        "WordVectors.rank": (v.rank, {"a": "ice", "b": "snow"}),
        "WordVectors.save": (v.save, {"path": "saved"}),
        "WordVectors.sif_weights": (v.sif_weights, {"a": 0.001}),
        "WordVectors.similar_by_vector": (v.similar_by_vector, {"vector": [1.0, 2.0, 3.0, 4.0]}),
        "WordVectors.similar_by_word": (v.similar_by_word, {"word": "ice"}),
        "WordVectors.similarity": (v.similarity, {"a": "ice", "b": "snow"}),
        "WordVectors.subset": (v.subset, {"words": ["ice"]}),
        "WordVectors.truncate": (v.truncate, {"dim": 2}),
        "WordVectors.with_matrix": (v.with_matrix, {"matrix": np.ones((6, 2))}),
        "WordVectors.with_provenance": (v.with_provenance, {"provenance": {}}),
        **{f"Head.{name}": (getattr(place.head, name), {"texts": ["ice"]}) for name in HEAD},
        "adapt": (stillvec.adapt, {"teacher": place.model, "*steps": ["prune:sparsity=0.1"], "out": "adapted"}),
        "fit": (stillvec.fit, {"vectors": v, "on": place.labelled, "head": "knn"}),
        "load_head": (stillvec.load_head, {"path": "head"}),
        "analyze": (stillvec.analyze, {"vectors": v, "components": False}),
        "combine": (stillvec.combine, {"vectors": [v, v], "method": "concat"}),
        "convert": (stillvec.convert, {"vectors": v, "out": "v.vec"}),
        "distill": (stillvec.distill, distilled),
        "distill_all": (stillvec.distill_all, distilled),
        "evaluate": (stillvec.evaluate, {"vectors": v, "data": place.data, "resamples": 2}),
        "explore": (stillvec.explore, {"vectors": v, "export": "page.html"}),
        "extract_glossary": (stillvec.extract_glossary, {"*corpus": [place.text]}),
        "index": (stillvec.index, {"documents": ["the river"], "vectors": v}),
        "judge": (stillvec.judge, {"corpus": place.text, "vectors": v, "n_pairs": 10}),
        "load": (stillvec.load, {"path": "a"}),
        "merge": (stillvec.merge, {"folders": ["one", "two"]}),
        "plan": (stillvec.plan, distilled),
        "plot": (stillvec.plot, {"vectors": v, "words": ["ice", "snow"]}),
        "push_to_hub": (stillvec.push_to_hub, {"vectors": v, "name": "owner/name"}),
        "refine": (stillvec.refine, {"vectors": v, "*steps": ["center"]}),
        "run": (stillvec.run, {"recipe": "recipe.toml"}),
        "save": (stillvec.save, {"vectors": v, "path": "saved"}),
        "serve": (stillvec.serve, {"vectors": v, "port": 0}),
        "train": (stillvec.train, trained),
        "train_all": (stillvec.train_all, trained),
    }
    return table


OTHERS = {"StillvecError", "SearchIndex", "Head"}  # an error, and classes that `index` and `fit` make
CALLS = (
    *(f"SearchIndex.{name}" for name in ("load", "save", "search")),
    *(f"Head.{name}" for name in HEAD),
    *(f"Corpus{name}" for name in ("", ".from_texts", ".drop_short_paragraphs", ".paragraphs_by_file", ".sample")),
    "Corpus.take_report",
    *(f"TextVectorizer{name}" for name in ("", ".fit", ".fit_transform", ".transform")),
    *(f"TextClassifier{name}" for name in ("", ".fit", ".predict", ".predict_proba", ".save", ".load")),
    *(f"Vocabulary{name}" for name in ("", ".like", ".row", ".rows_in", ".union", ".build")),
    "WordVectors",
    *(f"WordVectors.{name}" for name in ("__contains__", "__getitem__", "analogy", "closer_than", "distance")),
    *(f"WordVectors.{name}" for name in ("distances", "doesnt_match", "encode", "from_subwords", "get", "get_vector")),
    *(f"WordVectors.{name}" for name in ("measure_order", "most_similar", "n_similarity", "nearest", "nearest_batch")),
    *(
        f"WordVectors.{name}"
        for name in ("push_to_hub", "rank", "save", "similar_by_vector", "similar_by_word", "similarity")
    ),
    *(f"WordVectors.{name}" for name in ("sif_weights", "subset", "truncate", "with_matrix", "with_provenance")),
    *(name for name in stillvec.__all__ if name.islower() and name not in OTHERS),
)
COSTLY = {"distill", "distill_all", "plan"}


class AcceptedError(StillvecError):
    """The call was accepted."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: str) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("STILLVEC_CACHE", str(folder / "cache"))
        yield Place(folder, model)


@pytest.fixture
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a valid call would do is replaced; its arguments are checked before."""

    def stop(*_: object, **__: object) -> None:
        raise AcceptedError("accepted")

    import stillvec.verbs.baseline_training as training
    import stillvec.verbs.distillation as distillation

    for module, name in ((distillation, "execute"), (distillation, "drain"), (training, "execute")):
        monkeypatch.setattr(module, name, stop)
    monkeypatch.setattr("stillvec.service.server.run_app", stop)
    monkeypatch.setattr("stillvec.exploration.PageServer", stop)
    monkeypatch.setattr("stillvec.exploration.field_test.RatingServer", stop)
    monkeypatch.setattr("stillvec.exploration.export_steps", stop)


def list_parameters(name: str, call: Callable[..., Any]) -> list[inspect.Parameter]:
    signature = inspect.signature(getattr(stillvec, name) if name in ("TextClassifier", "TextVectorizer") else call)
    ignored = "y" if name.startswith("TextVectorizer") else ""
    return [parameter for parameter in signature.parameters.values() if parameter.name != ignored]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("_fast")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_input_is_an_error_of_ours(name: str, place: Place) -> None:
    call, working = calls(place)[name]
    values = {label: WRONG[label] for label in ("an object", "a list of None", "a table", "a negative number")}
    values = values if name in COSTLY else WRONG
    escaped = []
    for parameter in list_parameters(name, call):
        for label, value in values.items():
            arguments = {key: given for key, given in working.items() if not key.startswith("*")}
            several = next((given for key, given in working.items() if key.startswith("*")), [])
            if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                several = [value]
            else:
                arguments[parameter.name] = value
            leading = "teacher" if name == "adapt" else "vectors"
            first = [arguments.pop(leading)] if several and leading in arguments else []
            try:
                call(*first, *several, **arguments)
            except StillvecError as error:
                escaped += [] if str(error).strip() else [f"{parameter.name} = {label}: an error without a message"]
            except Exception as error:
                escaped.append(f"{parameter.name} = {label}: {error!r}")
    assert escaped == []


def test_every_public_call_is_tried() -> None:
    expected = set()
    for name in set(stillvec.__all__) - OTHERS:
        public = getattr(stillvec, name)
        expected.add(name)
        for key, member in inspect.getmembers(public) if inspect.isclass(public) else ():
            function = getattr(member, "__func__", member)
            own = (getattr(function, "__module__", "") or "").startswith("stillvec.")
            if inspect.isfunction(function) and own and not key.startswith("_"):
                takes = [*inspect.signature(member).parameters][0 if inspect.ismethod(member) else 1 :]
                expected |= {f"{name}.{key}"} if takes else set()
    assert {name for name in expected if not OTHERS & {*name.split(".")}} - set(CALLS) == set()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_python_itself_refuses_is_a_type_error(name: str, place: Place) -> None:
    call, _ = calls(place)[name]
    with pytest.raises(TypeError):
        call(no_such_parameter=1)
