"""How good vectors are: one task family, one file; every score with its coverage and its interval."""

from stillvec.evaluation.evaluation_report import Comparison, Detail, Overlap, PolicyRanking, Report, Score
from stillvec.evaluation.evaluation_run import Evaluation, evaluate
from stillvec.evaluation.means import Difference, paired_difference
from stillvec.evaluation.tasks import TASKS

__all__ = [
    "TASKS",
    "Comparison",
    "Detail",
    "Difference",
    "Evaluation",
    "Overlap",
    "PolicyRanking",
    "Report",
    "Score",
    "evaluate",
    "paired_difference",
]
