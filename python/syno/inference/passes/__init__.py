"""Passes over the graph of a network, each of which leaves what it computes as it was."""
