"""What a space is like: its geometry, and what its principal components know."""

from stillvec.analyze.components import Study, mean_value, saturation, study
from stillvec.analyze.measuring import Geometry, geometry
from stillvec.analyze.principal import PrincipalSpace

__all__ = ["Geometry", "PrincipalSpace", "Study", "geometry", "mean_value", "saturation", "study"]
