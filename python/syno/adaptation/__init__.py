"""Adapting a trained network: operators that are fitted to its layers, chosen and trained on."""
