"""Runs: settings, the runs themselves, their manifests, merged results. Imported on first use (torch)."""

from typing import TYPE_CHECKING, Any

from stillvec.registry import import_attribute

if TYPE_CHECKING:
    from stillvec.pipeline.distillation_run import Run
    from stillvec.pipeline.plan import Plan
    from stillvec.pipeline.result_merge import merge_results
    from stillvec.pipeline.sentence_attention import Attention, attention
    from stillvec.pipeline.settings import Distillation, Training
    from stillvec.pipeline.training_run import TrainingRun

_LAZY = {
    "Attention": "stillvec.pipeline.sentence_attention",
    "Distillation": "stillvec.pipeline.settings",
    "Plan": "stillvec.pipeline.plan",
    "Run": "stillvec.pipeline.distillation_run",
    "Training": "stillvec.pipeline.settings",
    "TrainingRun": "stillvec.pipeline.training_run",
    "attention": "stillvec.pipeline.sentence_attention",
    "merge_results": "stillvec.pipeline.result_merge",
}

__all__ = ["Attention", "Distillation", "Plan", "Run", "Training", "TrainingRun", "attention", "merge_results"]


def __getattr__(name: str) -> Any:
    return import_attribute(__name__, name, _LAZY)
