"""One space in, one out: a step is a frozen set of settings, called with vectors, and never changes its input."""

from stillvec.refinement import fuzzy_sets
from stillvec.refinement.step_chain import read_step, refine_steps, unknown_steps
from stillvec.refinement.steps import STEPS, Step

__all__ = ["STEPS", "Step", "fuzzy_sets", "read_step", "refine_steps", "unknown_steps"]
