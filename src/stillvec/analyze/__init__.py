"""What a space is like: its geometry, and what its principal components know."""

from stillvec.analyze.components import Study, mean_value, saturation, study
from stillvec.analyze.measuring import Geometry, geometry
from stillvec.analyze.principal import PrincipalSpace
from stillvec.analyze.probing import Probed, probe, read_labelled

__all__ = [
    "Geometry",
    "PrincipalSpace",
    "Probed",
    "Study",
    "geometry",
    "mean_value",
    "probe",
    "read_labelled",
    "saturation",
    "study",
]
