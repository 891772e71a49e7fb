"""Words in context from WordNet's examples: `word_in_context/wordnet-development.tsv` and `-test.tsv` (docs/python.md).

    python recipes/word_in_context.py write out/words-in-context [--wordnet FOLDER]
    python recipes/word_in_context.py table --data out/words-in-context auto=out/senses teacher:minilm

`table` evaluates vectors and teachers on one half of the words (default: test) and prints a table. Choose settings on
the development half.
"""

import argparse
import tempfile
from pathlib import Path

from stillvec import evaluate
from stillvec.lexicons.sense_examples import PARTS, read_sense_pairs

HEADERS = {"word-in-context": ["vectors", "accuracy", "95%", "other words only", "pairs"]}


def write_pairs(folder: Path, wordnet: Path | None) -> None:
    (folder / "word_in_context").mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        pairs = [*read_sense_pairs(wordnet, part)]
        lines = [f"{int(pair.same)}\t{pair.word}\t{pair.one}\t{pair.other}\n" for pair in pairs]
        path = folder / "word_in_context" / f"wordnet-{part}.tsv"
        path.write_text("".join(lines), "utf-8")
        print(f"{path}: {len(pairs):,} pairs of {len({pair.word for pair in pairs}):,} words")


def print_table(data: Path, part: str, named: list[str]) -> None:
    sources = dict(text.split("=", 1) if "=" in text else (text, text) for text in named)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "word_in_context").mkdir()
        name = f"wordnet-{part}.tsv"
        text = (data / "word_in_context" / name).read_text("utf-8")
        (Path(folder) / "word_in_context" / name).write_text(text, "utf-8")
        report = evaluate(sources, folder, "word_in_context")
    print(" | ".join(HEADERS["word-in-context"]))
    scores = {(score.vectors, score.metric): score for score in report.scores if score.words == "own"}
    for source in sources:
        main, control = scores[source, "accuracy"], scores[source, "accuracy-texts"]
        interval = f"{100 * main.low:.1f} to {100 * main.high:.1f}"
        print(f"{source} | {100 * main.value:.1f} | {interval} | {100 * control.value:.1f} | {main.n_covered:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="write both halves")
    write.add_argument("folder", type=Path)
    write.add_argument("--wordnet", type=Path, help="folder of WordNet's data files (default: where it is installed)")
    table = verbs.add_parser("table", help="evaluate")
    table.add_argument("sources", nargs="+", metavar="[NAME=]VECTORS|teacher:NAME[@LAYER]")
    table.add_argument("--data", type=Path, required=True)
    table.add_argument("--part", choices=PARTS, default="test")
    options = parser.parse_args()
    if options.verb == "write":
        write_pairs(options.folder, options.wordnet)
    else:
        print_table(options.data, options.part, options.sources)


if __name__ == "__main__":
    main()
