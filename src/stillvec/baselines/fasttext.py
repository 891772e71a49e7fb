"""fastText (Bojanowski et al. 2017): a word's vector is the mean of its own and its character n-grams'.

Words that the corpus lacks (`--keep`) get the mean of their n-grams.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from stillvec.baselines.baseline import check_settings
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.baselines.gensim_trainer import GensimBaseline, gensim
from stillvec.errors import UsageError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BUCKETS = 2_000_000  # the paper's
_A_WORD = 20  # buckets; a word brings fewer n-grams that no other has


@dataclass(frozen=True)
class FastText(GensimBaseline):
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "bojanowski-2017": {"epochs": 5, "shortest": 3, "buckets": _BUCKETS},
    }
    of: Literal["skipgram", "cbow"] = "skipgram"
    shortest: int = 4  # characters of an n-gram, with a sign at a word's either end
    longest: int = 6
    buckets: int | None = None  # rows for n-grams, by their hash; None: 20 a word of the vocabulary, 2 million at most

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, {"shortest": self.shortest}, {})
        if self.longest < self.shortest or (self.buckets is not None and self.buckets < 1) or self.add_contexts:
            raise UsageError(
                "fastText takes n-grams from shortest to longest, one bucket or more, and no add_contexts "
                f"(shortest={self.shortest}, longest={self.longest}, buckets={self.buckets} came)."
            )

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        return gensim("fasttext", "fastText").FastText(
            sg=int(self.of == "skipgram"),
            min_n=self.shortest,
            max_n=self.longest,
            bucket=self.buckets or min(_BUCKETS, _A_WORD * len(vocabulary)),
            **self.common(workers),
        )

    def vectors(self, model: Any, text: EncodedCorpus) -> WordVectors:
        matrix = np.stack([model.wv.get_vector(as_token(word)) for word in text.vocabulary])
        return WordVectors(text.vocabulary, np.asarray(matrix, np.float32))

    def notes(self, model: Any) -> dict[str, Any]:
        return {"buckets": model.wv.bucket}
