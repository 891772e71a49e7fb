"""Methods: one file each, one paper each."""

from stillvec.learners.accumulators import Learner
from stillvec.learners.encoding_pass import EncodingPass, PassPlan
from stillvec.registry import Registry

LEARNERS: Registry[type[Learner]] = Registry(
    "method",
    {
        "auto": "stillvec.learners.auto:Auto",
        "aggregate": "stillvec.learners.aggregate:Aggregate",
        "first_component": "stillvec.learners.first_component:FirstComponent",
        "decontextualized": "stillvec.learners.decontextualized:Decontextualized",
        "token_table": "stillvec.learners.token_table:TokenTable",
        "whitened_context": "stillvec.learners.whitened_context:WhitenedContext",
        "x2static": "stillvec.learners.x2static:X2Static",
        "attentive_skipgram": "stillvec.learners.attentive_skipgram:AttentiveSkipgram",
        "context_to_vec": "stillvec.learners.context_to_vec:ContextToVec",
        "additive": "stillvec.learners.additive:Additive",
        "dictionary": "stillvec.learners.dictionary:Dictionary",
    },
)

__all__ = ["LEARNERS", "EncodingPass", "Learner", "PassPlan"]
