"""Spaces of operators: enumeration, walks, trees, rules, and why an operator is in or out."""
