"""How far texts are apart: languages, domains or periods (Lange, Strötgen & Adel 2020, after Gamallo et al. 2017).

- perplexity: of the character trigrams of one text on another, per character; interpolated with bigrams and single
  characters, weights by how many different characters follow a history (Witten & Bell 1991). Less is nearer.
- shared words: `(W(a|b) + W(b|a)) / (2 min(N(a), N(b)))`, W the words of one that the other has, N the words of one
  that any other has. More is nearer. Words that one language borrowed from another count as shared: of two
  languages, perplexity tells more.
- neural perplexity, on request: of a recurrent model of characters (`training/character_model.py`) on another text.
- vote: the mean of the ranks by all of these.
All texts are cut to the length of the shortest, since both measures grow with it.
"""

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError, UsageError
from stillvec.input_checks import check_arguments
from stillvec.vocabulary import WordCounter

_CHARACTERS = 1_000_000  # of each text
_MIN_CHARACTERS = 1000
_START = "\n\n"


@dataclass(frozen=True)
class CorpusDistances:
    """Distances from each text to each other: first the name of the text, then that of the other."""

    n_characters: int  # of each text that were compared
    perplexity: dict[str, dict[str, float]]  # of the model of the other text on this one
    shared_words: dict[str, dict[str, float]]
    neural_perplexity: dict[str, dict[str, float]] = field(default_factory=dict)  # if it was computed

    def nearest(self, name: str) -> list[tuple[str, float]]:
        """The other texts by the mean of the ranks of all measures, nearest first; equal ones by perplexity."""
        near = [self.perplexity[name], {other: -value for other, value in self.shared_words[name].items()}]
        near += [self.neural_perplexity[name]] if self.neural_perplexity else []
        orders = [sorted(values, key=values.__getitem__) for values in near]
        votes = {other: sum(order.index(other) for order in orders) / len(orders) + 1 for other in orders[0]}
        return sorted(votes.items(), key=lambda item: (item[1], orders[0].index(item[0])))


class Perplexity(Protocol):
    """A model of characters."""

    def perplexity(self, text: str) -> float:
        """Per character of another text."""
        ...


class TrigramModel:
    """Probabilities of characters after two others, from a text."""

    def __init__(self, text: str) -> None:
        self._counts = [_count(text, n) for n in (1, 2, 3)]
        self._totals = [Counter[str](), Counter[str](), Counter[str]()]  # occurrences of a history
        self._kinds = [Counter[str](), Counter[str](), Counter[str]()]  # different characters after it
        for counts, totals, kinds in zip(self._counts, self._totals, self._kinds, strict=True):
            for gram, count in counts.items():
                totals[gram[:-1]] += count
                kinds[gram[:-1]] += 1
        self._n_characters = len(self._counts[0]) + 1  # one for all that the text does not have

    def probability(self, gram: str) -> float:
        """Of the last character after the two before it."""
        value = 1 / self._n_characters
        for n, (counts, totals, kinds) in enumerate(zip(self._counts, self._totals, self._kinds, strict=True)):
            part = gram[2 - n :]
            if total := totals[part[:-1]]:
                value = (counts[part] + kinds[part[:-1]] * value) / (total + kinds[part[:-1]])
        return value

    def perplexity(self, text: str) -> float:
        """Per character of another text."""
        grams = _count(text, 3)
        logs = sum(count * math.log(self.probability(gram)) for gram, count in grams.items())
        return math.exp(-logs / max(grams.total(), 1))


def _count(text: str, n: int) -> Counter[str]:
    padded = _START + text
    return Counter(padded[at - n + 1 : at + 1] for at in range(len(_START), len(padded)))


def compare_corpora(texts: Mapping[str, str | os.PathLike[str]], *, neural: bool = False) -> CorpusDistances:
    """The distances between texts, by name.

    Parameters
    ----------
    texts: a file or folder by name, two or more.
    neural: also train a recurrent model of the characters of each text, half a minute each on a CPU (default: False).
    """
    check_arguments(compare_corpora, locals())
    if len(texts) < 2:
        raise UsageError.expected("two texts or more", len(texts), where="texts")
    samples = {name: Corpus(path).sample(_CHARACTERS) for name, path in texts.items()}
    contents = {name: " ".join("\n".join(sample).lower().split()) for name, sample in samples.items()}
    shortest = min(contents, key=lambda name: len(contents[name]))
    if (n_characters := len(contents[shortest])) < _MIN_CHARACTERS:
        what = f"at least {_MIN_CHARACTERS:,} characters"
        raise CorpusError.expected(what, f"{n_characters:,}", path=texts[shortest])
    contents = {name: text[:n_characters] for name, text in contents.items()}
    models = {name: TrigramModel(text) for name, text in contents.items()}
    perplexity, shared = _measure(models, contents), _share_words(contents)
    if not neural:
        return CorpusDistances(n_characters, perplexity, shared)
    from stillvec.training.character_model import CharacterModel  # importing torch takes seconds

    characters = {*"".join(contents.values())}
    recurrent = {name: CharacterModel(text, characters) for name, text in contents.items()}
    return CorpusDistances(n_characters, perplexity, shared, _measure(recurrent, contents))


def _measure(models: Mapping[str, Perplexity], contents: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The perplexity of each text by the models of the others."""
    return {
        name: {other: models[other].perplexity(text) for other in contents if other != name}
        for name, text in contents.items()
    }


def _share_words(contents: Mapping[str, str]) -> dict[str, dict[str, float]]:
    words = {name: _list_words(text) for name, text in contents.items()}
    known = {
        name: len(own & set().union(*(words[other] for other in words if other != name))) for name, own in words.items()
    }
    return {
        name: {
            other: len(own & words[other]) / max(min(known[name], known[other]), 1) for other in words if other != name
        }
        for name, own in words.items()
    }


def _list_words(text: str) -> set[str]:
    counter = WordCounter()
    counter.add([text])
    return {word for word in counter.counts() if not word.isdigit()}
