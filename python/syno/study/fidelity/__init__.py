"""Successive halving: the list of rungs, and the promotion of operators between them."""
