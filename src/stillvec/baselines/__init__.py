"""Static methods that learn from text alone, without a teacher: one file each, one paper each."""

from stillvec.baselines.text import Text, write_text
from stillvec.baselines.training import Baseline, Learnt, Means, TrainingStep
from stillvec.registry import Registry

BASELINES: Registry[type[Baseline]] = Registry(
    "method",
    {
        "skipgram": "stillvec.baselines.skipgram:Skipgram",
        "cbow": "stillvec.baselines.cbow:Cbow",
        "fasttext": "stillvec.baselines.fasttext:FastText",
        "glove": "stillvec.baselines.glove:Glove",
        "sent2vec": "stillvec.baselines.sent2vec:Sent2vec",
        "deps": "stillvec.baselines.deps:Deps",
        "syngcn": "stillvec.baselines.syngcn:SynGcn",
        "context_lstm": "stillvec.baselines.context_lstm:ContextLstm",
    },
)

__all__ = ["BASELINES", "Baseline", "Learnt", "Means", "Text", "TrainingStep", "write_text"]
