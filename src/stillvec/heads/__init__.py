"""Small models on a representation: those that `fit` keeps and `evaluate` trains and judges."""
