"""Every long call is ended by Ctrl-C: a test of hanging, not of speed.

A process starts the call, gets SIGINT half a second later, and must raise KeyboardInterrupt within
ten seconds; a tenth of a second is what it takes. The quick cases run in the default suite.
"""

from __future__ import annotations

import pytest

from .interrupted import interrupt

WITHIN = 10.0
_BIG = "dict(M=4000, N=4000, K=4000)"
_BIG_ARRAYS = (
    "op = Operator.from_text(MATRIX); x = np.ones((4000, 4000)); w = np.ones((4000, 4000))"
)
_SCALES = "op = scales(40); b = {f'D{d}': 8 for d in range(6)}"

# Name: what comes before, and the call; each of them takes minutes where nothing ends it.
CALLS: dict[str, tuple[str, str]] = {
    "interpret": (_BIG_ARRAYS, f"op.interpret({_BIG}, x, [w])"),
    "interpret_at": (_BIG_ARRAYS, f"op.interpret_at({_BIG}, x, [w], range(16_000_000))"),
    "gradients": (_BIG_ARRAYS, f"op.gradients({_BIG}, x, [w], x)"),
    "interpret exactly": (
        "op = Operator.from_text(MATRIX); x = np.ones((4000, 4000), int); w = x",
        f"op.interpret({_BIG}, x, [w])",
    ),
    "mean_square": (
        'op = Operator.from_text("syno operator 1\\nout [H]\\nin [H]\\n" + "".join('
        '"reduce k -> r%d\\n" % i for i in range(6)) + "contract o0:keep\\nunfold o0 r0 -> c0\\n"'
        ' + "".join("unfold c%d r%d -> c%d\\n" % (i, i + 1, i + 1) for i in range(5)) +'
        ' "match c5\\n")',
        "[op.mean_square(dict(H=1000, k=19)) for _ in range(100)]",
    ),
    "macs, again and again": (_SCALES, "[op.macs(b) for _ in range(1000)]"),
    "plans": (_SCALES, "[op.plans(b, 100) for _ in range(1000)]"),
    "plans of folded weights": (
        _SCALES,
        "[op.plans(b, 100, fold_weights=True) for _ in range(1000)]",
    ),
    "source": (_SCALES, "[op.source(b) for _ in range(1000)]"),
    "Space.enumerate": ("", "syno.Space.enumerate(PAPER, max_nodes=10**9)"),
    "Space.enumerate on one thread": (
        "",
        "syno.Space.enumerate(PAPER, max_nodes=10**9, threads=1)",
    ),
    "walk": ("", "syno.walk(PAPER, count=10**9)"),
    "check_rule": (
        "from syno.space.rules import list_rules",
        "[syno.check_rule(r.id, PAPER, trials=10**8, max_graphs=10**8) for r in list_rules()]",
    ),
    "rule_effects": (
        "from syno.space.rule_effects import rule_effects",
        "list(rule_effects(PAPER, max_nodes=10**8))",
    ),
    "distance_ablation": (
        "from syno_lab.experiments.ablation import distance_ablation",
        "distance_ablation(PAPER, trials=10**9)",
    ),
    "canonical_rate": (
        "from syno_lab.experiments.canonical import canonical_rate",
        "canonical_rate(PAPER, samples=10**8)",
    ),
    "why_not": (
        "op = syno.Space.enumerate(PAPER, max_nodes=20_000)[0]; "
        "other = PAPER.with_changes(max_depth=2)",
        "[syno.why_not(op, other, max_nodes=10**8, max_seconds=1e6) for _ in range(10**6)]",
    ),
    "a rule of the user": (
        'rule = syno.rule("X1", "never", kind="restriction", doc="What: nothing")('
        "lambda graph, step: False)",
        "syno.Space.enumerate(PAPER, max_nodes=10**9, rules=[rule])",
    ),
    "Tree.children": (
        "tree = syno.Tree(PAPER)\n"
        "def down(node):\n"
        "    for child in tree.children(node): down(child)",
        "down(tree.root)",
    ),
    "keys": (
        "space = syno.Space.enumerate(PAPER, max_nodes=20_000); texts = [op.text for op in space]",
        "[Operator.from_text(t, PAPER).key for _ in range(10**6) for t in texts]",
    ),
    "draw by macs": (
        "space = syno.Space.enumerate(PAPER, max_nodes=100_000)",
        "[space.sample(5, seed=s, stratify='macs') for s in range(10**6)]",
    ),
}
QUICK = ("interpret", "plans", "Space.enumerate")


def _check(name: str) -> None:
    before, call = CALLS[name]
    found = interrupt(call, before)
    print(f"{name}: {found.seconds:.2f} s")
    assert found.how == "interrupted", found
    assert found.seconds < WITHIN, found


@pytest.mark.parametrize("name", QUICK)
def test_an_interrupt_ends(name: str) -> None:
    _check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CALLS if name not in QUICK])
def test_an_interrupt_ends_every_long_call(name: str) -> None:
    _check(name)
