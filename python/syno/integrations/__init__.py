"""Syno inside of other packages: `syno.integrations.optuna`."""
