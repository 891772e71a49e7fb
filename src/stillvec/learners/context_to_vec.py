"""Context-to-Vec (Zheng et al. 2022): the centre is the teacher's state of a word and of the words around it.

    u_i = (1 - a) W1 o_i + a W2 phi(mean of o_k around i)
    l(u_i . sum of v_j around i) + e l(u_i . u_i) + sum over negatives of l(-v' . u_i)

The table of the v is the result; W2 is shared by all positions ("tied contextualised attention"). The middle term only
rewards a long u_i: no row of the table is in it, and it has no effect where W is not trained. The paper's settings are
`settings=zheng-2022`; it names neither optimizer, batch, number and distribution of negatives, epochs, weights of the
losses nor a minimum count, and these are ours. The defaults have a smaller window, train for more epochs, use sentences
of any length and remove common directions at the end. The paper's graph retrofitting is a step of `refine`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.learners.trained_learner import DefaultEpochs
from stillvec.learners.windows import WindowLearner


@dataclass(frozen=True)
class ContextToVec(WindowLearner):
    SUMMARY: ClassVar[str] = "trained by skip-gram with the teacher's states in and around the centre"
    PAPERS: ClassVar[tuple[str, ...]] = ("zheng-2022",)
    RENAMED: ClassVar[Mapping[str, str]] = {
        **WindowLearner.RENAMED,
        "around": "context_weight",
        "squash": "activation",
        "reward": "norm_reward",
    }
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "zheng-2022": {
            "dim": 300,
            "layer": "last",
            "window": 5,
            "pool": "sum",
            "context_weight": 0.5,
            "activation": "none",
            "norm_reward": 1.0,
            "normalize": False,
            "include_center": False,
            "min_length": 10,
            "max_length": 40,
            "epochs": 1,
            "optimizer": "adam",
            "rate": 1e-3,
            "decay": "linear",
            "batch": 128,
            "negatives": 5,
            "shared_negatives": 0,
            "power": 0.75,
            "subsample": 0.0,
            "projection_rate": 1.0,
            "whiten": False,
            "bias": False,
            "start": "random",
            "directions": 0,
        }
    }
    RUN_PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "zheng-2022": {"contexts": None, "min_count": 5, "max_words": 150_000}
    }
    epochs: int = DefaultEpochs(2)  # passes over the stored contexts; 1 with stream=true
    pool: str = "sum"  # how the rows around a centre are pooled: mean, sum, each (scored one by one) or attention
    context_weight: float = 0.5  # a, the weight of the states around the centre; 0: the centre's own state only
    activation: str = "none"  # phi, applied to the mean of the states around: none or tanh
    norm_reward: float = 1.0  # e, the weight of the term that rewards long centres
    normalize: bool = False  # whether the first term is of the cosine, as section 3.3 of the paper offers
