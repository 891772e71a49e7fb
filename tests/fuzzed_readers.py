"""Everything that reads files, each with a few tiny real inputs: what our own writers write, or what others would."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import Files, Reader
from tiny_documents import MARKDOWN, PAGE, make_docx, make_epub, make_pdf

from stillvec import refine
from stillvec.corpus import Corpus
from stillvec.evaluation.answer_cache import AnswerCache
from stillvec.evaluation.bias import LISTS
from stillvec.evaluation.evaluation_report import Comparison, Detail, NeighbourOverlap, PolicyRanking, Report, Score
from stillvec.evaluation.rated_pairs_file import RatingFiles
from stillvec.evaluation.tasks import TASKS, Answers
from stillvec.exploration.word_columns import load_columns
from stillvec.formats import load, read_manifest, read_model, read_statistics, save, write_folder
from stillvec.formats.model_card import card
from stillvec.heads.canonical_names import read_names
from stillvec.lexicons import read_dictionary, read_evaluation_pairs, read_lexicon, read_rated_pairs, read_words
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors
from stillvec.verbs.glossary_extraction import extract_glossary
from stillvec.vocabulary import Vocabulary

Read = Callable[[Path], object]

PROSE = "The ice melts. Snow falls on the river, and it stays.\n\nFire burns; “houses” too!\nA last line."
WRAPPED = "\n\n".join(
    ["the quick brown fox jumps over the lazy dog and\nruns away from it as fast as any fox could"] * 3
)
TREE = (
    "# newdoc\n# newpar\n# text = Dogs bark.\n1\tDogs\tdog\tNOUN\tNNS\tNumber=Plur\t2\tnsubj\t_\t_\n"
    "2\tbark\tbark\tVERB\tVBP\tMood=Ind|Tense=Pres\t0\troot\t_\tSpaceAfter=No\n3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_\n\n"
    "1-2\tcan't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tca\tcan\tAUX\tMD\t_\t0\troot\t_\t_\n2\tn't\tnot\tPART\tRB\t_\t1\tadvmod\t_\t_\n"
    "2.1\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_\n\n"
)
WIKI = (
    '<mediawiki xml:lang="en"><siteinfo><namespaces><namespace key="6">Datei</namespace></namespaces></siteinfo>'
    "<page><title>Ice</title><ns>0</ns><revision><text>'''Ice''' is [[water|frozen water]] {{convert|0|C}} that is "
    "hard.&lt;ref name=x/&gt; It floats, since it is light.\n\n{| class=x\n|-\n| a || b\n|}\n== See also ==\n"
    "* [[Snow]]\n[[File:Ice.jpg|thumb|A ''cube'' of [[ice]]]] [http://a b] &amp;nbsp; &lt;br/&gt; {{lang|de|Eis}} it."
    "</text></revision></page><page><title>R</title><ns>0</ns><redirect/><revision><text>#REDIRECT [[Ice]]</text>"
    "</revision></page></mediawiki>"
)
RECORDS = (
    '{"text": "The ice melts.", "a": {"b": "Snow falls."}}\n{"text": ["Fire.", null]}\n\n'
    '{"a": 1, "text": null}\n"Bare."\n'
)
WORDNET = {
    "data.noun": b"  1 licence\n00000100 03 n 02 ice 0 frozen_water 0 002 @ 00000200 n 0000 ! 00000300 v 0101 | water; "
    b'"the ice"  \n00000200 03 n 01 thing 0 000 | what is: "x"  \n',
    "data.verb": b"00000300 29 v 01 melt(a) 0 001 ! 00000100 n 0101 01 + 08 00 | become water; as ice does  \n",
}
WORDS = ("ice", "snow", "fire", "new york", "é")
MATRIX = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
COUNTS = (9, 5, 3, 2, 1)


def _vectors(*, spaces: bool = True, subwords: bool = False) -> WordVectors:
    words = [word if spaces else word.replace(" ", "_") for word in WORDS]
    table = SubwordTable(Ngrams(6, 2, 3), np.ones((6, 4), np.float32)) if subwords else None
    return WordVectors(Vocabulary(words, COUNTS), MATRIX, subwords=table)


def _written(write: Callable[[Path], object]) -> Files:
    """All files that something writes into a folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _texts(name: str, *texts: str | bytes) -> tuple[Files, ...]:
    return tuple({name: text if isinstance(text, bytes) else text.encode()} for text in texts)


# --- text


def _sentences(name: str, folder: Path, **settings: Any) -> object:
    with Corpus(folder / name, **settings) as corpus:
        return [*corpus.sentences()]


def _zstd(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(content)


def _table(kinds: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    out = io.BytesIO()
    parquet.write_table(pyarrow.table(kinds), out)
    return out.getvalue()


def _corpus() -> Iterator[Reader]:
    forms: dict[str, tuple[str | bytes, ...]] = {
        "text.txt": (PROSE, WRAPPED, PROSE.encode("utf-16"), PROSE.encode("utf-32"), "\ufeff" + PROSE),
        "text.conllu": (TREE, TREE.replace("# text = Dogs bark.\n", "")),
        "text.xml": (WIKI,),
        "text.jsonl": (RECORDS,),
        "anything": (PROSE, RECORDS, WIKI, b"%PDF-1.4 ...", b"\x00\x01\x02\x03" * 40),
        "text.md": (PROSE.encode("latin1", "replace"), "a" * 3000, MARKDOWN),
        "text.html": (PAGE, PAGE.replace("<head>", "<head><meta charset=latin1>")),
        "text.docx": (make_docx(),),
        "text.epub": (make_epub({"a.xhtml": PAGE, "b.xhtml": "<p>Snow &amp; fire</p>"}),),
        "text.pdf": (make_pdf([["The ice melts.", "Snow falls on the exam-", "ple river."]] * 3),),
    }
    for name, texts in forms.items():
        yield Reader(f"corpus {name}", partial(_sentences, name), _texts(name, *texts))
    packings = {".gz": partial(gzip.compress, mtime=0), ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": _zstd}
    for ending, pack in packings.items():
        name = f"text.txt{ending}"
        yield Reader(f"corpus {name}", partial(_sentences, name), _texts(name, PROSE, WRAPPED), pack)
    nested = partial(_sentences, "text.json", field="a.b")
    yield Reader("corpus nested field", nested, _texts("text.json", RECORDS, '{"a.b": "x"}\n{"a": {"b": ["y", "z"]}}'))
    strict = partial(_sentences, "text.txt", strict=True, paragraphs="blocks")
    yield Reader("corpus strict", strict, _texts("text.txt", PROSE, WRAPPED))
    yield Reader("corpus parses", lambda folder: [*Corpus(folder / "t.conllu").parses()], _texts("t.conllu", TREE))


def _corpus_parquet() -> Iterator[Reader]:
    plain = _table({"text": ["The ice melts.", None, "Snow."], "n": [1, 2, 3]})
    nested = _table({"a": [{"b": "x"}, {"b": "y"}], "text": [["p", "q"], ["r"]]})
    name = "text.parquet"
    yield Reader("corpus parquet", partial(_sentences, name), _texts(name, plain, nested))
    yield Reader("corpus parquet nested", partial(_sentences, name, field="a.b"), _texts(name, nested))


def _columns() -> Iterator[Reader]:
    for name, mark in (("c.csv", ","), ("c.tsv", "\t")):
        text = f'word{mark}kind{mark}n\nice{mark}cold{mark}1.5\n"new, york"{mark}{mark}2\n'
        yield Reader(
            f"columns {name}", partial(lambda name, folder: load_columns(folder / name), name), _texts(name, text)
        )
    table = _table({"word": ["ice", "fire"], "kind": ["cold", None], "n": [1.5, 2.0], "vector": [[1.0], [2.0]]})
    yield Reader("columns parquet", lambda folder: load_columns(folder / "c.parquet"), _texts("c.parquet", table))


def _lexicons() -> Iterator[Reader]:
    page = "---\ntitle: Ice\n---\nIce is a solid that is made of frozen water.\n\nSnow\n: what falls from the clouds\n"
    page += "- **Hail**: frozen rain that falls\n\n| term | definition |\n|--|--|\n| fog | a cloud on the ground |\n"
    yield Reader("glossary page", lambda folder: [*extract_glossary(folder / "a.md")], _texts("a.md", page))
    rated = {"proposed/o.tsv": b"ice\tsnow\nfire\tsea\tskip\n", "similarity/o.tsv": b"# x\nice\tsnow\t3\n"}
    yield Reader("rated pairs", lambda folder: RatingFiles.open(folder, "o"), (rated,))
    glosses = "ice\tfrozen water\nfire\twhat burns\n"
    yield Reader("dictionary table", lambda folder: [*read_dictionary(folder / "d.tsv")], _texts("d.tsv", glosses))
    yield Reader("dictionary wordnet", lambda folder: [*read_dictionary(folder)], (WORDNET,))
    yield Reader("list of words", lambda folder: read_words(folder / "w.txt"), _texts("w.txt", "ice\n# x\nnew york\n"))
    forms: dict[str, tuple[str, ...]] = {
        "list": ("ice snow water\nfire\n# heat\n",),
        "pairs": ("ice fire\nnew york\tparis\n",),
        "tsv": ("ice\tsnow\t0.5\tsimilar\nfire\theat\tsynonym\n", "a\tb\n", "a\tb\t1e3\n"),
    }
    for form, texts in forms.items():
        named = partial(lambda form, folder: [*read_lexicon(f"{form}:{folder / 'l.txt'}")], form)
        yield Reader(f"lexicon {form}", named, _texts("l.txt", *texts))
    every = [text for texts in forms.values() for text in texts]
    yield Reader("lexicon by looking", lambda folder: [*read_lexicon(folder / "l.txt")], _texts("l.txt", *every))
    yield Reader("lexicon wordnet", lambda folder: [*read_lexicon(folder)], (WORDNET,))
    for name, text in {
        "p.csv": ',a,b,s\n0,ice,"snow",1.5\n',
        "p.tsv": "w1\tw2\ts\nice\tsnow\t7.5\n",
        "p.txt": "a b 3\n",
    }.items():
        read = partial(lambda name, folder: ([*read_evaluation_pairs(folder)], read_rated_pairs(folder / name)), name)
        yield Reader(f"evaluated pairs {name}", read, _texts(name, text))


# --- vectors


def _used(vectors: WordVectors) -> None:
    """Look at all of it, since much is read late."""
    assert len(vectors.words) == len(vectors.matrix) == len(vectors.vocabulary.counts)
    assert np.isfinite(vectors.matrix).all()
    if vectors.subwords is not None:
        with np.errstate(over="ignore"):  # of numbers that are almost too large
            vectors.subwords.vectors(["snowfall", "x"])


def _load(name: str, format: str, folder: Path) -> None:
    """By its name or by looking, half of the time each."""
    path = folder / name
    size = path.stat().st_size if path.is_file() else sum(each.stat().st_size for each in path.iterdir())
    _used(load(path, format=format if size % 2 else None))


_NAMES = {  # format: the name of a file or folder
    "stillvec": "v", "spacy": "v", "model2vec": "v", "sentence-transformers": "v", "projector": "v", "npy": "v.npy",
    "parquet": "v.parquet", "hdf5": "v.h5", "onnx": "v.onnx", "fasttext-bin": "v.bin", "floret": "v.floret",
    "fasttext": "v.vec", "word2vec": "v.w2v", "word2vec-binary": "v.bin", "glove": "v.txt", "gensim": "v.kv",
}  # fmt: skip
_UNREAD = (
    "v/config.cfg",
    "v/meta.json",
    "v/tokenizer",
    "v/vocab/lookups.bin",
    "v/projector_config.pbtxt",
    "v/README.md",
)


def _format(format: str, *more: Files, pack: Callable[[bytes], bytes] | None = None, ending: str = "") -> Reader:
    name = _NAMES[format] + ending
    some = _vectors(spaces=format != "word2vec-binary", subwords=format == "floret")
    seeds = _written(lambda folder: save(some, folder / _NAMES[format], format=format))
    seeds = {key + ending if key == _NAMES[format] else key: content for key, content in seeds.items()}
    still = tuple(each for each in seeds if each.endswith(_UNREAD) or (pack and each != name))
    return Reader(f"vectors {format}{ending}", partial(_load, name, format), (seeds, *more), pack, still)


def _formats() -> Iterator[Reader]:
    import struct

    yield _format("word2vec", *_texts("v.w2v", "3 2\na 1 2\nb 3e-1 .5\nc d -1 +2\n", "0 4\n"))
    yield _format("glove", *_texts("v.txt", "a 1 2\nb 3e-1 .5\nc d -1 +2\n"))
    yield _format("fasttext", *_texts("v.vec", "2 2\n</s> 1 2 \nb 3e-1 .5 \n"))
    yield _format("word2vec-binary")
    yield _format("floret")
    yield _format("npy")
    yield _format("projector", {"v/vectors.tsv": b"1\t2\n3\t4\n", "v/metadata.tsv": b"ice\nsnow\n"})
    yield _format("word2vec", pack=partial(gzip.compress, mtime=0), ending=".gz")
    yield _format("glove", pack=lzma.compress, ending=".xz")
    yield _format("word2vec-binary", pack=bz2.compress, ending=".bz2")
    yield _format("npy", pack=partial(gzip.compress, mtime=0), ending=".gz")
    grams = struct.pack("<ii12id", 793_712_314, 12, 4, 5, 5, 1, 5, 1, 3, 2, 7, 3, 6, 100, 1e-4)
    grams += struct.pack("<3iqq", 2, 2, 0, 9, -1) + b"ice\0" + struct.pack("<qb", 5, 0) + b"</s>\0"
    grams += struct.pack("<qb", 4, 0) + struct.pack("<?qq", False, 9, 4) + np.ones((9, 4), "<f4").tobytes()
    yield _format("fasttext-bin", *_texts("v.bin", grams))


def _one(name: str) -> Iterator[Reader]:
    """A format that needs a package which takes a while to import."""
    yield _static(name) if name in ("model2vec", "sentence-transformers") else _format(name)


def _static(format: str) -> Reader:
    own = _format(format)
    folder = next(name for name in own.seeds[0] if name.endswith("tokenizer.json")).rpartition("/")[0]
    unigram = {
        "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["▁ice", -1.0], ["s", -2.0]]},
        "added_tokens": [{"id": 3, "content": "[PAD]", "special": True}], "normalizer": {"type": "Lowercase"},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        from stillvec.formats.tensors import write_tensors

        file = Path(name) / "t"
        arrays = {"embeddings": MATRIX[:3].astype(np.float16), "weights": np.ones(4), "mapping": np.array([0, 1, 2, 2])}
        write_tensors(file, arrays)
        weights = file.read_bytes()
    shared = dict(own.seeds[0]) | {f"{folder}/tokenizer.json": json.dumps(unigram).encode()}
    shared |= {f"{folder}/model.safetensors": weights}
    return Reader(own.name, own.read, (*own.seeds, shared), None, own.still)


MADE: dict[str, Any] = {
    "method": "aggregate", "settings": {"layer": "last", "pieces": "mean"}, "seed": 1, "made": "2026-01-01",
    "teacher": {"name": "minilm", "digest": "ab", "dim": 4, "depth": 6}, "libraries": {"numpy": "2"},
    "distillation": {"teacher": "minilm", "method": "aggregate", "keep": [], "min_count": 5, "contexts": None},
    "corpus": {"words": 9, "paragraphs": 2, "digest": "cd", "sources": ["/a/b.txt"]}, "seconds": 1.5,
    "read": {"sentences": 2, "words": 9, "pieces": 12}, "refined": [{"step": "pca", "settings": {"dim": 4}}],
    "combined": [{"name": "a", "words": 3, "dim": 2, "method": "glove", "corpus": {"words": 3, "sources": ["x"]}}],
}  # fmt: skip


def _folders() -> Iterator[Reader]:
    steps = np.random.default_rng(5).integers(-127, 128, (5, 16))
    steps[:, 0] = 127  # of a row, so that its steps are found again
    sparse = np.where(steps > 90, steps, 0)
    for kind, matrix in {"int8": steps, "pq": np.tile(steps[:2], (40, 1)), "sparse": sparse}.items():
        vectors = WordVectors([f"w{row}" for row in range(len(matrix))], matrix.astype(np.float32) / 8)
        seeds = _written(partial(_write_packed, vectors, kind))
        yield Reader(f"vectors packed {kind}", partial(_load, "v", "stillvec"), (seeds,), still=_UNREAD)
    yield _format("stillvec")
    plain = _written(lambda folder: save(_vectors(), folder / "v"))
    yield Reader("vectors whose words are read late", _late, (plain,), still=_UNREAD)
    grams = _written(lambda folder: save(_vectors(subwords=True), folder / "v"))
    yield Reader("vectors with n-grams", partial(_load, "v", "stillvec"), (grams,), still=_UNREAD)
    tables = _written(lambda folder: save(_vectors().with_matrix(MATRIX, contexts=MATRIX), folder / "v"))
    yield Reader("vectors with a context table", partial(_load, "v", "stillvec"), (tables,), still=_UNREAD)
    sums = {"around/sum:states": MATRIX, "around/sum:contexts": np.arange(5), "around/total:x": np.array(3.0)}
    result_files = _written(lambda folder: write_folder(_vectors(), folder / "v", MADE, sums, {"model": MATRIX}))
    yield Reader("folder and its statistics", _beside, (result_files,), still=_UNREAD)
    yield Reader(
        "manifest and its card",
        lambda folder: card(read_manifest(folder / "v")),
        (_only(result_files, "manifest.json"),),
    )
    refined = _written(lambda folder: refine(_vectors(), ["center", "pca:dim=2"], out=folder / "v"))
    seeds = (_only(refined, "manifest.json"),)
    yield Reader("steps of a manifest", lambda folder: refine(_vectors(), [], like=folder / "v"), seeds)


def _searches() -> Iterator[Reader]:
    from stillvec import index
    from stillvec.corpus.documents import read_documents

    texts = {"a": "The ice melts. Snow falls.", "é": "New York burns; fire!", "c": "a " * 300}
    files = _written(lambda folder: index(texts, _vectors(), out=folder / "i", passages=1))
    yield Reader("search index", _search, (files,), still=("i/vectors/README.md",))
    for name, text in {"d.csv": 'id,text\n1,"The ice, melts"\n2;x,y\n', "d.tsv": 'text\tid\n"a\tb\n'}.items():
        read = partial(lambda name, folder: [*read_documents([folder / name])], name)
        yield Reader(f"documents {name}", read, _texts(name, text))


def _search(folder: Path) -> None:
    from stillvec import SearchIndex
    from stillvec.corpus.documents import Document
    from stillvec.search import METHODS
    from stillvec.search.index_builder import IndexBuilder

    opened = SearchIndex.load(folder / "i")
    for query in ("ice and snow in new york", "é", "a"):
        for method in METHODS:
            opened.search(query, method=method)
    (folder / "scratch").mkdir(exist_ok=True)
    builder = IndexBuilder(folder / "scratch", opened.content.vectors, opened.content.passages, opened.content)
    try:
        builder.add(Document("c", "Changed: snow."))
        builder.finish()
    finally:
        builder.close()


def _teachers() -> Iterator[Reader]:
    from tiny_teachers import write_tiny_character_lstm, write_tiny_model

    from stillvec.teachers import load_teacher

    made = {
        family: _written(partial(lambda family, folder: write_tiny_model(folder / "t", family), family))
        for family in ("bert", "mpnet", "llama3")
    }
    made["character_lstm"] = _written(lambda folder: write_tiny_character_lstm(folder / "t"))
    made["modules"] = _written(lambda folder: _write_modules(folder / "t"))
    for name, files in made.items():
        yield Reader(f"teacher {name}", lambda folder: load_teacher(str(folder / "t"), device="cpu"), (files,))


def _write_modules(folder: Path) -> None:
    """A teacher with what follows it: pooling, a dense layer and unit length."""
    from test_sentence_head import pooling, write_dense, write_modules
    from tiny_teachers import write_tiny_model

    write_tiny_model(folder, "bert")
    files = {"1_Pooling/config.json": pooling("mean"), "config_sentence_transformers.json": {"prompts": {"q": "a: "}}}
    write_modules(folder, ("Transformer", "Pooling", "Dense", "Normalize"), files)
    write_dense(folder, "2_Dense", 16, 8)


def _write_packed(vectors: WordVectors, kind: str, folder: Path) -> None:
    write_folder(vectors, folder / "v", {}, packed=kind)
    assert read_manifest(folder / "v")["stored"] == kind


def _only(files: Files, ending: str) -> Files:
    return {name: content for name, content in files.items() if name.endswith(ending)}


def _beside(folder: Path) -> None:
    from stillvec.pipeline.previous_result import PreviousResult

    for array in (*read_statistics(folder / "v").values(), *read_model(folder / "v").values()):
        array.tobytes()
    PreviousResult(folder / "v").learner()


def _late(folder: Path) -> None:
    """Words that are read when the first is asked for, as those of a large folder."""
    from stillvec.formats import stillvec_folder

    before, stillvec_folder._MAX_EAGER = stillvec_folder._MAX_EAGER, 0
    try:
        _used(load(folder / "v"))
    finally:
        stillvec_folder._MAX_EAGER = before


# --- evaluation


def _task(name: str, file: str, folder: Path) -> object:
    return TASKS[name]().read(folder / file)


def _datasets() -> Iterator[Reader]:
    ten = "\n".join(f"{'pos' if n % 2 else 'neg'}\ta text {n}" for n in range(12))
    trees = TREE * 6
    chunks = "Dogs NNS B-NP\nbark VB B-VP\n\n-DOCSTART- -X- O\n\n" * 11
    files: dict[str, dict[str, tuple[str, ...]]] = {
        "similarity": {"a.tsv": ("w1\tw2\ts\nice\tsnow\t7.5\n# x\n",), "a.csv": (',a,b,s\n0,ice,"snow",1.5\n',)},
        "analogy": {
            "a.txt": (": gram1\nAthens Greece Oslo Norway\n",),
            "a.csv": ("type,word1,word2,word3,target\nx,a,b,c,d\n",),
        },
        "relation": {"a.csv": ("type,word1,word2,word3,target,score\n1a,a,b,c,d,50.0\n1a,a,b,e,f,-3\n",)},
        "categorization": {"a.csv": ("category,word\nfruit,apple\nfruit,pear\ntool,saw\n",)},
        "composition": {"a.txt": ("(3 (2 a) (4 (1 b) (2 c)))\n" * 12, "(S (NN a))\n" * 12)},
        "specificity": {"a.tsv": ("a text\t1.5\n# b\t2\n",)},
        "word_in_context": {"a.tsv": ("1\tbank\ta bank\tthe bank\n0\tice\tIce, cold\tblack ice\n",)},
        "attributes": {"a.tsv": ("".join(f"w{n}\ta b{n % 2}\n" for n in range(120)),)},
        "compounds": {"a.tsv": ("snail mail\t1.3\nend user\t4.25\t3.9\t4.9\n",)},
        "outliers": {
            "a.txt": ("ice\nsnow\nhail\n\nfire\ncar\n\na\nb\n\nc\n",),
            "a.csv": ("category,words,outliers\nx,\"['a', 'b']\",\"['c']\"\n",),
        },
        "synonyms": {"a.txt": ("big | large | small | blue\n",)},
        "glossary": {"a.tsv": ("term\tdefinition\nice\tfrozen water\nnew york\ta city\n# x\n",)},
        "sentences": {"a.csv": ('s1,s2,score\n"A man, a plan",A dog.,3.5\nb,c,1\n',)},
        "classification": {"a.txt": (ten, ten.replace("\t", " "), ten.replace("\t", " ||| "))},
        "multilabel": {"a.txt": (ten.replace("\t", " "), ten.replace("\t", ",x "))},
        "clustering": {"a.tsv": (ten,)},
        "bitext": {"a-eng-deu.tsv": ("A dog.\tEin Hund.\nA cat.\tEine Katze.\n",)},
        "tagging": {"a.conllu": (trees,), "a.txt": (chunks,)},
        "probing": {"a.conllu": (trees,)},
        "labels": {"a.conllu": (trees,)},
        "information": {"a.conllu": (trees,)},
        "spans": {
            "a.txt": ("(TOP (S (NP (PRP It)) (VP (VBZ works) (-LRB- -LRB-))))\n" * 11,),
            "a.jsonl": (
                '{"words": ["It", "works"], "spans": [[0, 0, "x"], [0, 1, "y"]]}\n' * 11,
                '{"words": ["It", "works"], "pairs": [[0, 0, 1, 1, "x"]]}\n' * 11,
                '{"words": ["It", "works"], "predicates": [[1, "work.01", [[0, 0, "ARG0"]]]]}\n' * 11,
            ),
        },
        "pairs": {"a.tsv": ("\n".join(f"{'yes' if n % 2 else 'no'}\ta text {n}\tan answer\tx,y" for n in range(12)),)},
        "translation": {"en-de.tsv": ("dog\tHund\ncat\tKatze\n",)},
        "bias": {
            "a.toml": ("\n".join(f'{name} = ["a", "b"]' for name in LISTS),),
            "a.json": (json.dumps({name: ["a", "b"] for name in LISTS}),),
        },
    }
    yield Reader("names", lambda folder: read_names(folder / "n.tsv"), _texts("n.tsv", "Mary\t2.6\nAT&T\n\nSt. Ives\n"))
    for name, by_file in files.items():
        for file, texts in by_file.items():
            yield Reader(f"dataset {name} {file}", partial(_task, name, file), _texts(file, *texts))
    collection = {
        "a/corpus.jsonl": b'{"_id": "d1", "title": "T", "text": "a text"}\n{"_id": "q1", "text": "a query"}\n',
        "a/queries.jsonl": b'{"_id": "q1", "text": "a query"}\n',
        "a/qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq1\td1\t2\n",
    }
    pairs = {"flips/a.tsv": b"pos\tgood\tneg\tbad\n", "classification/a.train.txt": ten.encode()}
    yield Reader("dataset flips", partial(_task, "flips", "flips/a.tsv"), (pairs,))
    yield Reader("dataset retrieval", partial(_task, "retrieval", "a"), (collection,))


def _map() -> Files:
    out = io.BytesIO()
    np.savez(
        out,
        positions=np.ones((3, 2), np.float32),
        labels=np.zeros(3, int),
        central=np.zeros(1, int),
        preservation=np.array(1.0),
    )
    return {"m.npz": out.getvalue()}


def _zipped(content: bytes) -> bytes:
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("covered.npy", content)
        archive.writestr("values:spearman.npy", content)
    return out.getvalue()


def _reports() -> Iterator[Reader]:
    facts = {"task": "x"}
    score = Score("v", "similarity", "d", "spearman", 0.5, 0.4, 0.6, 9, 8, "skip", details=(Detail("s", 1.0, 2, 3),))
    pair = Comparison("similarity", "d", "spearman", "v", "w", 0.1, 0.0, 0.2, 0.03, 0.06, 8)
    ranking = PolicyRanking("similarity", "d", "spearman", {"skip": {"v": 0.5}})
    report = Report((score,), ("e",), (pair,), (pair,), (ranking,), (NeighbourOverlap("v", "w", 0.5, 10, 8),), (score,))
    kept = _written(lambda folder: AnswerCache(folder).put_report(facts, report))
    yield Reader("kept report", lambda folder: _report_of(AnswerCache(folder).get_report(facts)), (kept,))
    answers = Answers(np.array([True, False]), {"spearman": np.array([0.5, 0.0])})
    held = _written(lambda folder: AnswerCache(folder).put(facts, answers))
    yield Reader("kept answers", lambda folder: AnswerCache(folder).get(facts), (held,))
    name = next(iter(held))
    array = io.BytesIO()
    np.save(array, np.array([0.5, 0.0]))
    yield Reader(
        "kept answers inside", lambda folder: AnswerCache(folder).get(facts), ({name: array.getvalue()},), _zipped
    )
    from stillvec.exploration.word_map import _read_cache

    yield Reader("kept map", lambda folder: _read_cache(folder / "m.npz", 3), (_map(),))
    scores = json.dumps(report.to_json()).encode()
    yield Reader("scores of a card", _scores, ({"v": b"", "s.json": scores},), still=("v",))


def _report_of(report: Report | None) -> object:
    return None if report is None else report.to_json()


def _scores(folder: Path) -> object:
    from stillvec.cli.info_command import read_scores as read

    return card({"format": 1, "words": 3, "dim": 2, "dtype": "float32"}, read(folder / "s.json", folder / "v"))


# --- runs

GRID = """
[[refine]]
for = {dim = [2, 4], from = ["a", "b"]}
in = "{from}"
steps = ["pca:dim={dim}"]
out = "{from}-{dim}"

[evaluate]
in = ["?-*"]
"""
RECIPE = """
[distill]
corpus = ["texts/*.txt"]
teacher = "minilm"
method = "auto,aggregate:layer=last"
out = "vectors"
min-count = 3
contexts = "all"
include_words = ["new york"]
lowercase = true

[train]
corpus = ["texts/*.txt"]
method = "skipgram,glove"
out = "baselines"
dim = 50
threads = 2

[evaluate]
tasks = ["similarity"]
json = "scores.json"
"""


def _recipe(folder: Path) -> object:
    from stillvec.verbs.recipe import read_recipe

    return read_recipe(folder / "r.toml")


def _runs() -> Iterator[Reader]:
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint

    yield Reader(
        "recipe",
        _recipe,
        _texts("r.toml", RECIPE, '[distill]\nout = "v"\n', '[train]\nout = "v"\ncorpus = "a"\n', GRID),
    )
    facts = {"method": "aggregate", "seed": 1, "layer": None}
    arrays = {"part/0/sums": MATRIX, "at": np.array([3, 4]), "x/part": np.frombuffer(b"/nowhere", np.uint8)}
    kept = _written(lambda folder: PassCheckpoint(folder / "out").write(facts, lambda: dict(arrays)))
    yield Reader("checkpoint of a pass", partial(_pass, facts), (kept,))
    yield Reader("checkpoint of training", _training, (_written(_write_training),))
    from stillvec.encoding.context_store import Contexts

    contexts = io.BytesIO()
    np.save(contexts, MATRIX)
    yield Reader("contexts of alpha", _alpha, ({"c.npy": contexts.getvalue()},))
    yield Reader("store of contexts", lambda folder: Contexts.open(folder / "s").words.sum(), (_written(_write_store),))


def _pass(facts: Any, folder: Path) -> object:
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint, partial_bytes

    arrays = PassCheckpoint(folder / "out", resume=True).read(facts)
    assert arrays is not None
    return partial_bytes(arrays)


def _alpha(folder: Path) -> object:
    from stillvec.refinement.natural_alpha import NaturalAlpha

    return NaturalAlpha(contexts=str(folder / "c.npy"))._contexts(_vectors())


class _Model:
    def __init__(self) -> None:
        import torch

        self.table, self.steps = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)

    def tensors(self) -> Any:
        return {"table": self.table, "steps": self.steps}


def _write_training(folder: Path) -> None:
    import torch
    from safetensors.torch import save_file

    save_file({**_Model().tensors(), "done": torch.tensor(4)}, folder / "c.safetensors")


def _training(folder: Path) -> object:
    from stillvec.training.checkpoint import Checkpoint

    return Checkpoint(folder / "c.safetensors", resume=True).restore(_Model())


def _write_store(folder: Path) -> None:
    import torch

    from stillvec.encoding.context_store import ContextWriter

    writer = ContextWriter(folder / "s", 2, states=True)
    writer.add(np.array([0, 1, -1]), np.array([2, 1]), torch.ones(2, 2), torch.ones(3, 2))
    writer.close()


def _results() -> Iterator[Reader]:
    """What a run leaves: results that merge, and a checkpoint of the pass that is gone on with."""
    from tiny_corpus import sentences
    from tiny_teachers import write_tiny_model

    from stillvec import distill
    from stillvec.pipeline.previous_result import merge_results

    with tempfile.TemporaryDirectory() as name:
        teacher = Path(name) / "bert"
        write_tiny_model(teacher, "bert")
        made = {
            method: _written(
                lambda folder, method=method: [
                    distill(
                        Corpus.from_texts(sentences(12, seed)),
                        out=folder / place,
                        teacher=str(teacher),
                        method=method,
                        min_count=1,
                        max_words=6,
                        device="cpu",
                    )
                    for seed, place in enumerate("ab")
                ]
            )
            for method in ("first_component", "additive")
        }
        yield _gone_on(teacher)
    unread = tuple(f"{place}/{file}" for place in "ab" for file in ("README.md", "vectors.safetensors"))
    for method, files in made.items():
        merged = Reader(f"merging {method}", lambda folder: merge_results([folder / "a", folder / "b"]), (files,))
        yield Reader(merged.name, merged.read, merged.seeds, still=unread)


def _gone_on(folder: Path) -> Reader:
    from types import SimpleNamespace

    from tiny_corpus import make_pass, run_pass, sentences

    from stillvec.learners import LEARNERS
    from stillvec.pipeline.distillation_run import Run
    from stillvec.pipeline.pass_checkpoint import PassCheckpoint
    from stillvec.teachers import load_teacher

    teacher = load_teacher(str(folder), device="cpu")
    words = Vocabulary(["the", "bread", "river", "old"], [9, 3, 2, 1])
    encoding_pass = partial(
        make_pass, {name: LEARNERS[name]() for name in ("aggregate", "first_component", "additive")}, teacher
    )
    collected = run_pass(encoding_pass(words), sentences(24))

    def read(folder: Path) -> None:
        checkpoint = PassCheckpoint(folder / "out", resume=True)
        run: Any = SimpleNamespace(resume=True, checkpoint=checkpoint)
        Run._restore(run, encoding_pass(words), checkpoint.read({"seed": 1}))

    return Reader(
        "checkpoint gone on with",
        read,
        (_written(lambda folder: PassCheckpoint(folder / "out").write({"seed": 1}, collected.state.to_arrays)),),
    )


# --- small models on vectors, and what they learn from

LABELLED = [
    (f"{word} and {other}", label) for word, label in (("ice", "cold"), ("fire", "warm")) for other in WORDS * 3
]
TAGGED = [(["ice", "melts", "fire"], ["B-X", "I-X", "O"]), (["New", "snow"], ["O", "B-Y"])] * 8
FEATURES = [(["ice", "melts"], ["NOUN|Case=Gen", "VERB"]), (["snow"], ["NOUN|Case=Gen|Number=Plur"])] * 8
SPANS = [("[ice] and snow", "cold"), ("a [fire house] burns", "warm")] * 8
TWO_SPANS = [("[ice] and [[snow]]", "same"), ("a [fire] and [ice x]", "other")] * 8
TEXT_PAIRS = [(("ice", "snow and ice"), "same"), (("fire", "ice"), "other")] * 8
SMALL_TAGGER: dict[str, Any] = {"head": "tagger:epochs=1", "options": ["auxiliary", "experts"]}
HEADS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "linear": (LABELLED, {}),
    "linear hidden": (LABELLED, {"head": "linear:hidden=4,tuned=true,epochs=1"}),
    "cnn": (LABELLED, {"head": "cnn:epochs=1"}),
    "attention": (LABELLED, {"head": "attention:epochs=1"}),
    "knn": (LABELLED, {"head": "knn:k=3"}),
    "tagger": (TAGGED, SMALL_TAGGER),
    "primitives": (FEATURES, {"head": "primitives:epochs=1"}),
    "pair": (TEXT_PAIRS, {"head": "pair"}),
    "span": (SPANS, {"head": "span:epochs=1,size=8"}),
    "span of two": (TWO_SPANS, {"head": "span:epochs=1,size=8,pooling=attention"}),
}
SPAN_LINES = {
    "entities": '{"words": ["It", "works", "well"], "spans": [[0, 0, "x"], [0, 1, "y"]]}\n',
    "pairs": '{"words": ["It", "works"], "pairs": [[0, 0, 1, 1, "x"]]}\n',
    "roles": '{"words": ["It", "works"], "predicates": [[1, "work.01", [[0, 0, "ARG0"]]]]}\n',
}


def _heads() -> Iterator[Reader]:
    from stillvec import fit
    from stillvec.heads.head_folder import load_head

    def predict(items: list[Any], folder: Path) -> None:
        head = load_head(folder / "h")
        head.predict(items)
        head.explain(items)

    for name, (data, settings) in HEADS.items():
        write = partial(
            lambda data, settings, folder: fit(_vectors(), data, **settings, out=folder / "h"), data, settings
        )
        items = [*(item for item, _ in data[:2]), *(["", "a"] if name in ("linear", "cnn", "attention", "knn") else ())]
        yield Reader(f"head {name}", partial(predict, items), (_written(write),))
    several = _written(lambda folder: fit([_vectors(), _vectors()], TAGGED, "tagger:epochs=1", out=folder / "h"))
    yield Reader("head tagger of two sets", partial(predict, [item for item, _ in TAGGED[:2]]), (several,))


def _labelled() -> Iterator[Reader]:
    """What heads learn from, and what they label."""
    from stillvec.heads.dataset_files import read_texts as read_field
    from stillvec.heads.labelled_data import read_data
    from stillvec.refinement.text_pairs import read_texts

    rows = [(label, text) for text, label in LABELLED]
    texts: dict[str, tuple[str, ...]] = {
        "text a.txt": ("".join(f"{label} {text}\n" for label, text in rows),),
        "text a.csv": ("text,label\n" + "".join(f'"{text}",{label}\n' for label, text in rows),),
        "tokens a.conllu": (TREE * 20,),
        "text a.jsonl": ("".join(json.dumps({"text": text, "label": label}) + "\n" for label, text in rows),),
        "pair a.tsv": ("".join(f"{label}\t{text}\tan answer\n" for label, text in rows),),
        "span a.jsonl": tuple(_repeat(line, "It") for line in SPAN_LINES.values()),
        "span a.txt": (_repeat("(TOP (S (NP (PRP It)) (VP (VBZ works) (-LRB- -LRB-))))\n", "It"),),
    }
    for name, contents in texts.items():
        unit, file = name.split()
        read: Read = partial(lambda unit, file, folder: read_data(folder / file, unit), unit, file)
        yield Reader(f"labelled {name}", read, _texts(file, *contents))
    drawn = partial(lambda folder: read_data(folder / "a.jsonl", "span", question="mentions", draw=1))
    yield Reader("labelled mentions", drawn, _texts("a.jsonl", _repeat(SPAN_LINES["entities"], "It")))
    for name, *contents in (("a.csv", *texts["text a.csv"]), ("b.jsonl", *texts["text a.jsonl"])):
        unlabelled: Read = partial(lambda file, folder: [*read_field(folder / file, "text")], name)
        yield Reader(f"unlabelled {name}", unlabelled, _texts(name, *contents))
    pairs = "".join(f"{text}\ta text\n" for text, _ in LABELLED)
    yield Reader("pairs of texts", lambda folder: read_texts((str(folder / "a.tsv"),)), _texts("a.tsv", pairs))
    goals = io.BytesIO()
    np.save(goals, np.ones((24, 4), np.float32))
    yield Reader("vectors of texts", _read_goals, ({"g.npy": goals.getvalue(), "a.txt": b"ice and snow\n" * 24},))
    marked = "A [house] of ice.\n[[New York]] and [ice]\n[snow [ice]] a\n"
    yield Reader("marked texts", _parse_marked, _texts("p.txt", marked, "[a] b [[c d]]\n"))
    yield Reader("numbers of tokens", _number_tokens, _texts("t.txt", PROSE * 9, " a\0  b\n\n" * 40))


def _repeat(line: str, word: str) -> str:
    """Lines that differ in a word, half of them in a label."""
    lines = (line.replace(word, f"{word}{number}") for number in range(12))
    return "".join(
        each.replace('"x"', '"z"').replace("ARG0", "ARG1") if at % 2 else each for at, each in enumerate(lines)
    )


def _read_goals(folder: Path) -> None:
    refine(_vectors(), [f"text_pairs:on={folder / 'a.txt'},toward={folder / 'g.npy'},epochs=1"])


def _parse_marked(folder: Path) -> None:
    from stillvec.errors import CorpusError
    from stillvec.files import read_lines
    from stillvec.heads.marked_texts import parse_marked_text

    for _, line in read_lines(folder / "p.txt", CorpusError):
        marked = parse_marked_text(line)
        assert all(span for span in marked.spans)


def _number_tokens(folder: Path) -> None:
    """The numbers of a dict, whatever the tokens are."""
    from stillvec.vocabulary.token_cache import TokenInterner

    texts = (folder / "t.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    expected: dict[str, int] = {}
    numbers = [expected.setdefault(token, len(expected)) for text in texts for token in text.split(" ")]
    assert TokenInterner().intern(texts)[0].tolist() == numbers


# --- all of them

_GROUPS: dict[str, Callable[[], Iterator[Reader]]] = {
    "corpus": _corpus,
    "parquet-corpus": _corpus_parquet,
    "lexicons": _lexicons,
    "columns": _columns,
    "formats": _formats,
    "folders": _folders,
    "searches": _searches,
    "datasets": _datasets,
    "reports": _reports,
    "runs": _runs,
    "results": _results,
    "teachers": _teachers,
    "heads": _heads,
    "labelled": _labelled,
} | {
    name: partial(_one, name)
    for name in ("parquet", "hdf5", "onnx", "spacy", "gensim", "model2vec", "sentence-transformers")
}
GROUPS = tuple(_GROUPS)


@cache
def readers_of(group: str) -> tuple[Reader, ...]:
    return tuple(_GROUPS[group]())
