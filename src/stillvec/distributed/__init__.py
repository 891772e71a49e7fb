"""Many processes and machines over one corpus: what torchrun started, or the workers of a Ray cluster."""
