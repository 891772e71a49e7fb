"""One tagger for several languages (Lange et al. 2020): languages that it has no labels of.

    STILLVEC_WORKSHOP=... python recipes/invariant_tagger.py timex TEACHER[@LAYER]
    STILLVEC_LANGUAGES=... python recipes/invariant_tagger.py upos TEACHER[@LAYER] [--scores FILE.json]

The words are states of a teacher, one per occurrence. `timex`: expressions of time, labelled in English and Spanish; of
German, every other sentence is text without labels and the others are tested. `upos`: parts of speech in parallel
sentences; English has labels, the first 600 sentences of the others are text without labels, the last 400 tested. Rows:
the states as they are, the mean of each language subtracted, each rotated onto English (Procrustes, by the mean states
of words with the same spelling), and the option `invariant` with several weights; a weight of 0.000001 is its map
without the discriminator. "language" is the accuracy of a new linear probe on what the tagger reads. A script because
`fit` reads vectors of words.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scores import argument_parser, print_header, print_row, split_cells, write_json

from stillvec.combination.rotation import procrustes
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.heads.labelled_data import LabelledData
from stillvec.heads.linear_probe import tell_groups
from stillvec.heads.sequence_batches import SPECIAL, UNKNOWN, Sequences
from stillvec.heads.splits import fifths
from stillvec.heads.tagger_head import Tagger, measure_tags, number_tags
from stillvec.heads.training_options import Invariant, TrainingOption
from stillvec.heads.treebank import read_tagged
from stillvec.numerics.array_types import Floats, Rows
from stillvec.progress import drain

HEADERS = {
    "invariant-timex": "| words | en | es | de, no labels | language |",
    "invariant-upos": "| words | en | 16 languages, no labels | least | language |",
}
CHANGES = ("as they are", "centred", "Procrustes")
WEIGHTS = (0.1, 1e-6, 1.0)
LEAST_SHARED = 20  # words of the same spelling, for a rotation
N_PROBED = 400  # words of each language


@dataclass(frozen=True)
class Texts:
    """Sentences of several languages, and what each is for."""

    languages: tuple[str, ...]
    data: LabelledData  # `datasets` are the languages
    more: Rows  # sentences whose labels are not used

    def learn_from(self) -> Rows:
        """The language of each sentence (n,), negative where nothing is learnt from it."""
        assert self.data.datasets is not None
        seen = np.concatenate([self.data.train, self.more])
        languages = np.full(len(self.data.items), -1)
        languages[seen] = self.data.datasets[seen]
        return languages


def read_texts(table: str, limit: int) -> Texts:
    items: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    parts: dict[str, list[int]] = {"train": [], "more": [], "test": []}
    datasets: list[int] = []
    languages: tuple[str, ...]

    def add(language: int, sentences: Sequence[Any], part: str) -> None:
        parts[part] += range(len(items), len(items) + len(sentences))
        items.extend((tuple(words), tuple(tags)) for words, tags in sentences)
        datasets.extend([language] * len(sentences))

    if table == "timex":
        folder = Path(os.environ["STILLVEC_WORKSHOP"]) / "tagging"
        languages = ("en", "es", "de")
        for number, language in enumerate(languages[:2]):
            for part in ("train", "test"):
                add(number, [*read_tagged(folder / f"timex-{language}.{part}.tsv")][:limit], part)
        german = [*read_tagged(folder / "timex-de.tsv")][: 2 * limit]
        add(2, german[1::2], "more")
        add(2, german[::2], "test")
    else:
        folder = Path(os.environ["STILLVEC_LANGUAGES"]) / "tagging"
        others = sorted(path.stem.partition("-")[2] for path in folder.glob("pud-*.tsv"))
        languages = ("en", *(name for name in others if name != "en"))
        for number, language in enumerate(languages):
            sentences = [*read_tagged(folder / f"pud-{language}.tsv")][:limit]
            cut = len(sentences) * 6 // 10
            add(number, sentences[:cut], "more" if number else "train")
            add(number, sentences[cut:], "test")
    train = np.array(parts["train"])
    fifth = fifths([""] * len(train))
    words, labels = zip(*items, strict=True)
    train, dev = train[fifth != 0], train[fifth == 0]
    data = LabelledData("tokens", words, labels, train, dev, np.array(parts["test"]), datasets=np.array(datasets))
    return Texts(languages, data, np.array(parts["more"]))


def change_rows(sequences: Sequences, texts: Texts, how: str) -> Sequences:
    """The states with each language centred, or rotated onto the first."""
    table = np.array(sequences.table, np.float32)
    assert texts.data.datasets is not None
    if how == "as they are":
        return replace(sequences, table=table)
    known, learnt = sequences.ids != UNKNOWN, texts.learn_from()
    of_word, seen = texts.data.datasets[sequences.text], learnt[sequences.text] >= 0
    spelling = [word.lower() for words in texts.data.items for word in words]
    types = [
        mean_states(table, sequences.ids, spelling, known & seen & (of_word == n)) for n in range(len(texts.languages))
    ]
    for number in range(len(texts.languages)):
        rows = sequences.ids[known & (of_word == number)]
        if how == "centred":
            table[rows] -= table[sequences.ids[known & seen & (of_word == number)]].mean(axis=0)
        elif number:
            shared = sorted(types[0].keys() & types[number].keys())
            if len(shared) < LEAST_SHARED:
                continue  # another script: as it is
            pairs = [np.array([of[word] for word in shared], np.float64) for of in (types[number], types[0])]
            table[rows] = table[rows] @ procrustes(*pairs).astype(np.float32)
    return replace(sequences, table=table)


def mean_states(table: Floats, ids: Rows, spelling: Sequence[str], chosen: NDArray[np.bool_]) -> dict[str, Floats]:
    """The mean state of each word that consists of letters."""
    places: dict[str, list[int]] = {}
    for at in np.flatnonzero(chosen).tolist():
        if spelling[at].isalpha():
            places.setdefault(spelling[at], []).append(int(ids[at]))
    return {word: table[rows].mean(axis=0) for word, rows in places.items()}


class Result(NamedTuple):
    scores: Floats  # (languages, seeds) on test sentences
    probe: float


def train(sets: Sequence[Sequences], texts: Texts, option: TrainingOption | None, options: Any) -> list[Result]:
    """Of taggers of several sets of states, which make their steps together."""
    from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks
    from stillvec.teachers.device import resolve_device

    data, gold = texts.data, number_tags(texts.data)
    kind = Tagger(epochs=options.epochs)
    places = [slice(number * options.seeds, (number + 1) * options.seeds) for number in range(len(sets))]
    networks = [
        NetworkSettings(number, seed, kind.rate) for number in range(len(sets)) for seed in range(options.seeds)
    ]
    active = {} if option is None else {"invariant": option}
    padded = PaddedTexts(sets, resolve_device("auto"))
    group = TaggerNetworks(padded, gold, networks, names=data.names, options=active, languages=texts.learn_from())

    def measure() -> Floats:
        return np.array([measure_tags(data, gold, data.dev, said) for said in group.predict_words(data.dev)])

    drain(group.train_best(data.train, kind.epochs, measure, decay=1 / 3))
    assert data.datasets is not None
    of_language = [data.test[data.datasets[data.test] == number] for number in range(len(texts.languages))]
    scores = np.array(
        [[measure_tags(data, gold, rows, said) for said in group.predict_words(rows)] for rows in of_language]
    )
    read = read_words(group, sets[0], of_language)
    probes = [tell_groups([rows[place.start] for rows in read]) for place in places]
    return [Result(scores[:, place], probe) for place, probe in zip(places, probes, strict=True)]


def read_words(group: Any, sequences: Sequences, of_language: Sequence[Rows]) -> list[Floats]:
    """What each tagger reads for some words of the test sentences of each language (networks, n, d)."""
    import torch

    random, read = np.random.default_rng(0), []
    for rows in of_language:
        ids = sequences.ids[np.isin(sequences.text, rows)]
        ids = random.choice(ids[ids >= SPECIAL], min(N_PROBED, int((ids >= SPECIAL).sum())), replace=False)
        chosen = torch.from_numpy(ids).to(group.texts.device).expand(len(group.networks), 1, -1)
        with torch.no_grad():
            read.append(group.read_words(chosen)[:, 0].cpu().numpy())
    return read


def describe(scores: Floats) -> str:
    """`64.2 ± 0.8`: the mean and the standard deviation over seeds (seeds,)."""
    spread = f" ± {100 * np.std(scores, ddof=1):.1f}" if len(scores) > 1 else ""
    return f"{100 * np.mean(scores):.1f}{spread}"


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("timex", "upos"))
    parser.add_argument("teacher", metavar="TEACHER")
    parser.add_argument("--limit", type=int, default=100_000, help="sentences of each file")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--scores", type=Path)
    options = parser.parse_args()
    texts = read_texts(options.table, options.limit)
    states = open_teachers({"teacher": f"teacher:{options.teacher}"}, None)["teacher"]
    sequences = drain(states.read_tokens_steps([[*words] for words in texts.data.items]))
    sets = {how: change_rows(sequences, texts, how) for how in CHANGES}
    plans: list[tuple[Mapping[str, Sequences], TrainingOption | None]] = [
        (sets, None),
        ({"centred, `invariant:weight=0.1`": sets["centred"]}, Invariant(0.1)),
    ]
    plans += [({f"`invariant:weight={weight:g}`": sets["as they are"]}, Invariant(weight)) for weight in WEIGHTS]
    print_header(*split_cells(HEADERS[f"invariant-{options.table}"]))
    found: dict[str, Any] = {}
    for named, option in plans:
        for name, result in zip(named, train([*named.values()], texts, option, options), strict=True):
            others, least = result.scores[1:].mean(axis=0), result.scores.min(axis=0)
            columns = [*result.scores] if options.table == "timex" else [result.scores[0], others, least]
            print_row(name, *map(describe, columns), f"{100 * result.probe:.1f}")
            found[name] = dict(zip(texts.languages, result.scores.tolist(), strict=True)) | {"probe": result.probe}
        if options.scores:
            write_json(options.scores, found)


if __name__ == "__main__":
    main()
