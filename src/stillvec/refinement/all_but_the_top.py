"""All-but-the-top (Mu & Viswanath 2018): centre, then remove the first principal directions."""

from dataclasses import dataclass
from typing import ClassVar

from stillvec.errors import UsageError
from stillvec.refinement.center import Center
from stillvec.refinement.pca import principal_directions
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class AllButTheTop:
    SUMMARY: ClassVar[str] = "the first principal directions removed"
    PAPERS: ClassVar[tuple[str, ...]] = ("mu-2018",)

    directions: int = 1

    def __call__(self, vectors: WordVectors) -> WordVectors:
        if not 0 <= self.directions < vectors.dim:
            raise UsageError.expected(f"0 to {vectors.dim - 1}", self.directions, where="directions")
        centred = Center()(vectors)
        top = principal_directions(centred.matrix)[1][:, : self.directions]  # (D, k)
        return vectors.with_matrix(centred.matrix - centred.matrix @ top @ top.T)
