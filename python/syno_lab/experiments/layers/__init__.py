"""Layers of a network in several engines: originals, operators in their place, and NAS-PTE."""
