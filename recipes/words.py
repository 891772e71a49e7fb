"""Write out/words.txt: words of the similarity and sentence datasets that occur five times, and 3,000 others.

    STILLVEC_DATA=... python recipes/words.py

A vocabulary that is small enough to evaluate a teacher on a CPU: `recipes/minilm-small.toml` uses just these words. A
script because no command draws words.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from scores import corpus_files, data_folder

from stillvec.corpus import Corpus
from stillvec.pipeline.count_pool import count_corpus
from stillvec.pipeline.settings import Training
from stillvec.progress import drain

data = data_folder()
wanted: set[str] = set()
for file in sorted((data / "similarity").glob("*.tsv")):
    for line in file.read_text(encoding="utf-8").splitlines():
        wanted.update(word.lower() for word in line.split("\t")[:2])
for file in (data / "sentences" / "stsb.dev.csv", data / "sentences" / "stsb.test.csv"):
    wanted.update(re.findall(r"\w+", file.read_text(encoding="utf-8").lower()))

vocabulary, _ = drain(count_corpus(Corpus(*corpus_files()), Training(min_count=5)))
rows = [vocabulary.index[word] for word in wanted if word in vocabulary.index]
others = np.setdiff1d(np.arange(len(vocabulary)), rows)
rows = sorted([*rows, *np.random.default_rng(0).choice(others, 3000, replace=False).tolist()])
Path("out").mkdir(exist_ok=True)
Path("out/words.txt").write_text("".join(vocabulary.words[row] + "\n" for row in rows), encoding="utf-8")
print(f"out/words.txt: {len(rows):,} of {len(vocabulary):,} words")
