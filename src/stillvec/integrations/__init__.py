"""Seams of other frameworks, one file each; nothing of ours imports them."""
