"""Which teacher fits which text: what a tokenizer makes of texts in several languages."""

import os
from collections.abc import Mapping

from stillvec.corpus import Corpus
from stillvec.errors import CorpusError
from stillvec.input_checks import check_arguments
from stillvec.teachers import load_tokenizer
from stillvec.teachers.text_fit import TextFit, measure_fit
from stillvec.vocabulary.segmenters import choose_segmenter, require_segmenters

_CHARACTERS = 1_000_000  # of each text


def measure_texts(
    teacher: str, texts: Mapping[str, str | os.PathLike[str]], *, field: str | None = None
) -> dict[str, TextFit]:
    """What the tokenizer of a teacher makes of the words of texts, by name.

    Parameters
    ----------
    teacher: a folder, a name on the Hugging Face Hub or a packaged teacher.
    texts: a file or folder by name; words of scripts without spaces are segmented.
    field: the field of JSON lines or Parquet that contains the text (default: "text").
    """
    check_arguments(measure_texts, locals())
    corpora = {name: Corpus(path, field=field) for name, path in texts.items()}
    tokenizer = load_tokenizer(teacher)
    fits = {}
    for name, corpus in corpora.items():
        sample = corpus.sample(_CHARACTERS)
        segmenter = choose_segmenter(sample)
        require_segmenters(segmenter)
        fits[name] = measure_fit(tokenizer, sample, segmenter)
        if not fits[name].n_words:
            raise CorpusError(f"The text has no words: {os.fspath(texts[name])}.", path=texts[name])
    return fits
