"""Operators as values: their specification, text and JSON forms, weights, and the zoo."""
