"""Adapters for other frameworks, one module each; nothing in stillvec imports them."""
