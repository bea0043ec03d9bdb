"""Number formats of compiled networks."""

from __future__ import annotations

FLOAT32, BFLOAT16 = "float32", "bfloat16"
# Largest difference of a network's output from float32, relative to its largest output. With
# bfloat16 each layer rounds its data and weights by up to 2**-8 of their values, and such errors
# add up over the layers; this finds wrong code, not rounding.
TOLERANCES = {FLOAT32: 1e-4, BFLOAT16: 0.1}
PRECISIONS = tuple(TOLERANCES)
