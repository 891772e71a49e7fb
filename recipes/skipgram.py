"""Skip-gram and CBOW by gensim on the same text and the same words, for the tables: out/skipgram/NAME-EPOCHS.bin

    STILLVEC_DATA=... python recipes/skipgram.py [--corpus FILE...] [--out DIR] [--epochs 5 15] [--workers N]

Words and sentences are those the teacher gets, all of them; they stay in DIR/sentences.txt for another call. Epochs
are to be chosen on the development sets; the rest is what Levy & Goldberg (2015) found to be good.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gensim.models import Word2Vec

from stillvec.corpus import Corpus
from stillvec.pipeline.baseline import as_words
from stillvec.pipeline.reading import Count, chunked
from stillvec.vocabulary import Vocabulary, WordCounter


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--out", default="out/skipgram")
    parser.add_argument("--methods", nargs="+", default=["cbow", "skipgram"])
    parser.add_argument("--epochs", type=int, nargs="+", default=[5, 15])
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    files = options.corpus or sorted(map(str, Path(os.environ["STILLVEC_DATA"], "corpora").glob("*.txt.xz")))
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    text = out / "sentences.txt"
    if not text.exists():
        _write_sentences(files, text)
    for epochs in options.epochs:
        for name in options.methods:
            model = Word2Vec(
                corpus_file=str(text), sg=int(name == "skipgram"), vector_size=300, window=5, min_count=1,
                negative=5, sample=1e-4, epochs=epochs, workers=options.workers, seed=0,
            )  # fmt: skip
            model.wv.save_word2vec_format(str(out / f"{name}-{epochs}.bin"), binary=True)
            print(f"{name}, {epochs} epochs: {len(model.wv):,} words", flush=True)


def _write_sentences(files: list[str], text: Path) -> None:
    """A sentence a line, its known words parted by blanks: what gensim reads with many threads."""
    count = Count(Corpus(*files), WordCounter())
    for _ in count.steps():
        pass
    vocabulary = Vocabulary.build(count.counter.counts(), min_count=2)
    with text.open("w", encoding="utf-8") as stream:
        for chunk in chunked(Corpus(*files).sentences(), 20_000):
            stream.writelines(" ".join(words) + "\n" for words in as_words(chunk, vocabulary))


if __name__ == "__main__":
    main()
