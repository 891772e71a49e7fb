"""Skip-gram with negative sampling (Mikolov et al. 2013): a word predicts the words around it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stillvec.baselines.gensim_trainer import GensimBaseline, import_gensim
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class Skipgram(GensimBaseline):
    SUMMARY: ClassVar[str] = "trained to predict the words around it (no teacher)"
    PAPERS: ClassVar[tuple[str, ...]] = ("mikolov-2013",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "mikolov-2013": {"rate": 0.025, "subsample": 1e-5, "epochs": 1},
    }

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        return import_gensim("word2vec", "Skip-gram").Word2Vec(sg=1, **self.gensim_settings(workers))
