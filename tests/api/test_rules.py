"""Rules of one's own: asked like those of the catalogue, by one thread or several."""

import subprocess
import sys
import textwrap

import pytest

import syno
from syno import PartialGraph, Rule, Sampler, Space, Specification, UserError
from syno.space.rules import load_rules, reported, rule_set

SPECIFICATION = Specification(
    "[C_in, H]",
    "[C_out, H]",
    ["C_in: 2", "C_out: 2", "H: 1"],
    ["s=2: 1"],
    bindings=["C_in=16, C_out=16, H=32"],
)


@syno.rule("U1", "no-shift-of-piece", kind="restriction", steps=["shift"])
def no_shift_of_piece(graph, step):
    """no Shift of what a Merge made

    Rotations come first.
    """
    return graph.maker(step.inputs[0]) == "merge"


@syno.rule("U2", "shift-of-reduce", kind="exact", steps=["shift"])
def shift_of_reduce(graph, step):
    """a Shift of a Reduce is none, as R15a says"""
    return graph if graph.maker(step.inputs[0]) == "reduce" else None


def a_rule(answer, kind="restriction", **changes):
    function = answer if callable(answer) else lambda graph, step: answer
    fields = {"id": "U9", "name": "of-a-test", "kind": kind, "function": function} | changes
    return Rule(**fields)


@pytest.fixture(scope="module")
def plain():
    return Space.enumerate(SPECIFICATION, depth=5)


def test_a_function_becomes_a_rule():
    assert no_shift_of_piece.title == "U1 no-shift-of-piece"
    assert no_shift_of_piece.summary == "no Shift of what a Merge made"
    assert no_shift_of_piece.doc.endswith("\n\nRotations come first.")
    assert no_shift_of_piece.steps == ("shift",)
    graph = PartialGraph(syno._core.Graph.parse("syno graph 1\nout [H]\nreduce k -> r0\n"))
    pieces = graph.then("merge", "o0", size="k")
    assert no_shift_of_piece(pieces, pieces.then("shift", "c1", amount=1).steps[-1]) is True
    assert no_shift_of_piece(graph, graph.then("shift", "r0", amount=1).steps[-1]) is False


def test_a_restriction_leaves_operators_out_and_is_counted():
    def has_it(operator):
        made = {name: step.op for step in operator._core.steps for name in step.out}
        shifts = [step for step in operator._core.steps if step.op == "shift"]
        return any(made.get(step.inputs[0]) == "merge" for step in shifts)

    # Approximate rules keep Shifts of pieces, and do not fire where those are left out.
    off = ["approximate"]
    plain = Space.enumerate(SPECIFICATION, depth=5, rules_off=off)
    space = Space.enumerate(SPECIFICATION, depth=5, rules_off=off, rules=[no_shift_of_piece])
    assert space.rejections()["U1 no-shift-of-piece"] > 0
    assert not any(has_it(operator) for operator in space)
    assert {o.key for o in space} == {o.key for o in plain if not has_it(o)}
    assert space.rules_added == ("U1 no-shift-of-piece",)
    assert space.rules != plain.rules


def test_an_exact_rule_loses_nothing(plain):
    space = Space.enumerate(SPECIFICATION, depth=5, rules_off=["R15a"], rules=[shift_of_reduce])
    assert {o.key for o in space} == {o.key for o in plain}
    assert space.rejections()["U2 shift-of-reduce"] > 0


def test_the_sampler_asks_them():
    sampler = Sampler.from_specification(SPECIFICATION, max_nodes=2000, rules=[a_rule(True)])
    assert sampler.operators == []
    assert sampler.statistics()["rejections"]["U9 of-a-test"] > 0
    assert sampler.rules != Sampler.from_specification(SPECIFICATION).rules
    with pytest.raises(UserError, match="no operator connects the shapes"):
        sampler.sample()


def test_any_number_of_threads_gives_the_same_space():
    spaces = [
        Space.enumerate(SPECIFICATION, depth=5, rules=[no_shift_of_piece], threads=threads)
        for threads in (1, 4)
    ]
    assert spaces[0].signature() == spaces[1].signature()
    assert spaces[0].counts() == spaces[1].counts()
    assert spaces[0].rejections() == spaces[1].rejections()


# In a process of its own, so that a deadlock is a failure and not a test that never ends.
def test_threads_of_an_enumeration_and_of_python_do_not_wait_for_each_other():
    script = """
        import threading
        import syno

        wide = syno.Specification.preset("paper/resnet18")
        seen = set()

        @syno.rule("U1", "asks-back", kind="restriction", steps=["shift", "unfold", "split"])
        def asks_back(graph, step):
            seen.add(threading.get_ident())
            with lock:
                return graph.maker(step.inputs[0]) == "merge" and len(graph.text) < 0

        def list_one():
            watched = []
            space = syno.Space.enumerate(
                wide, depth=6, rules=[asks_back], threads=3,
                progress=lambda status: watched.append(status.nodes) or True,
            )
            spaces.append(space)

        lock = threading.Lock()
        spaces = []
        threads = [threading.Thread(target=list_one) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({space.signature() for space in spaces}) == 1, spaces
        assert spaces[0].signature() == syno.Space.enumerate(wide, depth=6).signature()
        assert len(seen) > 2, seen
        del spaces, asks_back
        print("done")
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("threads", [1, 4])
def test_an_exception_comes_out_as_it_is_and_names_the_rule(threads):
    asked = []

    def breaks(graph, step):
        asked.append(step.op)
        if len(asked) > 200:
            raise KeyError("a mistake of one's own")
        return False

    with pytest.raises(KeyError, match="a mistake of one's own") as caught:
        Space.enumerate(SPECIFICATION, depth=5, rules=[a_rule(breaks)], threads=threads)
    note = "\n".join(caught.value.__notes__)
    assert note.startswith("in rule U9 of-a-test, asked about '")
    assert "syno graph 1" in note
    # The next listing is not affected.
    assert len(Space.enumerate(SPECIFICATION, depth=3, rules=[a_rule(False)])) > 0


def test_an_exception_comes_out_of_every_door():
    def breaks(graph, step):
        raise ZeroDivisionError("a mistake")

    rules = [a_rule(breaks)]
    operator = Space.enumerate(SPECIFICATION, depth=4)[0]
    for call in (
        lambda: Sampler.from_specification(SPECIFICATION, rules=rules).operators,
        lambda: syno.explain(operator, rules=rules),
        lambda: syno.why_not(operator, rules=rules),
    ):
        with pytest.raises(ZeroDivisionError) as caught:
            call()
        assert "in rule U9 of-a-test" in caught.value.__notes__[0]


def test_a_kind_names_all_its_rules(plain):
    kinds = {rule["id"]: rule["kind"] for rule in syno._core.rule_catalogue()}
    rules = rule_set(["approximate"])
    assert {kinds[id] for id in rules.on} == {"exact", "restriction"}
    assert len(Space.enumerate(SPECIFICATION, depth=5, rules_off=["approximate"])) > len(plain)


def test_a_near_equal_operator_is_named(plain):
    kept = {o.key for o in plain}
    exact = Space.enumerate(SPECIFICATION, depth=5, rules_off=["approximate"])
    lost = next(o for o in exact if o.key not in kept)
    found = syno.why_not(lost)
    assert not found["admitted"]
    assert found["kept"]["near"]
    assert found["kept"]["key"] in kept
    by = {rule["id"]: rule["kind"] for rule in syno._core.rule_catalogue()}
    assert "approximate" in {by[name.split()[0]] for name in found["kept"]["rules"]}
    assert {r["kind"] for r in found["relaxations"]} == {"rule"}


def test_why_not_names_a_rule_of_ones_own(plain):
    operator = next(o for o in plain if "shift" in o.primitives())
    rules = [a_rule(True, steps=("shift",), doc="no Shift at all")]
    found = syno.why_not(operator, rules=rules)
    assert not found["admitted"]
    assert found["explanation"]["refusals"][0]["reason"] == "U9 of-a-test"
    assert found["explanation"]["refusals"][0]["text"].startswith("no Shift at all (step ")
    assert [(r["kind"], r["name"]) for r in found["relaxations"]] == [("rule", "U9")]


def test_files_of_other_rules_are_refused_with_the_difference(tmp_path):
    file = tmp_path / "x.space"
    space = Space.enumerate(SPECIFICATION, depth=4, rules=[no_shift_of_piece])
    space.save(file)
    again = Space.load(file, SPECIFICATION, rules=[no_shift_of_piece])
    assert again.signature() == space.signature()
    with pytest.raises(UserError, match="with other rules") as caught:
        Space.load(file, SPECIFICATION)
    assert "rule U1 no-shift-of-piece" in str(caught.value)
    changed = Rule("U1", "no-shift-of-piece", "restriction", lambda g, s: False, doc="other")
    newer = Rule(
        "U1",
        "no-shift-of-piece",
        "restriction",
        no_shift_of_piece.function,
        ("shift",),
        no_shift_of_piece.doc,
        version="2",
    )
    for other in (changed, newer):
        with pytest.raises(UserError, match=r"in rule U1 no-shift-of-piece"):
            Space.load(file, SPECIFICATION, rules=[other])


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (1, "restriction", r"rule 'U9 of-a-test' answers 1\n  expected: True or False"),
        (None, "restriction", "got: NoneType"),
        (True, "exact", r"rule 'U9 of-a-test' answers True\n  expected: the graph"),
        ("reduce k", "exact", "line 1"),
        (
            lambda graph, step: graph.start(),
            "approximate",
            "rule 'U9 of-a-test' keeps a graph that reads the data at other sizes",
        ),
        (
            "syno graph 1\nout [H]\n",
            "exact",
            "rule 'U9 of-a-test' keeps a graph of other variables or another output",
        ),
    ],
)
def test_a_wrong_answer_is_a_mistake(answer, kind, words):
    with pytest.raises(UserError, match=words):
        Space.enumerate(SPECIFICATION, depth=4, rules=[a_rule(answer, kind)])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": "R6a"}, "there is a rule 'R6a' already"),
        ({"name": "view-above-share"}, "there is a rule 'view-above-share' already"),
        ({"id": ""}, "a rule has no id"),
        ({"name": "two words"}, "'two words' cannot be the name of a rule"),
    ],
)
def test_ids_and_names_are_checked(changes, words):
    with pytest.raises(UserError, match=words):
        rule_set([], [a_rule(False, **changes)])


def test_mistakes_in_a_rule_are_named():
    with pytest.raises(UserError, match="unknown kind of rule 'precise'"):
        a_rule(False, kind="precise")
    with pytest.raises(UserError, match="names an unknown primitive 'roll'"):
        a_rule(False, steps=("roll",))
    with pytest.raises(UserError, match="has no function, got 3"):
        a_rule(False, function=3)
    with pytest.raises(UserError, match="there is a rule 'U9' already"):
        rule_set([], [a_rule(False), a_rule(True)])
    with pytest.raises(UserError, match="'rules' holds 'R6a', which is no rule"):
        Space.enumerate(SPECIFICATION, depth=2, rules=["R6a"])
    with pytest.raises(UserError, match="'rules' is one value"):
        Sampler.from_specification(SPECIFICATION, rules=no_shift_of_piece)


def test_a_partial_graph_can_be_read_and_built_on():
    text = "syno graph 1\nout [C_out, H]\nreduce k -> r0\ncontract o0:drop r0:keep\n"
    graph = PartialGraph(syno._core.Graph.parse(text))
    assert graph.frontier == {"o1": "H", "r0": "k"}
    assert graph.text == text
    assert (graph.depth, graph.primitives) == (2, {"reduce": 1, "contract": 1})
    assert (graph.maker("r0"), graph.maker("o1")) == ("reduce", "")
    assert graph.producer("o1") is None
    assert (graph.weights("r0"), graph.weights("o1")) == (1, 0)
    longer = graph.then("unfold", "o1", "r0").then("merge", "c0", size="k")
    assert longer.frontier == {"c1": "k^-1*H", "c2": "k"}
    assert longer.producer("c1").inputs == ["c0"]
    again = graph.start()
    for step in longer.steps:
        again = again.taking(step)
    assert again.text == longer.text
    assert graph.text == text
    with pytest.raises(UserError, match=r"'c9' is no coordinate(.|\n)*one of o1, r0"):
        graph.then("shift", "c9", amount=1)


def test_rules_are_read_from_a_file(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import syno\n\n\n"
        "@syno.rule('U1', 'first', kind='restriction')\n"
        "def first(graph, step):\n    return step.op == 'shift' and 1 / 0 > 1\n\n\n"
        "@syno.rule('U2', 'second', kind='restriction')\n"
        "def second(graph, step):\n    return False\n"
    )
    rules = load_rules(file)
    assert [rule.title for rule in rules] == ["U1 first", "U2 second"]
    with pytest.raises(UserError, match=r"rule 'U1 first' failed\n  found: ZeroDivision.*line 6"):
        Space.enumerate(SPECIFICATION, depth=4, rules=[reported(rule) for rule in rules])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        ("x = 1\n", "there is no rule in"),
        ("x = 1\ny = x / 0\n", r"found: ZeroDivisionError: .*\(line 2\)"),
        ("def f(:\n", "found: SyntaxError"),
        ("import syno\nsyno.rule('U1', 'x', kind='sure')(print)\n", "unknown kind of rule 'sure'"),
    ],
)
def test_a_file_without_rules_is_a_mistake(tmp_path, content, words):
    file = tmp_path / "mine.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=words):
        load_rules(file)
