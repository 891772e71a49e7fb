"""Contextual models: text in, the states of its pieces out, and which pieces make which word."""

from stillvec.teachers.aligning import align
from stillvec.teachers.loading import load_teacher
from stillvec.teachers.pieces import PieceCutter, Pieces
from stillvec.teachers.teacher import Teacher

__all__ = ["PieceCutter", "Pieces", "Teacher", "align", "load_teacher"]
