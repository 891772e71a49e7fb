"""Statistics that merge over batches, processes, machines and corpora."""

from stillvec.statistics.mergeable import Statistics, merge

__all__ = ["Statistics", "merge"]
