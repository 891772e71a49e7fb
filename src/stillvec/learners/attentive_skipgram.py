"""Attentive skip-gram (Wang, Cui & Zhang 2020): the teacher's state of a word attends to the words around it.

    u_i = W o_i      a_j = softmax over the window of u_i . v_j      v = sum of a_j v_j
    l(v . u_i) + sum over negatives of l(-v' . u_i),   l(x) = log(1 + e^-x)

The table of the v is the result; a word is never in its own window. The paper's settings are `settings=wang-2020`:
gradient descent at 0.025, clipped at norm 5. The paper names no batch. The preset has 16 sentences, for speed; the
gradient of their summed loss is clipped, so that a step is shorter than 16 steps of one sentence each. One epoch,
linear decay and the start (word2vec's for the table, uniform for W) are ours, too. The defaults are what the
development sets chose (docs/papers/attentive-skipgram.md): Adam, a window of 2, attention scaled down, so that it does
not follow its first random choices, sentences of any length, and common directions removed at the end. `pool=sum` is
the paper's figure 5 without attention, `window` its figure 4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from stillvec.learners.trained_learner import DefaultEpochs
from stillvec.learners.windows import WindowLearner


@dataclass(frozen=True)
class AttentiveSkipgram(WindowLearner):
    SUMMARY: ClassVar[str] = "trained by skip-gram with the teacher's states as centres"
    PAPERS: ClassVar[tuple[str, ...]] = ("wang-2020",)
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {
        "wang-2020": {
            "dim": 300,
            "layer": "last",
            "window": 5,
            "pool": "attention",
            "attention": 1.0,
            "include_center": False,
            "min_length": 10,
            "max_length": 40,
            "epochs": 1,
            "optimizer": "sgd",
            "rate": 0.025,
            "decay": "linear",
            "clip": 5.0,
            "batch": 16,
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
    RUN_PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {"wang-2020": {"contexts": None, "min_count": 5}}
    epochs: int = DefaultEpochs(2)  # passes over the stored contexts; 1 with stream=true
    attention: float = 0.03  # factor of the attention scores, with pool=attention
    pool: str = "attention"  # how the rows around a centre are pooled: mean, sum, each (one by one) or attention
