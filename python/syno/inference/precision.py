"""Number formats of compiled networks."""

from __future__ import annotations

FLOAT32, BFLOAT16, INT8 = "float32", "bfloat16", "int8"
# A format for each layer, instead of one for all.
AUTO = "auto"
# Largest difference of a network's output from float32, relative to its largest output. With
# bfloat16 each layer rounds its data and weights by up to 2**-8 of their values, and such errors
# add up over the layers; this finds wrong code, not rounding.
# With int8 a value in the middle between two codes may become either of them in other code, which
# moves values of later layers over such a middle: results differ as much as by quantization.
TOLERANCES = {FLOAT32: 1e-4, BFLOAT16: 0.1, INT8: 0.3}
PRECISIONS = tuple(TOLERANCES)
