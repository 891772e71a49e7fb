"""Contextual models: text in, the states of its pieces out, and which pieces make which word."""

from stillvec.teachers.alignment import align
from stillvec.teachers.loader import load_teacher
from stillvec.teachers.subword_tokenizer import Pieces, SubwordTokenizer
from stillvec.teachers.teacher import Teacher

__all__ = ["Pieces", "SubwordTokenizer", "Teacher", "align", "load_teacher"]
