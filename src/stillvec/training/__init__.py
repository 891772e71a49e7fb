"""Shared parts of training: row optimizers, negative sampling, learning-rate schedule, checkpoints.

Only `schedule` can be imported without torch, for GloVe and gensim's methods.
"""
