"""Steps that change a teacher before it is distilled: a Hugging Face folder in, a Hugging Face folder out."""

from stillvec.adaptation.adaptation_steps import (
    ADAPTATIONS,
    AdaptationResources,
    AdaptationStep,
    MakesModel,
    describe_adaptation,
)

__all__ = ["ADAPTATIONS", "AdaptationResources", "AdaptationStep", "MakesModel", "describe_adaptation"]
