"""Datasets used in papers: their size, source, licence and where to get them.

Only `stillvec datasets` reads this table. Files that are not in it are evaluated as well.
"""

from collections.abc import Iterator
from typing import NamedTuple


class KnownDataset(NamedTuple):
    name: str  # of the file, without its ending
    task: str
    items: str  # as its authors count them
    source: str
    terms: str
    published: str  # where its authors say how to get it
    files: tuple[str, ...] = ()  # other names of the file


# [task], then lines: names | items | source | published | terms. Only a licence that we have read is stated.
_TABLE = """
[similarity]
rg65 | 65 pairs | Rubenstein & Goodenough 1965 | the paper's table 1
ws353 wordsim353 | 353 pairs | Finkelstein et al. 2002 | WordSimilarity-353, Evgeniy Gabrilovich's page at the Technion
ws353-similarity | 203 pairs | Agirre et al. 2009 | WordSim353 - Similarity and Relatedness, alfonseca.org
ws353-relatedness | 252 pairs | Agirre et al. 2009 | WordSim353 - Similarity and Relatedness, alfonseca.org
simlex999 | 999 pairs | Hill et al. 2015 | SimLex-999, fh295.github.io/simlex.html
simverb3500 | 3,500 pairs | Gerz et al. 2016 | SimVerb-3500, Daniela Gerz's page at Cambridge
rareword rw | 2,034 pairs | Luong et al. 2013 | nlp.stanford.edu/~lmthang/morphoNLM
men3000 men | 3,000 pairs | Bruni et al. 2014 | The MEN Test Collection, Elia Bruni's page | CC BY 2.0
[analogy]
google questions-words | 19,544 questions | Mikolov et al. 2013 | word2vec's questions-words.txt
msr | 8,000 questions | Mikolov, Yih & Zweig 2013 | Microsoft Research, Syntactic Analogies
bats | 40 relations | Gladkova et al. 2016 | The Bigger Analogy Test Set, vecto.space
[relation]
semeval2012 | 79 relations | Jurgens et al. 2012 | SemEval-2012 Task 2
[categorization]
ap | 402 words, 21 classes | Almuhareb 2006 | the author's thesis, University of Essex
battig | 5,231 words, 56 classes | Battig & Montague 1969 | the paper's norms
esslli2008-verbs | 45 verbs, 9 classes | Baroni et al. 2008 | ESSLLI 2008 shared task, wordspace.collocations.de
[outliers]
8-8-8 | 8 groups, 64 outliers | Camacho-Collados & Navigli 2016 | the authors' page at Sapienza University of Rome
[synonyms]
toefl | 80 questions | Landauer & Dumais 1997 | on request from the LSA group, Colorado
esl | 50 questions | Turney 2001 | on request from the author
[bias]
weat | 10 tests | Caliskan et al. 2017 | word lists in the paper's supplement
[sentences]
stsb | 1,379 pairs (test) | Cer et al. 2017 | STS benchmark, ixa2.si.ehu.eus/stswiki | CC BY-SA 4.0
[classification]
mr | 10,662 sentences | Pang & Lee 2005 | Movie Review Data, Cornell (Pang and Lee)
cr | 3,775 sentences | Hu & Liu 2004 | Bing Liu's page, University of Illinois Chicago
mpqa | 10,606 phrases | Wiebe et al. 2005 | mpqa.cs.pitt.edu
subj | 10,000 sentences | Pang & Lee 2004 | Movie Review Data, Cornell (Pang and Lee)
trec | 5,952 questions | Li & Roth 2002 | Cognitive Computation Group, QC data
sst5 | 11,855 sentences | Socher et al. 2013 | nlp.stanford.edu/sentiment
[tagging]
conll2000 | 10,948 sentences | Tjong Kim Sang & Buchholz 2000 | CoNLL-2000 shared task, cnts.ua.ac.be/conll2000
wnut17 | 5,690 sentences | Derczynski et al. 2017 | W-NUT 2017, noisy-text.github.io/2017 | CC BY 4.0
ud-ewt | 16,622 sentences | Silveira et al. 2014 | UD English EWT, universaldependencies.org | CC BY-SA 4.0
"""


def _parse_table(text: str) -> Iterator[KnownDataset]:
    task = ""
    for line in text.strip().splitlines():
        if line.startswith("["):
            task = line[1:-1]
            continue
        names, items, source, published, *terms = line.split(" | ")
        name, *files = names.split()
        licence = terms[0] if terms else "see the authors' page"
        yield KnownDataset(name, task, items, source, licence, published, tuple(files))


KNOWN = tuple(_parse_table(_TABLE))


def find_known(name: str) -> KnownDataset | None:
    """The entry for the dataset of a file; `stsb.test` is a part of `stsb`."""
    plain = name.lower()
    for dataset in KNOWN:
        if any(plain == known or plain.startswith(f"{known}.") for known in (dataset.name, *dataset.files)):
            return dataset
    return None
