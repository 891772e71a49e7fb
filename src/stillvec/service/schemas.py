"""What may be asked and what is told, as JSON; the numbers of `Limits` are put beside these by `describing`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from stillvec.service.limits import USUAL_K


def _whole(number: object) -> object:
    """JSON has one kind of number: 5.0 is 5."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


Word = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, BeforeValidator(_whole)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Method = Literal["3cosadd", "3cosmul"]
MODEL = "The name of a set of vectors; the first one where none is given."
EXACT = (
    "true: compare with every word. false: the approximate index may be used, once it is built. "
    "Not given: exact below 200,000 words. The answer says which was used."
)


class Question(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    model: str | None = Field(default=None, description=MODEL)


class VectorsQuestion(Question):
    """The vectors of some words."""

    words: list[Word] = Field(min_length=1, examples=[["ice", "snow"]])


class SimilarityQuestion(Question):
    """The cosines of some pairs of words."""

    pairs: list[Annotated[list[Word], Field(min_length=2, max_length=2)]] = Field(
        min_length=1, examples=[[["ice", "snow"]]]
    )


class NearestQuestion(Question):
    """The words nearest to a word, to a text or to a vector: one of the three is given."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [one]} for one in ("word", "text", "vector")]})

    word: Word = Field(default="", description="A word of the vectors.", examples=["ice"])
    text: Word = Field(default="", description="A text; its vector is the mean of its known words.")
    vector: list[Number] = Field(default=[], description="As many numbers as the vectors have.")
    k: Whole = Field(default=USUAL_K, ge=1, description="How many neighbours.")
    exact: bool | None = Field(default=None, description=EXACT)


class AnalogyQuestion(Question):
    """What is to `c` as `b` is to `a`."""

    a: Word = Field(examples=["man"])
    b: Word = Field(examples=["king"])
    c: Word = Field(examples=["woman"])
    k: Whole = Field(default=5, ge=1, description="How many answers.")
    method: Method = Field(default="3cosadd", description="Mikolov's 3CosAdd or Levy and Goldberg's 3CosMul.")


class EmbedQuestion(Question):
    """The vectors of some texts: means of their known words."""

    texts: list[str] = Field(min_length=1, examples=[["One vector for a whole text."]])
    unit: bool = Field(default=False, description="Whether the vectors are brought to length one.")


class EmbeddingsQuestion(Question):
    """OpenAI's form of a request for embeddings."""

    input: Word | Annotated[list[Word], Field(min_length=1)] = Field(
        description="A text or several; no token numbers.", examples=[["snow and ice", "fire"]]
    )
    encoding_format: Literal["float", "base64"] = Field(default="float", description="base64: little-endian float32.")
    dimensions: Whole | None = Field(default=None, description="Only what the vectors have; they are not cut.")
    user: str | None = Field(default=None, description="Taken, as clients may send it, and not used.")


class WordVector(BaseModel):
    word: str
    vector: list[float]


class VectorsAnswer(BaseModel):
    model: str
    dim: int
    data: list[WordVector]


class SimilarityItem(BaseModel):
    a: str
    b: str
    cosine: float


class SimilarityAnswer(BaseModel):
    model: str
    data: list[SimilarityItem]


class Neighbour(BaseModel):
    word: str
    score: float = Field(description="The cosine; for an analogy what its method gives.")


class NearestAnswer(BaseModel):
    model: str
    search: Literal["exact", "approximate"] = Field(description="The search that was used.")
    data: list[Neighbour] = Field(description="Best first; a word that was asked about is not among them.")


class AnalogyAnswer(BaseModel):
    model: str
    method: Method
    data: list[Neighbour]


class EmbedAnswer(BaseModel):
    model: str
    dim: int
    data: list[list[float]]
    unknown: list[int] = Field(description="Which texts have no known word (from 0); their vectors are zeros.")


class Embedding(BaseModel):
    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(BaseModel):
    prompt_tokens: int = Field(description="Words of the texts, known or not.")
    total_tokens: int


class EmbeddingsAnswer(BaseModel):
    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When it was loaded, in seconds since 1970.")
    owned_by: str = "stillvec"
    words: int
    dim: int
    search: Literal["exact", "approximate"] = Field(description="The search where `exact` is not given.")
    recall_at_10: float | None = Field(
        description="Share of the 10 exact neighbours of 100 words that the approximate search finds; null before."
    )


class Models(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str
    models: list[Model]
