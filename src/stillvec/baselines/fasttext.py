"""fastText (Bojanowski et al. 2017): a word's vector is the mean of its own and of its character n-grams' vectors.

Words that the corpus lacks (`--include-words`) get the mean of their n-grams.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from stillvec.baselines.baseline import check_settings
from stillvec.baselines.encoded_corpus import EncodedCorpus, as_token
from stillvec.baselines.gensim_trainer import GensimBaseline, import_gensim
from stillvec.errors import UsageError
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_BUCKETS = 2_000_000  # the paper's
_BUCKETS_PER_WORD = 20  # a word brings fewer n-grams that no other word has


@dataclass(frozen=True)
class FastText(GensimBaseline):
    SUMMARY: ClassVar[str] = "trained as skip-gram, with its character n-grams (no teacher)"
    PAPERS: ClassVar[tuple[str, ...]] = ("bojanowski-2017",)
    RENAMED: ClassVar[Mapping[str, str]] = {"of": "architecture", "shortest": "min_n", "longest": "max_n"}
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "bojanowski-2017": {"epochs": 5, "min_n": 3, "buckets": _BUCKETS},
    }
    architecture: Literal["skipgram", "cbow"] = "skipgram"  # which of word2vec's models: skipgram or cbow
    min_n: int = 4  # characters of the shortest n-gram, including the boundary mark at each end of a word
    max_n: int = 6  # characters of the longest n-gram
    buckets: int | None = None  # rows for hashed n-grams; none: 20 per word of the vocabulary, 2 million at most

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self, ("min_n", "buckets"), ())
        if self.max_n < self.min_n:
            raise UsageError.expected(f"min_n={self.min_n} or more", self.max_n, where="setting 'max_n' of FastText")
        if self.add_contexts:
            raise UsageError.conflict("add_contexts is not available for fasttext", cure="use skipgram or cbow")

    def model(self, vocabulary: Vocabulary, workers: int) -> Any:
        return import_gensim("fasttext", "fastText").FastText(
            sg=int(self.architecture == "skipgram"),
            min_n=self.min_n,
            max_n=self.max_n,
            bucket=self.buckets or min(_BUCKETS, _BUCKETS_PER_WORD * len(vocabulary)),
            **self.gensim_settings(workers),
        )

    def vectors(self, model: Any, corpus: EncodedCorpus) -> WordVectors:
        matrix = np.stack([model.wv.get_vector(as_token(word)) for word in corpus.vocabulary])
        return WordVectors(corpus.vocabulary, np.asarray(matrix, np.float32))

    def notes(self, model: Any) -> dict[str, Any]:
        return {"buckets": model.wv.bucket}
