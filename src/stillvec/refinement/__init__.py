"""Refinement steps: frozen dataclasses, called with vectors, that return new ones and never change their input."""

from stillvec.refinement import fuzzy_sets
from stillvec.refinement.step_chain import read_step, refine_steps, unknown_steps
from stillvec.refinement.steps import STEPS, Step

__all__ = ["STEPS", "Step", "fuzzy_sets", "read_step", "refine_steps", "unknown_steps"]
