"""The bibliography, and summaries of the methods that cannot be imported without torch.

Refinement steps and combiners have `SUMMARY` and `PAPERS` on their classes; a test compares `METHODS` with the classes.
"""

PAPERS = {
    "arora-2017": "Arora, Liang and Ma (2017). A Simple but Tough-to-Beat Baseline for Sentence Embeddings. ICLR.",
    "artetxe-2018": "Artetxe, Labaka, Lopez-Gazpio and Agirre (2018). Uncovering Divergent Linguistic Information "
    "in Word Embeddings with Lessons for Intrinsic and Extrinsic Evaluation. CoNLL.",
    "artetxe-2018-align": "Artetxe, Labaka and Agirre (2018). A Robust Self-Learning Method for Fully Unsupervised "
    "Cross-Lingual Mappings of Word Embeddings. ACL.",
    "bhat-2020": "Bhat, Debnath, Banerjee and Shrivastava (2020). Word Embeddings as Tuples of Feature "
    "Probabilities. RepL4NLP.",
    "bojanowski-2017": "Bojanowski, Grave, Joulin and Mikolov (2017). Enriching Word Vectors with Subword "
    "Information. TACL.",
    "bommasani-2020": "Bommasani, Davis and Cardie (2020). Interpreting Pretrained Contextualized Representations "
    "via Reductions to Static Embeddings. ACL.",
    "coates-2018": "Coates and Bollegala (2018). Frustratingly Easy Meta-Embedding: Computing Meta-Embeddings by "
    "Averaging Source Word Embeddings. NAACL.",
    "ethayarajh-2019": "Ethayarajh (2019). How Contextual are Contextualized Word Representations? Comparing the "
    "Geometry of BERT, ELMo, and GPT-2 Embeddings. EMNLP.",
    "faruqui-2015": "Faruqui, Dodge, Jauhar, Dyer, Hovy and Smith (2015). Retrofitting Word Vectors to Semantic "
    "Lexicons. NAACL.",
    "gordon-2020": "Gordon, Duh and Andrews (2020). Compressing BERT: Studying the Effects of Weight Pruning on "
    "Transfer Learning. RepL4NLP.",
    "gupta-jaggi-2021": "Gupta and Jaggi (2021). Obtaining Better Static Word Embeddings Using Contextual Embedding "
    "Models. ACL.",
    "jawanpuria-2020": "Jawanpuria, Dev, Kunchukuttan and Mishra (2020). Learning Geometric Word Meta-Embeddings. "
    "RepL4NLP.",
    "jegou-2011": "Jégou, Douze and Schmid (2011). Product Quantization for Nearest Neighbor Search. IEEE TPAMI.",
    "levy-2014": "Levy and Goldberg (2014). Dependency-Based Word Embeddings. ACL.",
    "melamud-2016": "Melamud, Goldberger and Dagan (2016). context2vec: Learning Generic Context Embedding with "
    "Bidirectional LSTM. CoNLL.",
    "mikolov-2013": "Mikolov, Sutskever, Chen, Corrado and Dean (2013). Distributed Representations of Words and "
    "Phrases and their Compositionality. NIPS.",
    "mu-2018": "Mu and Viswanath (2018). All-but-the-Top: Simple and Effective Postprocessing for Word "
    "Representations. ICLR.",
    "pagliardini-2018": "Pagliardini, Gupta and Jaggi (2018). Unsupervised Learning of Sentence Embeddings using "
    "Compositional n-Gram Features. NAACL.",
    "pennington-2014": "Pennington, Socher and Manning (2014). GloVe: Global Vectors for Word Representation. EMNLP.",
    "rastogi-2015": "Rastogi, Van Durme and Arora (2015). Multiview LSA: Representation Learning via Generalized "
    "CCA. NAACL.",
    "vashishth-2019": "Vashishth, Bhandari, Yadav, Rai, Bhattacharyya and Talukdar (2019). Incorporating Syntactic "
    "and Semantic Information in Word Embeddings using Graph Convolutional Networks. ACL.",
    "volpi-2020": "Volpi and Malagò (2020). Evaluating Natural Alpha Embeddings on Intrinsic and Extrinsic Tasks. "
    "RepL4NLP.",
    "vulic-2020": "Vulić, Korhonen and Glavaš (2020). Improving Bilingual Lexicon Induction with Unsupervised Post- "
    "Processing of Monolingual Word Vector Spaces. RepL4NLP.",
    "wang-2020": "Wang, Cui and Zhang (2020). Using Dynamic Embeddings to Improve Static Embeddings. arXiv:1911.02929.",
    "yin-2016": "Yin and Schütze (2016). Learning Word Meta-Embeddings. ACL.",
    "yokoi-2024": "Yokoi, Bao, Kurita and Shimodaira (2024). Zipfian Whitening. NeurIPS.",
    "zhao-2018": "Zhao, Mudgal and Liang (2018). Generalizing Word Embeddings using Bag of Subwords. EMNLP.",
    "zheng-2022": "Zheng, Wang, Wang, Xia, Huang, Zhao, Zhang and Li (2022). Using Context-to-Vector with Graph "
    "Retrofitting to Improve Word Embeddings. ACL.",
}

METHODS: dict[str, tuple[str, tuple[str, ...]]] = {  # "A word's vector is ...", and the papers
    "auto": ("computed from its states in its contexts, in templates and in sentences", ("bommasani-2020",)),
    "aggregate": ("the pool of the teacher's states of it over its contexts", ("bommasani-2020",)),
    "first_component": ("the first principal component of its states in some contexts", ("ethayarajh-2019",)),
    "decontextualized": ("the teacher's output for it alone, bare or in templates", ("zheng-2022",)),
    "token_table": ("the mean of the teacher's input embeddings of its subword tokens", ("zheng-2022",)),
    "whitened_context": ("the mean of the sentences it occurs in, whitened", ("gupta-jaggi-2021",)),
    "x2static": ("trained to predict the contexts it occurs in", ("gupta-jaggi-2021",)),
    "attentive_skipgram": ("trained by skip-gram with the teacher's states as centres", ("wang-2020",)),
    "context_to_vec": ("trained by skip-gram with the teacher's states in and around the centre", ("zheng-2022",)),
    "additive": ("fitted so that weighted sums of words give sentence vectors", ()),
    "dictionary": ("the mean of the teacher's output over its dictionary glosses", ()),
    # baselines
    "skipgram": ("trained to predict the words around it (no teacher)", ("mikolov-2013",)),
    "cbow": ("trained to predict a word from those around it (no teacher)", ("mikolov-2013",)),
    "fasttext": ("trained as skip-gram, with its character n-grams (no teacher)", ("bojanowski-2017",)),
    "glove": ("trained on co-occurrence counts (no teacher)", ("pennington-2014",)),
    "sent2vec": ("trained to predict the other words of its sentence (no teacher)", ("pagliardini-2018",)),
    "context_lstm": ("trained with two LSTMs that read left and right of it (no teacher)", ("melamud-2016",)),
    "deps": ("trained on its heads and modifiers in parses (no teacher)", ("levy-2014",)),
    "syngcn": ("trained by a graph convolution over parses (no teacher)", ("vashishth-2019",)),
}  # fmt: skip
