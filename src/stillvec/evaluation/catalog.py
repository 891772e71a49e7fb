"""The datasets that papers use: what each holds, under which terms, and where its authors publish it.

A table of data: `stillvec datasets` reads it, and nothing else does. A file that is not here is evaluated all the same.
"""

from __future__ import annotations

from typing import NamedTuple


class KnownDataset(NamedTuple):
    name: str  # of the file, without its ending
    task: str
    items: str  # as its authors count them
    source: str
    terms: str
    published: str  # where its authors say how to get it
    files: tuple[str, ...] = ()  # other names it goes by


_UNSAID = "see the authors' page"  # no licence is told that we have not read with the data

KNOWN: tuple[KnownDataset, ...] = (
    KnownDataset("rg65", "similarity", "65 pairs", "Rubenstein & Goodenough 1965", _UNSAID, "the paper's table 1"),
    KnownDataset(
        "ws353",
        "similarity",
        "353 pairs",
        "Finkelstein et al. 2002",
        _UNSAID,
        "WordSimilarity-353, Evgeniy Gabrilovich's page at the Technion",
        ("wordsim353",),
    ),
    KnownDataset(
        "ws353-similarity",
        "similarity",
        "203 pairs",
        "Agirre et al. 2009",
        _UNSAID,
        "WordSim353 - Similarity and Relatedness, alfonseca.org",
    ),
    KnownDataset(
        "ws353-relatedness",
        "similarity",
        "252 pairs",
        "Agirre et al. 2009",
        _UNSAID,
        "WordSim353 - Similarity and Relatedness, alfonseca.org",
    ),
    KnownDataset(
        "simlex999", "similarity", "999 pairs", "Hill et al. 2015", _UNSAID, "SimLex-999, fh295.github.io/simlex.html"
    ),
    KnownDataset(
        "simverb3500",
        "similarity",
        "3,500 pairs",
        "Gerz et al. 2016",
        _UNSAID,
        "SimVerb-3500, Daniela Gerz's page at Cambridge",
    ),
    KnownDataset(
        "rareword",
        "similarity",
        "2,034 pairs",
        "Luong et al. 2013",
        _UNSAID,
        "nlp.stanford.edu/~lmthang/morphoNLM",
        ("rw",),
    ),
    KnownDataset(
        "men3000",
        "similarity",
        "3,000 pairs",
        "Bruni et al. 2014",
        "CC BY 2.0",
        "The MEN Test Collection, Elia Bruni's page",
        ("men",),
    ),
    KnownDataset(
        "google",
        "analogy",
        "19,544 questions",
        "Mikolov et al. 2013",
        _UNSAID,
        "word2vec's questions-words.txt",
        ("questions-words",),
    ),
    KnownDataset(
        "msr",
        "analogy",
        "8,000 questions",
        "Mikolov, Yih & Zweig 2013",
        _UNSAID,
        "Microsoft Research, Syntactic Analogies",
    ),
    KnownDataset(
        "semeval2012",
        "relation",
        "79 relations",
        "Jurgens et al. 2012",
        _UNSAID,
        "SemEval-2012 Task 2",
    ),
    KnownDataset(
        "bats",
        "analogy",
        "40 relations",
        "Gladkova et al. 2016",
        _UNSAID,
        "The Bigger Analogy Test Set, vecto.space",
    ),
    KnownDataset(
        "ap",
        "categorization",
        "402 words, 21 classes",
        "Almuhareb 2006",
        _UNSAID,
        "the author's thesis, University of Essex",
    ),
    KnownDataset(
        "battig", "categorization", "5,231 words, 56 classes", "Battig & Montague 1969", _UNSAID, "the paper's norms"
    ),
    KnownDataset(
        "esslli2008-verbs",
        "categorization",
        "45 verbs, 9 classes",
        "Baroni et al. 2008 (ESSLLI)",
        _UNSAID,
        "wordspace.collocations.de, ESSLLI 2008 shared task",
    ),
    KnownDataset(
        "8-8-8",
        "outliers",
        "8 groups, 64 outliers",
        "Camacho-Collados & Navigli 2016",
        _UNSAID,
        "the authors' page at Sapienza University of Rome",
    ),
    KnownDataset(
        "toefl", "synonyms", "80 questions", "Landauer & Dumais 1997", _UNSAID, "asked for at the LSA group, Colorado"
    ),
    KnownDataset("esl", "synonyms", "50 questions", "Turney 2001", _UNSAID, "asked for at the author"),
    KnownDataset("weat", "bias", "10 tests", "Caliskan et al. 2017", _UNSAID, "word lists in the paper's supplement"),
    KnownDataset(
        "stsb",
        "sentences",
        "1,379 pairs (test)",
        "Cer et al. 2017",
        "CC BY-SA 4.0",
        "STS benchmark, ixa2.si.ehu.eus/stswiki",
    ),
    KnownDataset(
        "mr",
        "classification",
        "10,662 sentences",
        "Pang & Lee 2005",
        _UNSAID,
        "Movie Review Data, Cornell (Pang and Lee)",
    ),
    KnownDataset(
        "cr",
        "classification",
        "3,775 sentences",
        "Hu & Liu 2004",
        _UNSAID,
        "Bing Liu's page, University of Illinois Chicago",
    ),
    KnownDataset("mpqa", "classification", "10,606 phrases", "Wiebe et al. 2005", _UNSAID, "mpqa.cs.pitt.edu"),
    KnownDataset(
        "subj",
        "classification",
        "10,000 sentences",
        "Pang & Lee 2004",
        _UNSAID,
        "Movie Review Data, Cornell (Pang and Lee)",
    ),
    KnownDataset(
        "trec",
        "classification",
        "5,952 questions",
        "Li & Roth 2002",
        _UNSAID,
        "Cognitive Computation Group, QC data",
    ),
    KnownDataset(
        "sst5",
        "classification",
        "11,855 sentences",
        "Socher et al. 2013",
        _UNSAID,
        "nlp.stanford.edu/sentiment",
    ),
    KnownDataset(
        "conll2000",
        "tagging",
        "10,948 sentences",
        "Tjong Kim Sang & Buchholz 2000",
        _UNSAID,
        "CoNLL-2000 shared task, cnts.ua.ac.be/conll2000",
    ),
    KnownDataset(
        "wnut17",
        "tagging",
        "5,690 sentences",
        "Derczynski et al. 2017",
        "CC BY 4.0",
        "W-NUT 2017, noisy-text.github.io/2017",
    ),
    KnownDataset(
        "ud-ewt",
        "tagging",
        "16,622 sentences",
        "Silveira et al. 2014",
        "CC BY-SA 4.0",
        "UD English EWT, universaldependencies.org",
    ),
)


def find_known(name: str) -> KnownDataset | None:
    """What is known of the dataset of a file: `stsb.test` is a part of `stsb`."""
    plain = name.lower()
    for each in KNOWN:
        if any(plain == known or plain.startswith(f"{known}.") for known in (each.name, *each.files)):
            return each
    return None
