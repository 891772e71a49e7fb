"""Teachers for tests: the architecture and kind of tokenizer of each family, random weights, no download.

`tiny_teacher` takes milliseconds and stays in memory; `write_tiny_model` writes a folder as the hub has it, so that
loading is tested too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from stillvec.errors import suggest
from stillvec.registry import require
from stillvec.teachers.loader import build_teacher, silence_transformers
from stillvec.teachers.teacher import Teacher

TEXT = (  # the words that every tiny tokenizer knows, besides letters or bytes
    "the house stands by the sea and the dog sleeps in the sun",
    "he reads a good book about old houses and new words",
    "in 1999 the price was 3 dollars a piece don't you know",
)
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;:!?'\"()[]<>/|_-"
SPREAD = 0.3  # standard deviation of the weights: enough that a state depends on all of its context


def _word_pieces(words: Sequence[str], specials: Sequence[str]) -> Tokenizer:
    """As BERT, uncased: known words are single tokens, others are split into letters."""
    letters = [letter for letter in LETTERS if letter == letter.lower()]
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *(word.lower() for word in words)]
    table = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(table, unk_token=next(s for s in specials if "unk" in s.lower())))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _bytes(words: Sequence[str], specials: Sequence[str]) -> Tokenizer:
    """As GPT-2: byte pairs, cased, a space belongs to the word after it."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=len(specials) + 256 + 6 * len(words),
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([f" {word}" for word in words for _ in range(2)], trainer)
    return tokenizer


def _sentence_pieces(words: Sequence[str], specials: Sequence[str]) -> Tokenizer:
    """As SentencePiece's unigram model. Not trained, because the trainer breaks ties at random."""
    known = {f"▁{word}": -5.0 for word in words} | dict.fromkeys([*LETTERS, "é", "ï"], -9.0)
    scores = dict.fromkeys(specials, 0.0) | {"▁": -4.0} | {word: s for word, s in known.items() if word not in specials}
    unknown = next(row for row, special in enumerate(specials) if "unk" in special)
    tokenizer = Tokenizer(models.Unigram([*scores.items()], unk_id=unknown))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


@dataclass(frozen=True)
class _Family:
    """How a family differs: its tokenizer, special tokens, template and the names of its sizes."""

    build_tokenizer: Callable[[Sequence[str], Sequence[str]], Tokenizer]
    specials: Mapping[str, str]  # role → token, in the order of their ids
    around: str = "$A"  # [CLS] $A [SEP]
    kind: str = ""  # model_type of transformers, if it is not the family's name
    positions: str = "max_position_embeddings"  # the setting that limits the length; empty: the tokenizer limits it
    skipped: int = 0  # positions that are not used
    settings: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: str = "TokenizersBackend"  # the class that tokenizer_config.json names


_BERT = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
_ROBERTA = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_ROBERTA |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}
_LLAMA = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
_XLNET = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "cls_token": "<cls>", "sep_token": "<sep>"}
_XLNET |= {"pad_token": "<pad>", "mask_token": "<mask>"}
_FEW_HEADS = {"num_key_value_heads": 1}
_BART = dict.fromkeys(["encoder_attention_heads", "decoder_attention_heads"], 2)
_BART |= dict.fromkeys(["encoder_ffn_dim", "decoder_ffn_dim"], 32)

FAMILIES: Mapping[str, _Family] = {
    "bert": _Family(_word_pieces, _BERT, "[CLS] $A [SEP]", tokenizer="BertTokenizer"),
    "distilbert": _Family(
        _word_pieces, _BERT, "[CLS] $A [SEP]", settings={"hidden_dim": 32}, tokenizer="DistilBertTokenizer"
    ),
    "electra": _Family(
        _word_pieces, _BERT, "[CLS] $A [SEP]", settings={"embedding_size": 8}, tokenizer="ElectraTokenizer"
    ),
    "mpnet": _Family(_word_pieces, _ROBERTA, "<s> $A </s>", skipped=2, tokenizer="MPNetTokenizer"),
    "roberta": _Family(_bytes, _ROBERTA, "<s> $A </s>", skipped=2, tokenizer="RobertaTokenizer"),
    "modernbert": _Family(_bytes, _BERT, "[CLS] $A [SEP]", settings={"local_attention": 8}),
    "bart": _Family(_bytes, _ROBERTA, "<s> $A </s>", settings=_BART, tokenizer="BartTokenizer"),
    "gpt2": _Family(_bytes, {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}, tokenizer="GPT2Tokenizer"),
    "llama3": _Family(
        _bytes,
        {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
        "<|begin_of_text|> $A",
        kind="llama",
        settings=_FEW_HEADS,
    ),
    "qwen2": _Family(
        _bytes,
        {"eos_token": "<|endoftext|>", "pad_token": "<|endoftext|>"},
        settings=_FEW_HEADS,
        tokenizer="Qwen2Tokenizer",
    ),
    "llama": _Family(_sentence_pieces, _LLAMA, "<s> $A", settings=_FEW_HEADS),
    "albert": _Family(
        _sentence_pieces, _XLNET, "<cls> $A <sep>", settings={"embedding_size": 8}, tokenizer="AlbertTokenizer"
    ),
    "xlnet": _Family(
        _sentence_pieces,
        _XLNET,
        "$A:0 <sep>:0 <cls>:2",
        positions="",
        settings={"d_inner": 32},
        tokenizer="XLNetTokenizer",
    ),
    "t5": _Family(
        _sentence_pieces,
        {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"},
        "$A </s>",
        positions="n_positions",
        settings={"d_ff": 32, "d_kv": 8},
        tokenizer="T5Tokenizer",
    ),
}


def tiny_teacher(
    words: Sequence[str] = (), *, family: str = "bert", dim: int = 16, depth: int = 2, window: int = 64, seed: int = 0
) -> Teacher:
    """A teacher in memory; `words` become single tokens if its kind of tokenizer has whole words."""
    model, tokenizer = _tiny(words, family, {"hidden_size": dim, "num_hidden_layers": depth}, window, seed)
    return build_teacher(model, tokenizer, f"tiny-{family}", torch.device("cpu"), "fp32")


def write_tiny_model(folder: str | Path, family: str, *, window: int = 64, seed: int = 0) -> None:
    """A model's folder: config.json, model.safetensors, tokenizer.json, tokenizer_config.json."""
    model, tokenizer = _tiny((), family, {"hidden_size": 16, "num_hidden_layers": 2}, window, seed)
    with silence_transformers():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = Path(folder) / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(settings | {"tokenizer_class": FAMILIES[family].tokenizer}), encoding="utf-8")


def write_tiny_character_lstm(folder: str | Path, *, seed: int = 0) -> None:
    """A folder of character models: config.json, forward.safetensors, backward.safetensors."""
    characters = ["<unk>", " ", "\n", *LETTERS, "é", "ü", "’"]
    config = {"characters": characters, "unknown": 0, "start": "\n"}
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
    random = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (len(characters), 5)}
    shapes |= {"lstm.weight_ih_l0": (32, 5), "lstm.weight_hh_l0": (32, 8)}
    shapes |= {"lstm.bias_ih_l0": (32,), "lstm.bias_hh_l0": (32,), "decoder.weight": (len(characters), 8)}
    for direction in ("forward", "backward"):
        weights = {name: torch.randn(shape, generator=random).half() for name, shape in shapes.items()}
        save_file(weights, Path(folder) / f"{direction}.safetensors")


def _tiny(words: Sequence[str], family: str, sizes: Mapping[str, int], window: int, seed: int) -> tuple[Any, Any]:
    transformers = require("transformers", "distill", "A teacher")
    if family not in FAMILIES:
        raise KeyError(f"Unknown family {family!r}; {suggest(family, FAMILIES)}")
    spec = FAMILIES[family]
    tokenizer = _tokenizer(transformers, spec, words, window)
    token_ids = {f"{role}_id": tokenizer.convert_tokens_to_ids(token) for role, token in spec.specials.items()}
    limit = {spec.positions: window + spec.skipped} if spec.positions else {}
    shape = {"vocab_size": len(tokenizer), "num_attention_heads": 2, "intermediate_size": 32} | limit
    shape["d_head"] = sizes["hidden_size"] // 2  # required by XLNet
    absent = dict.fromkeys(
        f"{role}_token_id" for role in ("bos", "eos", "pad", "cls", "sep")
    )  # not the ids of the real model
    settings = shape | absent | token_ids | dict(spec.settings) | dict(sizes)
    with torch.random.fork_rng(devices=[]):
        config = transformers.AutoConfig.for_model(spec.kind or family, **settings)
        model = transformers.AutoModel.from_config(config)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0, SPREAD, generator=random)
    return model.eval(), tokenizer


def _tokenizer(transformers: Any, spec: _Family, words: Sequence[str], window: int) -> Any:
    vocabulary = [*words, *" ".join(TEXT).split()]
    specials = [*dict.fromkeys(spec.specials.values())]
    backend = spec.build_tokenizer([*dict.fromkeys(vocabulary)], specials)
    if spec.around != "$A":
        numbered = [(special, backend.token_to_id(special)) for special in specials if special in spec.around]
        backend.post_processor = processors.TemplateProcessing(single=spec.around, special_tokens=numbered)
    limit = {} if spec.positions else {"model_max_length": window}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **spec.specials, **limit)
