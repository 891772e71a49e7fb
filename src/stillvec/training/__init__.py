"""Shared parts of training: row optimizers, negative sampling, learning-rate schedule, loss monitor, checkpoints.

`schedule` and `loss_monitor` can be imported without torch, for GloVe and gensim's methods; the others need it.
"""
