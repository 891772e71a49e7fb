"""RareWord with its words held out of the vectors: n-grams, the mean vector, the words' own vectors and the teacher.

    python recipes/unseen_words.py VECTORS --data DIR [--teacher minilm]      # the figures of docs/unseen-words.md
    python recipes/unseen_words.py VECTORS --data DIR --develop               # how the settings were chosen

Development never uses RareWord: a tenth of the words with at most the median count is held out, together with all
words of RareWord, and the mean cosine between their n-gram vectors and their own vectors is computed (in 64 random
directions). A script because no command holds words out.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from scores import argument_parser, format_interval, print_header, print_row, split_cells

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.refinement.subword import Subword

HEADERS = {
    "unseen-words": "| words of RareWord | all pairs | pairs whose words have their own vectors |",
    "unseen-words-settings": "| n-grams | rows | hashes | ridge | power | cosine |",
}
GRID = [
    Subword(buckets=buckets, minn=minn, maxn=maxn, hash_count=hashes, ridge=ridge, power=power)
    for buckets, minn, maxn, hashes, ridge, power in [
        (200_000, 3, 6, 1, 0.03, 0), (200_000, 3, 6, 1, 0.1, 0), (200_000, 4, 6, 1, 0.03, 0),
        (200_000, 2, 4, 1, 0.04, 0), (200_000, 2, 6, 1, 0.03, 0), (200_000, 1, 5, 1, 0.03, 0),
        (200_000, 2, 5, 1, 0.01, 0), (200_000, 2, 5, 1, 0.02, 0), (200_000, 2, 5, 1, 0.04, 0),
        (200_000, 2, 5, 2, 0.01, 0), (200_000, 2, 5, 1, 0.02, 0.25), (100_000, 2, 5, 1, 0.02, 0),
        (50_000, 2, 5, 2, 0.02, 0), (500_000, 2, 5, 1, 0.02, 0),
    ]
]  # fmt: skip


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors")
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--teacher")
    parser.add_argument("--develop", action="store_true")
    options = parser.parse_args()
    vectors = stillvec.load(options.vectors)
    file = options.data / "similarity" / "rareword.tsv"
    pairs = [line.split("\t")[:2] for line in file.read_text("utf-8").lower().splitlines()]
    if options.develop:
        develop(vectors, {word for pair in pairs for word in pair})
        return
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "similarity"
        data.mkdir()
        shutil.copy(file, data / "rareword.tsv")
        known = [all(word in vectors for word in pair) for pair in pairs]
        lines = zip(file.read_text("utf-8").splitlines(), known, strict=True)
        (data / "rareword-known.tsv").write_text("".join(f"{line}\n" for line, here in lines if here), "utf-8")
        report(vectors, pairs, Path(folder), options.teacher)


def report(vectors: WordVectors, pairs: list[list[str]], data: Path, teacher: str | None) -> None:
    print_header(*split_cells(HEADERS["unseen-words"]))
    print_scores("the words' own vectors", vectors, data, "skip")
    for name, words in (("all words", {w for pair in pairs for w in pair}), ("first words", {a for a, _ in pairs})):
        left = vectors.subset(word for word in vectors.words if word not in words)
        made = stillvec.refine(left, "subword")
        print_scores(f"{name} held out, mean vector", left, data, "mean")
        print_scores(f"{name} held out, n-grams", made, data, "subword")
    made = stillvec.refine(vectors, "subword")
    print_scores("nothing held out, mean vector", vectors, data, "mean")
    print_scores("nothing held out, n-grams", made, data, "subword")
    if teacher:
        words = sorted({word for pair in pairs for word in pair})
        isolated = stillvec.distill(teacher=teacher, include_words=words)
        print_scores("the teacher, on each word in isolation", isolated, data, "skip")


def print_scores(name: str, vectors: WordVectors, data: Path, unknown: str) -> None:
    """One row: all pairs, then those whose words have their own vectors; – where a pair has no cosine."""
    scores = {score.dataset: score for score in stillvec.evaluate(vectors, data, oov=unknown).scores}
    cells = []
    for score in (scores["rareword"], scores["rareword-known"]):
        skipped = unknown == "skip" and score.n_covered < score.n_items
        undefined = skipped or score.value is None or np.isnan(score.value)
        cells.append("–" if undefined else format_interval(score.value, score.low, score.high))
    print_row(name, *cells)


def develop(vectors: WordVectors, tested: set[str]) -> None:
    random = np.random.default_rng(1)
    counts = vectors.vocabulary.counts
    rare = counts <= np.median(counts)
    able = [row for row, word in enumerate(vectors.words) if rare[row] and word.isascii() and word.isalpha()]
    able = [row for row in able if vectors.words[row] not in tested]
    held_out = random.choice(able, len(able) // 10, replace=False)
    stay = np.array([word not in tested for word in vectors.words])
    stay[held_out] = False
    matrix = np.asarray(vectors.matrix, np.float32) @ random.normal(size=(vectors.dim, 64)).astype(np.float32)
    words = [word for word, here in zip(vectors.words, stay, strict=True) if here]
    left = WordVectors(Vocabulary(words, counts[stay].tolist()), matrix[stay])
    words_out, target = [vectors.words[row] for row in held_out], matrix[held_out]
    plain = cosine(left.matrix.mean(axis=0), target)
    print(f"{len(held_out):,} of {len(able):,} rare words are held out; cosine of the mean vector {plain:.3f}\n")
    print_header(*split_cells(HEADERS["unseen-words-settings"]))
    for step in GRID:
        score = cosine(step(left).from_subwords(words_out), target)
        settings = (f"{step.buckets:,}", str(step.hash_count), f"{step.ridge:g}", f"{step.power:g}")
        print_row(f"{step.minn}–{step.maxn}", *settings, f"{score:.3f}")


def cosine(predicted: np.ndarray, target: np.ndarray) -> float:
    lengths = np.linalg.norm(predicted, axis=-1) * np.linalg.norm(target, axis=1)
    return float(((predicted * target).sum(axis=1) / lengths).mean())


if __name__ == "__main__":
    main()
