"""Refinement steps: frozen dataclasses, called with vectors, that return new ones and never change their input."""

from stillvec.refinement import fuzzy_sets
from stillvec.refinement.steps import STEPS, Step, describe_step, read_step, refine_steps, unknown_steps

__all__ = ["STEPS", "Step", "describe_step", "fuzzy_sets", "read_step", "refine_steps", "unknown_steps"]
