"""Small models on a representation: those that `fit` keeps and `evaluate` trains and judges."""

from stillvec.heads.canonical_names import CanonicalNames
from stillvec.heads.head_kind import HeadKind
from stillvec.registry import Registry

__all__ = ["HEADS", "CanonicalNames", "HeadKind"]

HEADS: Registry[type[HeadKind]] = Registry(
    "head",
    {
        "linear": "stillvec.heads.linear_head:Linear",
        "cnn": "stillvec.heads.cnn_head:Cnn",
        "attention": "stillvec.heads.attention_head:AttentionHead",
        "knn": "stillvec.heads.knn_head:Knn",
        "tagger": "stillvec.heads.tagger_head:Tagger",
        "pair": "stillvec.heads.pair_head:PairHead",
        "span": "stillvec.heads.span_head:SpanHead",
        "primitives": "stillvec.heads.primitives_head:Primitives",
    },
)
