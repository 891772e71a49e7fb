"""Requests and responses as JSON; `application` adds the limits of the server to these."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from stillvec.service.limits import DEFAULT_K
from stillvec.vocabulary.folding import replace_surrogates


def _convert_whole(number: object) -> object:
    """JSON has one kind of number: 5.0 is 5."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


Word = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, BeforeValidator(_convert_whole)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Pair = Annotated[list[Word], Field(min_length=2, max_length=2)]
Method = Literal["3cosadd", "3cosmul"]
Search = Literal["exact", "approximate"]
MODEL = "Name of a set of vectors; default: the first."
DIMENSIONS = "Only the first of the dimensions; see `ordered` of the model. Default: all."
METHOD = "3CosAdd (Mikolov et al. 2013) or 3CosMul (Levy & Goldberg 2014)."
EXACT = (
    "true: compare with every word. false: use the approximate index once it is built. "
    "Default: exact below 200,000 words. The response names the search that was used."
)
GROUP = (
    "true: one entry per word; inflections of a nearer neighbour are its `forms`, those of the query word are the "
    "`forms` of the response."
)


class StrictRequest(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def refuse_surrogates(cls, value: Any) -> Any:
        """JSON can contain half a character (a lone surrogate), which no response can."""
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, list):
                cls.refuse_surrogates(text)
            elif isinstance(text, str) and replace_surrogates(text) != text:
                raise PydanticCustomError("surrogate", "expected whole characters, got half a surrogate pair")
        return value

    @property
    def items(self) -> Sequence[str | list[str]]:
        """What is looked up, as a measure of the work."""
        return ()


class BaseRequest(StrictRequest):
    model: str | None = Field(default=None, description=MODEL)


class VectorsRequest(BaseRequest):
    """Vectors of words."""

    words: list[Word] = Field(min_length=1, examples=[["ice", "snow"]])

    @property
    def items(self) -> list[str]:
        return self.words


class SimilarityRequest(BaseRequest):
    """Cosine similarities of word pairs."""

    pairs: list[Pair] = Field(min_length=1, examples=[[["ice", "snow"]]])

    @property
    def items(self) -> list[list[str]]:
        return self.pairs


class NearestRequest(BaseRequest):
    """Nearest neighbours of a word, a text or a vector; give exactly one of the three."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [one]} for one in ("word", "text", "vector")]})

    word: Word = Field(default="", description="A word in the vocabulary.", examples=["ice"])
    text: Word = Field(default="", description="A text; its vector is the mean of its known words.")
    vector: list[Number] = Field(default=[], description="A vector with the dimension of the model.")
    k: Whole = Field(default=DEFAULT_K, ge=1, description="Number of neighbours.")
    exact: bool | None = Field(default=None, description=EXACT)
    group: bool = Field(default=False, description=GROUP)

    @property
    def items(self) -> list[str]:
        return [self.text]


class AnalogyRequest(BaseRequest):
    """`a` is to `b` as `c` is to what?"""

    a: Word = Field(examples=["man"])
    b: Word = Field(examples=["king"])
    c: Word = Field(examples=["woman"])
    k: Whole = Field(default=5, ge=1, description="Number of answers.")
    method: Method = Field(default="3cosadd", description=METHOD)


class EmbedRequest(BaseRequest):
    """Vectors of texts: the mean of their known words."""

    texts: list[str] = Field(min_length=1, examples=[["One vector for a whole text."]])
    unit: bool = Field(default=False, description="Scale vectors to length one.")
    dimensions: Whole | None = Field(default=None, description=DIMENSIONS)

    @property
    def items(self) -> list[str]:
        return self.texts


class EmbeddingsRequest(BaseRequest):
    """A request for embeddings in OpenAI's format."""

    input: Word | Annotated[list[Word], Field(min_length=1)] = Field(
        description="A text or a list of texts; token ids are not supported.", examples=[["snow and ice", "fire"]]
    )
    encoding_format: Literal["float", "base64"] = Field(default="float", description="base64: little-endian float32.")
    dimensions: Whole | None = Field(default=None, description=DIMENSIONS)
    user: str | None = Field(default=None, description="Accepted for compatibility and ignored.")

    @property
    def items(self) -> list[str]:
        return [self.input] if isinstance(self.input, str) else self.input


class SearchRequest(StrictRequest):
    """A search in the documents of the index."""

    query: Word = Field(description="A text: words, a question or a whole passage.", examples=["melting ice"])
    k: Whole = Field(default=DEFAULT_K, ge=1, description="Number of passages.")
    method: Literal["hybrid", "vectors", "bm25"] = Field(
        default="hybrid", description="Cosines of the vectors of texts, the same words by BM25, or both."
    )
    unique: bool = Field(default=False, description="Only the best passage of each document.")
    exact: bool = Field(default=False, description="Compare with every passage, even if the index has a graph.")
    text: bool = Field(default=False, description="Return whole passages too.")

    @property
    def items(self) -> list[str]:
        return [self.query]


class PredictRequest(BaseRequest):
    """The labels of texts, or the tags of their words, by a head."""

    model: str | None = Field(default=None, description="Name of a head; default: the first.")
    texts: list[str | list[str]] = Field(
        min_length=1,
        description="Texts; for a tagger also lists of words; for a head that compares texts, pairs of them.",
        examples=[["Who wrote it?"]],
    )
    explain: bool = Field(default=False, description="Also say which words, training texts or experts decided.")

    @property
    def items(self) -> list[str]:
        return [text if isinstance(text, str) else " ".join(text) for text in self.texts]


class BaseResponse(BaseModel):
    model: str


class WordVector(BaseModel):
    word: str
    vector: list[float]


class VectorsResponse(BaseResponse):
    dim: int
    data: list[WordVector]


class SimilarityItem(BaseModel):
    a: str
    b: str
    score: float = Field(description="Cosine similarity.")
    cosine: float = Field(description="Same as `score`, under its old name.")


class SimilarityResponse(BaseResponse):
    data: list[SimilarityItem]


class Neighbour(BaseModel):
    word: str
    score: float = Field(description="Cosine similarity; for an analogy, the score of its method.")


class NearestWord(Neighbour):
    forms: list[str] = Field(default=[], description="Its inflections, if they were grouped.")


class NearestSense(BaseModel):
    share: float = Field(description="Share of the word's sampled contexts.")
    examples: list[str] = Field(description="Example sentences, the most typical first.")
    data: list[Neighbour] = Field(description="Words nearest to the sense.")


class NearestResponse(BaseResponse):
    search: Search = Field(description="The search that was used.")
    data: list[NearestWord] = Field(description="Best first, without the query word.")
    forms: list[str] = Field(default=[], description="Inflections of the query word, if they were grouped.")
    senses: list[NearestSense] = Field(default=[], description="Senses of the query word, if it has several.")


class AnalogyResponse(BaseResponse):
    method: Method
    data: list[Neighbour]


class EmbedResponse(BaseResponse):
    dim: int
    data: list[list[float]]
    unknown: list[int] = Field(description="Indices of texts without a known word; their vectors are zero.")


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int = Field(description="Number of words in the texts, known or not.")
    total_tokens: int


class EmbeddingsResponse(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class Passage(BaseModel):
    score: float = Field(description="Cosine, BM25 score, or a combination of both.")
    id: str = Field(description="Id of the document.")
    position: int = Field(description="Number of the passage in its document, from 0.")
    snippet: str = Field(description="The part of the passage nearest to the query.")
    highlights: list[tuple[int, int]] = Field(description="First and last character + 1 of the query's words in it.")
    text: str | None = Field(default=None, description="The whole passage, if requested.")


class SearchResponse(BaseModel):
    method: Literal["hybrid", "vectors", "bm25"]
    documents: int = Field(description="Number of documents in the index.")
    passages: int
    data: list[Passage] = Field(description="Best first.")


class PredictedWord(BaseModel):
    word: str
    start: int | None = Field(default=None, description="First character; null if words were given.")
    end: int | None = Field(default=None, description="Last character + 1.")
    tag: str | None = Field(default=None, description="Of a tagger.")
    probability: float | None = Field(default=None, description="Of the tag.")
    weight: float | None = Field(default=None, description="Towards the label in `explained`.")


class Example(BaseModel):
    text: str = Field(description="A training text.")
    label: str
    cosine: float


class Prediction(BaseModel):
    """What a head does not have is left out: a classifier has no tags, a tagger no label."""

    label: str | None = None
    labels: list[str] | None = Field(default=None, description="Of a head whose texts may have several labels.")
    probabilities: dict[str, float] | None = Field(default=None, description="Of each label.")
    words: list[PredictedWord] | None = Field(default=None, description="With tags, or with `explain`, weights.")
    explained: str | None = Field(default=None, description="The most likely label, which is explained.")
    examples: list[Example] | None = Field(default=None, description="The nearest training texts, of a `knn`.")
    experts: dict[str, list[float]] | None = Field(default=None, description="Weight of each expert for each word.")


class PredictResponse(BaseResponse):
    head: str = Field(description="Kind of the head, such as linear.")
    data: list[Prediction]

    def model_dump_json(self, **settings: Any) -> str:
        return super().model_dump_json(**settings | {"exclude_none": True})


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Time of loading, in seconds since 1970.")
    owned_by: str = "stillvec"
    words: int
    dim: int
    ordered: bool = Field(
        description="Whether the first dimensions are the important ones, so that `dimensions` may cut."
    )
    search: Search = Field(description="The search that is used if `exact` is not given.")
    recall_at_10: float | None = Field(
        description="Recall@10 of the approximate search, measured on 100 words; null before its index is built."
    )


class HeadModel(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Time of loading, in seconds since 1970.")
    owned_by: str = "stillvec"
    head: str = Field(description="Kind of the head, such as linear; /v1/predict asks it.")
    labels: list[str]
    unit: Literal["text", "tokens", "pair", "span"] = Field(
        description="What it labels: texts, their words, pairs of texts, or marked spans."
    )
    multilabel: bool = Field(description="Whether a text may have several labels.")
    words: int = Field(description="Words that have a vector.")
    dim: int


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model | HeadModel]


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str
    models: list[Model | HeadModel]
