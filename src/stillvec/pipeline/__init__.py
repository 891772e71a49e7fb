"""A whole run: settings, the run itself, its manifest; recipes in TOML; results merged."""

from stillvec.pipeline.attending import Attention, attention
from stillvec.pipeline.distilling import Run, distill
from stillvec.pipeline.merging import merge_results
from stillvec.pipeline.recipe import read_recipe
from stillvec.pipeline.results import Distilled, Step
from stillvec.pipeline.settings import Distillation
from stillvec.pipeline.training import Training, TrainingRun, train

__all__ = [
    "Attention",
    "Distillation",
    "Distilled",
    "Run",
    "Step",
    "Training",
    "TrainingRun",
    "attention",
    "distill",
    "merge_results",
    "read_recipe",
    "train",
]
