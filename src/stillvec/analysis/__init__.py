"""The geometry of a space, what its principal components encode, and what the layers of a teacher keep."""

from stillvec.analysis.code_analysis import CodeAnalysis, analyze_codes
from stillvec.analysis.components import Probed, Study, mean_value, probe, read_labelled, saturation, study
from stillvec.analysis.layer_information import LayerAnalysis, LayerInformation, analyze_layers
from stillvec.analysis.residual_entropy import ResidualEntropy, measure_residual_entropy
from stillvec.analysis.space_analysis import Analysis, analyze
from stillvec.analysis.space_geometry import Geometry, PrincipalSpace, geometry
from stillvec.analysis.teacher_change import LayerCosine, MatrixChange, TeacherChange, compare_teachers
from stillvec.analysis.value_change import ValueChange, compare_values

__all__ = ["Analysis", "Geometry", "PrincipalSpace", "Probed", "Study", "ValueChange", "analyze", "compare_values"]
__all__ += ["geometry", "mean_value", "probe", "read_labelled", "saturation", "study"]
__all__ += ["LayerAnalysis", "LayerInformation", "analyze_layers"]
__all__ += ["LayerCosine", "MatrixChange", "TeacherChange", "compare_teachers"]
__all__ += ["CodeAnalysis", "ResidualEntropy", "analyze_codes", "measure_residual_entropy"]
