"""A whole run: settings, the run itself, its manifest; recipes in TOML; results merged."""

from stillvec.pipeline.distillation import distill
from stillvec.pipeline.distillation_run import Run
from stillvec.pipeline.recipe import read_recipe
from stillvec.pipeline.result_merge import merge_results
from stillvec.pipeline.sentence_attention import Attention, attention
from stillvec.pipeline.settings import Distillation
from stillvec.pipeline.training_run import Training, TrainingRun, train
from stillvec.progress import Progress

__all__ = [
    "Attention",
    "Distillation",
    "Progress",
    "Run",
    "Training",
    "TrainingRun",
    "attention",
    "distill",
    "merge_results",
    "read_recipe",
    "train",
]
