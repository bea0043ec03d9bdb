"""Trained networks in INT8: ranges from samples, codes between layers, layers of integers."""
