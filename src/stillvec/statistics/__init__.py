"""Sums that merge: over batches, processes, machines, and over time."""

from stillvec.statistics.mergeable import Statistics, merge

__all__ = ["Statistics", "merge"]
