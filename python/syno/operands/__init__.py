"""Operators that a user names, and how they fit the layers of a network."""
