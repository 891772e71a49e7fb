"""An evaluation on a terminal."""

from stillvec.cli import console
from stillvec.evaluation import Report
from stillvec.evaluation.report_tables import build_tables, list_notes


def show_report(report: Report) -> None:
    """Print all tables and notes of a report."""
    for table in build_tables(report, console.width()):
        console.table(table.title, table.columns, table.rows)
        for line in table.notes:
            console.note(line)
    for line in list_notes(report):
        console.note(line)
