"""Polarity flips: are a sentence and its rewriting with the opposite label both classified correctly?

Bhathena et al. 2020 call the share of such pairs the polarity sensitivity score. A linear classifier (logistic
regression, its penalty selected on development texts) is trained on `classification/NAME.train.txt` (or `NAME.txt`)
with the vectors of whole texts: the mean of the known words, or the teacher's sentence vector.

    pss                both sentences of a pair are right
    relative-pss       pss / accuracy
    accuracy           of the original sentences
    accuracy-rewritten of the rewritten ones
    -random            the same with the mean of random vectors of the words: what the words alone give

Files: `flips/*.tsv` with a label, a sentence, another label and the rewritten sentence per line. As in the paper, pairs
whose rewriting has no word that the original lacks are left out. Training texts that occur in a pair are left out, too.

An item is a pair, covered if both sentences have a known word. Interval: percentile bootstrap over pairs.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Estimate, Resampling, Rows
from stillvec.evaluation.layer_mix import learn_mix, mix_rows
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.supervised import LearntItems, estimates, ratio, share, single_thread
from stillvec.evaluation.tasks import Answers, Items, TextTask
from stillvec.evaluation.teacher_states import number_types
from stillvec.files import inner_name
from stillvec.files.path_names import files_in
from stillvec.heads.dataset_files import count_fields, lines, read_labelled
from stillvec.heads.linear_probe import predict, select_logistic
from stillvec.heads.sequence_batches import SPECIAL, Representation, Sequences
from stillvec.heads.splits import Round, fifths

_QUICK = 1000  # training texts
_LEAST = 10  # training texts
_WHAT = "a label, a sentence, another label and the rewritten sentence, separated by tabs"


@dataclass(frozen=True)
class Flips(TextTask):
    files: ClassVar[tuple[str, ...]] = ("flips", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-random",)
    learns_mix: ClassVar[bool] = True
    summary: ClassVar[str] = "shares of pairs and of sentences"

    def find(self, folder: Path) -> list[Path]:
        return files_in(folder / self.files[0], self.files[1:])

    def other_data(self, path: Path) -> tuple[Path, ...]:
        training = _find_training(path)
        return () if training is None else (training,)

    def read(self, path: Path) -> LearntItems:
        source = _find_training(path)
        if source is None:
            where = f"{path.parent.parent / 'classification' / _stem(path)}.train.txt"
            raise DatasetError.expected(f"training texts in {where}", "none", path=path)
        pairs = [pair for pair in _read_pairs(path) if _adds_word(pair[1], pair[3])]
        if not pairs:
            raise DatasetError.expected("a rewriting with a new word", "none", path=path)
        tested = {text for pair in pairs for text in pair[1::2]}
        training = [(label, text) for label, text in read_labelled(source) if text not in tested]
        names = sorted({label for label, _ in training})
        if missing := {label for pair in pairs for label in pair[::2]} - {*names}:
            what = f"the label {min(missing)!r} in {source.name}"
            raise DatasetError.expected(what, " and ".join(names) or "no label", path=path)
        if len(training) < _LEAST:
            raise DatasetError.expected(f"{_LEAST} training texts", len(training), path=source)
        places = np.array([names.index(label) for label, _ in training])
        fifth, n = fifths(places.tolist()), len(pairs)
        train, dev = (n + np.flatnonzero(mask) for mask in (fifth > 0, fifth == 0))
        if self.quick:
            train, dev = train[:_QUICK], dev[: _QUICK // 4]
        gold = np.array([names.index(pair[0]) for pair in pairs], np.float64)
        labels = tuple((names.index(pair[0]), names.index(pair[2])) for pair in pairs) + tuple(
            (int(place), int(place)) for place in places
        )
        texts, more = tuple(pair[1::2] for pair in pairs), tuple((text,) for _, text in training)
        return LearntItems(texts, gold, (), more, labels, (Round(train, dev, np.arange(n)),))

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        (split,) = items.rounds
        texts = [text for pair in items.texts for text in pair]  # the pairs, one after another, then the training texts
        n = len(texts)
        used = np.concatenate([split.train, split.dev])
        texts += [items.all_texts[at][0] for at in used]
        layers = yield from share(0, 2, lookup.encode_layers_steps(texts))
        gold = np.array(items.labels[: len(items)])  # (n, 2)
        y = np.concatenate([gold.ravel(), np.array([items.labels[at][0] for at in used], np.int64)])
        rows = n + np.arange(len(split.train)), n + len(split.train) + np.arange(len(split.dev))
        vectors = layers[0]
        if len(layers) > 1:
            vectors = mix_rows(layers, learn_mix([layer[rows[0]] for layer in layers], y[rows[0]]))
        values: dict[str, NDArray[np.bool_]] = {}
        for number, (ending, x) in enumerate(
            {"": vectors, "-random": _average_random(texts, vectors.shape[1])}.items()
        ):
            with single_thread():
                right = _classify(x, y, *rows, n).reshape(-1, 2) == gold
            values |= {f"pss{ending}": right.all(axis=1), f"accuracy{ending}": right[:, 0]}
            values[f"accuracy-rewritten{ending}"] = right[:, 1]
            yield (3 + number) / 4
        known = lookup.count_words(texts[:n])[:, 0].reshape(-1, 2) > 0
        return Answers(known[:, 0] & known[:, 1], values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        shares = {}
        for ending in ("", "-random"):
            both, first = (answers.values[f"{name}{ending}"][chosen].astype(np.float64) for name in ("pss", "accuracy"))
            shares[f"relative-pss{ending}"] = ratio(both, first)
        scores = super().score(items, answers, chosen, resampling) | estimates(shares, len(chosen), resampling)
        return {name: scores[name] for name in sorted(scores, key=lambda name: name.endswith("-random"))}


def _find_training(path: Path) -> Path | None:
    """The training texts for the pairs of a file."""
    files = files_in(path.parent.parent / "classification", (".txt", ".tsv"))
    by_name = {Path(inner_name(file)).stem: file for file in files}
    return by_name.get(f"{_stem(path)}.train", by_name.get(_stem(path)))


def _stem(path: Path) -> str:
    return Path(inner_name(path)).stem


def _read_pairs(path: Path) -> list[tuple[str, str, str, str]]:
    pairs = []
    for number, line in lines(path):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 4 or not all(fields) or fields[0] == fields[2]:
            raise DatasetError.expected(_WHAT, count_fields(fields), path=path, line=number)
        pairs.append((fields[0], fields[1], fields[2], fields[3]))
    if not pairs:
        raise DatasetError.expected(f"{_WHAT}, per line", "an empty file", path=path, line=1)
    return pairs


def _adds_word(original: str, rewritten: str) -> bool:
    before, after = ({*_words(text)} for text in (original, rewritten))
    return bool(after - before)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _average_random(texts: Sequence[str], dim: int) -> NDArray[np.float32]:
    """The mean of a random vector per word (n, dim)."""
    words = [*map(_words, texts)]
    ids = SPECIAL + number_types(word for text in words for word in text)
    ends = np.cumsum([len(text) for text in words])
    return randomize(Sequences(np.zeros((int(ids.max()) + 1, dim), np.float32), ids, ends)).means()


def _classify(x: NDArray[np.float32], y: Rows, train: Rows, dev: Rows, n_tested: int) -> Rows:
    scaling, weights = select_logistic(x, y, train, dev)
    return predict(scaling(x[:n_tested]), weights)
