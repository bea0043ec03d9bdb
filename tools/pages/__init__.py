"""What the snippets in README.md and docs/ call: cog runs them and writes what they print.

    <!-- [[[cog
    d = read("bench/results/demo.json")
    head("operator | accuracy >")
    for each in d.trials:
        row("`{}` | {:.1%}", each.formula, each.accuracy)
    ]]] -->
    (the table)
    <!-- [[[end]]] -->

`make pages` writes all pages, `make check` compares them (tools/pages.sh). The snippets of a page
run in order and share their names. `remarks()` is the last one of a page that reads results.
"""

from statistics import mean, median, stdev

from pages import code
from pages.read import agreement, compared, macs, params, read
from pages.remarks import remarks
from pages.values import geomean
from pages.write import head, row, say, show
from syno._util.numbers import count

__all__ = [
    "agreement",
    "code",
    "compared",
    "count",
    "geomean",
    "head",
    "macs",
    "mean",
    "median",
    "params",
    "read",
    "remarks",
    "row",
    "say",
    "show",
    "stdev",
]
