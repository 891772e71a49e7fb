"""The geometry of a space, and what its principal components encode."""

from stillvec.analysis.components import Probed, Study, mean_value, probe, read_labelled, saturation, study
from stillvec.analysis.space_analysis import Analysis, analyze
from stillvec.analysis.space_geometry import Geometry, PrincipalSpace, geometry

__all__ = ["Analysis", "Geometry", "PrincipalSpace", "Probed", "Study", "analyze", "geometry", "mean_value"]
__all__ += ["probe", "read_labelled", "saturation", "study"]
