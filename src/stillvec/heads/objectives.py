"""What the features of texts are trained for (losses of metric learning: Coria et al. 2020).

    cross_entropy    -log softmax(W f + b)[y]; with several labels per text, one sigmoid per label
    coco             cross-entropy of `scale` cos(f, w_k)
    arcface          the same with `margin` added to the angle of the text's own label
    center           cross-entropy + `weight` / 2 (1 - cos(f, c_y))², with trained centres c_k
    contrastive      over all pairs of a batch, with D = 1 - cos: D² for one label, max(`margin` - D, 0)² for two labels
    triplet          over all triples of a batch: sigmoid(`scale` (cos to the other label - cos to the own label))

The last two train no weights of labels: a label then is the mean direction of its training texts, and a text has the
label of highest cosine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from stillvec.registry import Registry

_COSINE_LIMIT = 1 - 1e-6  # of an angle that has a gradient


@dataclass(frozen=True)
class Objective:
    """The loss of features (M, B, F) with the weights of labels (M, F, k) and (M, k), and targets (M, B, k)."""

    unit: ClassVar[bool] = False  # whether labels are compared by cosine
    trains_labels: ClassVar[bool] = True
    needs_centres: ClassVar[bool] = False
    several: ClassVar[bool] = False  # whether a text may have several labels

    @property
    def score_scale(self) -> float:
        """Of the cosines, as scores."""
        return 1.0

    def score(self, features: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
        """Of each label (M, B, k)."""
        if not self.unit:
            return torch.baddbmm(bias.unsqueeze(1), features, weights)
        return self.score_scale * torch.bmm(unit(features, 2), unit(weights, 1))

    def losses(self, features: Tensor, scores: Tensor, targets: Tensor, centres: Tensor | None) -> Tensor:
        """Of each text (M, B)."""
        return cross_entropy(scores, targets)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    several: ClassVar[bool] = True


@dataclass(frozen=True)
class Coco(Objective):
    unit: ClassVar[bool] = True
    scale: float = 10.0  # of the cosines

    @property
    def score_scale(self) -> float:
        return self.scale


@dataclass(frozen=True)
class ArcFace(Objective):
    unit: ClassVar[bool] = True
    scale: float = 10.0  # of the cosines
    margin: float = 0.05  # added to the angle of the own label

    @property
    def score_scale(self) -> float:
        return self.scale

    def losses(self, features: Tensor, scores: Tensor, targets: Tensor, centres: Tensor | None) -> Tensor:
        if not self.margin:
            return cross_entropy(scores, targets)
        angles = (scores / self.scale).clamp(-_COSINE_LIMIT, _COSINE_LIMIT).arccos()
        return cross_entropy(self.scale * (angles + self.margin * targets).cos(), targets)


@dataclass(frozen=True)
class CenterLoss(Objective):
    needs_centres: ClassVar[bool] = True
    weight: float = 0.1  # of the distance to the centre

    def losses(self, features: Tensor, scores: Tensor, targets: Tensor, centres: Tensor | None) -> Tensor:
        plain = cross_entropy(scores, targets)
        if centres is None or not self.weight:
            return plain
        cosines = (torch.bmm(unit(features, 2), unit(centres, 1)) * targets).sum(dim=2)
        return plain + self.weight / 2 * (1 - cosines).square()


@dataclass(frozen=True)
class Contrastive(Objective):
    unit: ClassVar[bool] = True
    trains_labels: ClassVar[bool] = False
    margin: float = 0.25  # distance from which texts of different labels count as far

    def losses(self, features: Tensor, scores: Tensor, targets: Tensor, centres: Tensor | None) -> Tensor:
        distances, same, other = _pairs(features, targets)
        losses = same * distances.square() + other * (self.margin - distances).clamp(min=0).square()
        return losses.sum(dim=2) / (same + other).sum(dim=2).clamp(min=1)


@dataclass(frozen=True)
class Triplet(Objective):
    unit: ClassVar[bool] = True
    trains_labels: ClassVar[bool] = False
    scale: float = 10.0  # of the difference of cosines

    def losses(self, features: Tensor, scores: Tensor, targets: Tensor, centres: Tensor | None) -> Tensor:
        distances, same, other = _pairs(features, targets)
        differences = distances.unsqueeze(3) - distances.unsqueeze(2)  # (M, B, positive, negative): cos neg - cos pos
        counted = same.unsqueeze(3) * other.unsqueeze(2)
        total = (torch.sigmoid(self.scale * differences) * counted).sum(dim=(2, 3))
        return total / counted.sum(dim=(2, 3)).clamp(min=1)


def cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """Of each text (M, B); targets (M, B, k) are shares of labels."""
    return -(targets * functional.log_softmax(scores, dim=2)).sum(dim=2)


def binary_cross_entropy(scores: Tensor, targets: Tensor) -> Tensor:
    """The sum over labels, of each text (M, B)."""
    return functional.binary_cross_entropy_with_logits(scores, targets, reduction="none").sum(dim=2)


def unit(x: Tensor, dim: int) -> Tensor:
    return functional.normalize(x, dim=dim)


def _pairs(features: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """1 - cosine of all pairs of a batch (M, B, B), and which pairs have the same label, and which another."""
    units = unit(features, 2)
    labelled = targets.sum(dim=2)
    same = torch.bmm(targets, targets.transpose(1, 2))
    both = labelled.unsqueeze(2) * labelled.unsqueeze(1) * (1 - torch.eye(features.shape[1], device=features.device))
    return 1 - torch.bmm(units, units.transpose(1, 2)), same * both, (1 - same) * both


OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    {
        "cross_entropy": "stillvec.heads.objectives:CrossEntropy",
        "coco": "stillvec.heads.objectives:Coco",
        "arcface": "stillvec.heads.objectives:ArcFace",
        "center": "stillvec.heads.objectives:CenterLoss",
        "contrastive": "stillvec.heads.objectives:Contrastive",
        "triplet": "stillvec.heads.objectives:Triplet",
    },
)
