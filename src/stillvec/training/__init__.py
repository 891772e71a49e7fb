"""Shared parts of training: row optimizers, negative sampling, learning-rate schedule, loss monitor, checkpoints.

`schedule` does without torch, as gensim's methods do; the other modules import it.
"""
