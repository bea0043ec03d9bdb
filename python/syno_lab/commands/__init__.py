"""The commands, a file each, and how the command line of `syno` finds them."""

from syno.cli.extension import Extension

EXTENSION = Extension(
    package="syno_lab",
    commands={"experiment": "Repeat experiments of the paper."},
    parts={
        "bench": (
            "bench_adaptation",
            "bench_coverage",
            "bench_engines",
            "bench_kernels",
            "bench_latency",
            "bench_layers",
            "bench_scale",
            "bench_search",
            "bench_synthesis",
            "bench_table",
            "bench_training",
        ),
        "zoo": ("bench_kernels",),
    },
    figures="syno_lab.commands.report_figures",
)
