"""Helpers that know nothing of operators: errors, checks of values, files, processes, threads."""
