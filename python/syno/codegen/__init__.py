"""Operators as code: emitters, compiled functions, verification and export."""
