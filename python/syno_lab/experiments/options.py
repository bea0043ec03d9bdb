"""How much the experiments on synthesis draw."""

from __future__ import annotations

# The paper drew 6452 samples; so many take a minute.
SAMPLES = 2000
SAMPLE_DEPTH = 10  # primitives, as in the paper's Table 2
# For each guide: enough that the guides differ by more than chance.
TRIALS = 5000
