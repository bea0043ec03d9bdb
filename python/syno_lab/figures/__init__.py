"""The figures of the paper, drawn from one's own results, with what is published beside them.

`sources.py` reads result files and a store, `catalogue.py` knows the figures by name and what each
is made of, and `write.py` writes them as PDF, PNG and CSV. A speed-up above 1 is faster.
"""

from syno_lab.figures.catalogue import FIGURES, Plan
from syno_lab.figures.sources import Sources, read_sources
from syno_lab.figures.write import Missing, Written, write_figures

__all__ = ["FIGURES", "Missing", "Plan", "Sources", "Written", "read_sources", "write_figures"]
