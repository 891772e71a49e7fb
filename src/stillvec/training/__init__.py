"""Shared parts of training: row optimizers, negative sampling, learning-rate schedule, checkpoints, bags of words.

Only `schedule`, for GloVe and gensim's methods, and `bag_regression` can be imported without torch.
"""
