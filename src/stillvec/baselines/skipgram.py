"""Skip-gram with negative sampling (Mikolov et al. 2013): a word tells the words around it from drawn ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from stillvec.baselines.gensim_trainer import GensimBaseline, gensim
from stillvec.vocabulary import Vocabulary


@dataclass(frozen=True)
class Skipgram(GensimBaseline):
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "mikolov-2013": {"rate": 0.025, "subsample": 1e-5, "epochs": 1},
    }

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        return gensim("word2vec", "Skip-gram").Word2Vec(sg=1, **self.common(workers))
