"""Context-to-Vec (Zheng et al. 2022): the centre is the teacher's state of a word and of the words around it.

    u_i = (1 - a) W1 o_i + a W2 phi(mean of o_k around i)
    e1 l(u_i . sum of v_j around i) + e2 l(u_i . u_i) + e3 sum over negatives of l(-v' . u_i)

The table of the v is the result; W2 is shared by all places ("tied contextualised attention"). The middle term, as
printed, only rewards a long u_i: it has no row of the table in it, and where W is not trained no effect at all, so its
weight `reward` is 0 by default. The paper's settings are `settings=zheng-2022`; what the defaults change, and what each
change gave, stands in docs/results.md. The paper's graph retrofitting is a step of `refine`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.learners.window_learner import WindowLearner


@dataclass(frozen=True)
class ContextToVec(WindowLearner):
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "zheng-2022": {
            "window": 5,
            "pool": "sum",
            "reward": 1.0,
            "rate": 1e-3,
            "batch": 128,
            "own": False,
            "shared": 0,
            "projection_rate": 1.0,
            "whiten": False,
            "bias": False,
            "start": "random",
            "directions": 0,
        }
    }
    around: float = 0.5  # a, the share of the words around in the centre
    squash: str = "none"  # phi: none or tanh
    reward: float = 0.0  # e2, where e1 and e3 are 1
