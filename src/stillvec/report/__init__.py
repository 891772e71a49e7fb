"""An evaluation as a page that can be sent on, and as tables: one section, one file."""

from stillvec.report.writer import ENDINGS, check_writable, write_report

__all__ = ["ENDINGS", "check_writable", "write_report"]
