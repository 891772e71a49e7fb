"""An evaluation as a self-contained page or as tables; one module per section of the page."""

from stillvec.report.writer import ENDINGS, check_writable, write_report

__all__ = ["ENDINGS", "check_writable", "write_report"]
