"""Methods: one file each, one paper each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stillvec.registry import Registry, import_attribute

if TYPE_CHECKING:
    from stillvec.learners.accumulators import Learner
    from stillvec.learners.encoding_pass import EncodingPass, PassPlan

_LAZY = {  # imported on first use: names and defaults of methods can be listed without torch
    "EncodingPass": "stillvec.learners.encoding_pass",
    "Learner": "stillvec.learners.accumulators",
    "PassPlan": "stillvec.learners.encoding_pass",
}

LEARNERS: Registry[type[Learner]] = Registry(
    "method",
    {
        "auto": "stillvec.learners.auto:Auto",
        "aggregate": "stillvec.learners.aggregate:Aggregate",
        "first_component": "stillvec.learners.first_component:FirstComponent",
        "senses": "stillvec.learners.senses:Senses",
        "decontextualized": "stillvec.learners.decontextualized:Decontextualized",
        "token_table": "stillvec.learners.token_table:TokenTable",
        "whitened_context": "stillvec.learners.whitened_context:WhitenedContext",
        "whitened_window": "stillvec.learners.whitened_window:WhitenedWindow",
        "x2static": "stillvec.learners.x2static:X2Static",
        "attentive_skipgram": "stillvec.learners.attentive_skipgram:AttentiveSkipgram",
        "context_to_vec": "stillvec.learners.context_to_vec:ContextToVec",
        "additive": "stillvec.learners.additive:Additive",
        "dictionary": "stillvec.learners.dictionary:Dictionary",
    },
)

__all__ = ["LEARNERS", "EncodingPass", "Learner", "PassPlan"]


def __getattr__(name: str) -> Any:
    return import_attribute(__name__, name, _LAZY)
