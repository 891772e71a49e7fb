"""How good vectors are: one task per file; every score with its coverage and its interval."""

from stillvec.evaluation.evaluation_report import (
    Comparison,
    Detail,
    NeighbourOverlap,
    OovPolicy,
    PolicyRanking,
    Report,
    Score,
)
from stillvec.evaluation.evaluation_run import Evaluation, evaluate
from stillvec.evaluation.label_probes import LabelProbe, ProbeAgreement
from stillvec.evaluation.means import Difference, mean_difference
from stillvec.evaluation.tasks import TASKS, CostlyTask, Task

__all__ = [
    "TASKS",
    "Comparison",
    "CostlyTask",
    "Detail",
    "Difference",
    "Evaluation",
    "LabelProbe",
    "NeighbourOverlap",
    "OovPolicy",
    "PolicyRanking",
    "ProbeAgreement",
    "Report",
    "Score",
    "Task",
    "evaluate",
    "mean_difference",
]
