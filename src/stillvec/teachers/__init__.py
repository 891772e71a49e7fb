"""Contextual models: text in, states of its subword tokens out, and which tokens make up which word."""

from stillvec.teachers.alignment import align
from stillvec.teachers.loader import load_teacher
from stillvec.teachers.subword_tokenizer import SubwordTokenizer, SubwordTokens
from stillvec.teachers.teacher import Teacher

__all__ = ["SubwordTokenizer", "SubwordTokens", "Teacher", "align", "load_teacher"]
