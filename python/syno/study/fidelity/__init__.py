"""Ladders of trainings, and who climbs them."""
