"""The ground floor of everything that runs for long: processes, files, locks, journals, attempts.

Nothing here knows operators.
"""
