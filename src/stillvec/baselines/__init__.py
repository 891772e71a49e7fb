"""Static methods that train on text alone, without a teacher: one file and one paper each."""

from stillvec.baselines.baseline import Baseline, Resources
from stillvec.baselines.encoded_corpus import EncodedCorpus, encode_corpus
from stillvec.registry import Registry

BASELINES: Registry[type[Baseline]] = Registry(
    "method",
    {
        "skipgram": "stillvec.baselines.gensim_methods:Skipgram",
        "cbow": "stillvec.baselines.gensim_methods:Cbow",
        "fasttext": "stillvec.baselines.gensim_methods:FastText",
        "glove": "stillvec.baselines.glove:Glove",
        "sent2vec": "stillvec.baselines.sent2vec:Sent2vec",
        "deps": "stillvec.baselines.deps:Deps",
        "syngcn": "stillvec.baselines.syngcn:SynGcn",
        "context_lstm": "stillvec.baselines.context_lstm:ContextLstm",
        "word_operators": "stillvec.baselines.word_operators:WordOperators",
    },
)

_NEEDED = {  # package and extra: the methods that need it
    ("gensim", "train"): ("skipgram", "cbow", "fasttext"),
    ("numba", "train"): ("glove", "sent2vec"),
    ("torch", "distill"): ("deps", "syngcn", "context_lstm", "word_operators"),
}
PACKAGES = {name: package for package, names in _NEEDED.items() for name in names}  # method: package and extra

__all__ = ["BASELINES", "PACKAGES", "Baseline", "EncodedCorpus", "Resources", "encode_corpus"]
