"""The phases of long work: the words shown to people, and the activity that each belongs to when time is summed up."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """A phase as it is shown; `activity` is its name in the sum of where the time went."""

    activity: str

    def __new__(cls, words: str, activity: str) -> Phase:
        phase = str.__new__(cls, words)
        phase._value_ = words
        phase.activity = activity
        return phase

    STARTING = "starting", "starting"
    LOADING = "loading the teacher", "loading"
    COUNTING = "counting words", "counting"
    PHRASES = "finding phrases", "counting"
    WORKERS = "starting the workers", "loading"
    CORPUS = "reading the corpus", "reading"
    PARAGRAPHS = "reading whole paragraphs", "reading"
    ISOLATED = "reading words without a context", "reading"
    TEMPLATES = "reading words in templates", "templates"
    GLOSSES = "reading dictionary definitions", "templates"
    TOKENS = "reading words", "templates"
    OTHER_TEXTS = "reading other texts", "templates"
    MERGING = "merging statistics", "merging"
    ENCODING = "encoding sentences", "encoding"
    PARSING = "parsing sentences", "parsing"
    TRAINING = "training", "training"
    COMPUTING = "computing vectors", "computing"
    WRITING = "writing", "writing"
    SAMPLING = "reading a sample", "sampling"
    EVALUATING = "evaluating", "evaluating"
    FINISHED = "finished", "finished"
