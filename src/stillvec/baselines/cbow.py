"""CBOW with negative sampling (Mikolov et al. 2013): the mean of the words around a word predicts it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stillvec.baselines.gensim_trainer import GensimBaseline, import_gensim
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class Cbow(GensimBaseline):
    SUMMARY: ClassVar[str] = "trained to predict a word from those around it (no teacher)"
    PAPERS: ClassVar[tuple[str, ...]] = ("mikolov-2013",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "mikolov-2013": {"rate": 0.025, "subsample": 1e-5, "epochs": 1},
    }
    epochs: int = 40  # passes over the corpus

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        return import_gensim("word2vec", "CBOW").Word2Vec(sg=0, cbow_mean=1, **self.gensim_settings(workers))
