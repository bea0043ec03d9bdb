"""A table of bad input: each case says what is wrong, where, and what to do.

Every message has the documented form: one `error: ` line that says what was asked for, then where
it stands, what was expected and found, or what to do; exit code 2, no traceback, nothing on stdout.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from .bad_input import SMALL, Options, check, line, run

SHAPES = {
    "no bracket": ("C_in, H", "expected '['", "column 1"),
    "not closed": ("[C_in, H", "expected ']'", "column 9"),
    "comma at the end": ("[C_in, ]", "expected a name of a variable, got ']'", "column 8"),
    "two commas": ("[C_in,, H]", "expected a name of a variable, got ','", "column 7"),
    "no comma": ("[C_in H]", "expected ']'", "column 7"),
    "text behind": ("[C_in, H] x", "expected the end", "column 11"),
    "empty": ("", "expected '['", "column 1"),
    "no variable": ("[C_in, X]", "unknown variable 'X'", "declare it"),
    "not a letter": ("[C_in, Ĥ]", "expected a name of a variable, got 'Ĥ'", "column 8"),
    "a number": ("[3, H]", "give the number a name", "column 2"),
    "a factor of two": ("[2*C_in, H]", "give the number a name", "column 2"),
    "size one": ("[1, H]", "a dimension of size 1 is not used", "column"),
    "two stars": ("[C_in**H, H]", "write C_in*H for a product, C_in^2 for a power", "column 6"),
    "a square": ("[C_in, H**2]", "a power is written with '^', not '**': write H^2", "column 9"),
    "a quotient": ("[C_in, H/C_in]", "a size has no '/': write C_in^-1*H", "column 9"),
    "a sum": ("[C_in, H+1]", "sizes are products of variables, without '+'", "column 9"),
    "a minus": ("[-H, H]", "expected a name of a variable, got '-'", "column 2"),
    "no power": ("[C_in^, H]", "expected an integer", "column 7"),
    "power zero": ("[C_in^0, H]", "the power of 'C_in' must be a non-zero integer", "column 7"),
    "power too large": ("[C_in^200, H]", "the power of 'C_in'", "100"),
    "power beyond 64 bits": ("[C_in^99999999999999999999, H]", "integer", "column 7"),
    "a primary below": ("[C_in, H*C_in^-1]", "in a denominator", "positive powers only"),
    "unknown flag": ("[C_in: wide, H]", "unknown flag 'wide'", "unordered, causal"),
    "flag missing": ("[C_in:, H]", "expected", "column 7"),
    "both flags": ("[C_in: unordered: causal, H]", "unordered and causal", "in shape"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_a_shape(case: str) -> None:
    shape, *parts = SHAPES[case]
    check(run(line("sample", {"--input": shape})), *parts, f'in shape "{shape}"')


VARIABLES = {
    "no budget": ("C_in", "and a budget", "column 5"),
    "budget missing": ("C_in:", "expected an integer", "column 6"),
    "budget a word": ("C_in: two", "expected an integer", "column 7"),
    "budget negative": ("C_in: -1", "the budget of 'C_in' must be within 0..100", "column 7"),
    "budget too large": ("C_in: 101", "must be within 0..100, got 101", "column 7"),
    "budget a fraction": ("C_in: 1.5", "expected the end", "column 8"),
    "value zero": ("C_in=0: 2", "'C_in' must be a positive integer, got 0", "column 6"),
    "value negative": ("C_in=-3: 2", "'C_in' must be a positive integer, got -3", "column 6"),
    "value missing": ("C_in=: 2", "expected an integer", "column 6"),
    "no name": (": 2", "expected a name of a variable", "column 1"),
    "a digit first": ("2C: 2", "expected a name of a variable", "column 1"),
    "empty": ("", "expected a name of a variable, got the end", "column 1"),
}


@pytest.mark.parametrize("case", VARIABLES)
def test_a_variable(case: str) -> None:
    variable, *parts = VARIABLES[case]
    ended = run(line("enumerate", {"--primary": [variable, "C_out: 2", "H: 1"]}))
    check(ended, *parts, f'in variable "{variable}"')


BINDINGS = {
    "no name": ("=4", "expected a name of a variable, got '='", "column 1"),
    "no value": ("C_in", "expected '='", "column 5"),
    "value missing": ("C_in=", "expected an integer", "column 6"),
    "value a word": ("C_in=many", "expected an integer", "column 6"),
    "value zero": ("C_in=0,C_out=8,H=6", "'C_in' must be a positive integer, got 0", "column 6"),
    "value negative": ("C_in=4,C_out=8,H=-6", "'H' must be a positive integer, got -6", "column"),
    "value a fraction": ("C_in=1.5,C_out=8,H=6", "expected", "column 7"),
    "value beyond 64 bits": ("C_in=99999999999999999999", "integer", "column 6"),
    "given twice": ("C_in=4,C_in=5,C_out=8,H=6", "variable 'C_in' is bound twice", "column 8"),
    "comma at the end": ("C_in=4,", "expected a name of a variable, got the end", "column 8"),
    "semicolons": ("C_in=4;C_out=8", "expected", "column 7"),
}


@pytest.mark.parametrize("case", BINDINGS)
def test_a_binding(case: str) -> None:
    binding, *parts = BINDINGS[case]
    check(run(line("sample", {"--binding": binding})), *parts, f'in binding "{binding}"')


SPECIFICATIONS: dict[str, tuple[Options, Sequence[str]]] = {
    "binding incomplete": (
        {"--binding": "C_in=4"},
        ["gives no value to C_out, H", 'in binding "C_in=4, k=3"', "expected: a value for each of"],
    ),
    "binding with more": (
        {"--binding": "C_in=4,C_out=8,H=6,Q=2"},
        ["unknown variable 'Q'", "in binding", "known variables: "],
    ),
    "declared twice": (
        {"--coefficient": "C_in=3: 1"},
        ["variable 'C_in' is declared twice", "expected: "],
    ),
    "too many variables": (
        {"--coefficient": [f"v{n}=2: 1" for n in range(20)]},
        ["at most 16 are supported, got 23", "what to do: "],
    ),
    "a fraction that is none": (
        {"--input": "[C_in, s^-1*H]", "--coefficient": "s=4: 1"},
        ["s^-1*H is not a positive integer", "in shape"],
    ),
    "no such pair": (
        {"--passed-through": "0:9"},
        ["(0, 9) names a dimension that does not exist", "in [C_in, H] -> [C_out, H]"],
    ),
    "pair of two sizes": (
        {"--passed-through": "0:0"},
        ["joins dimensions of different sizes", "in [C_in, H] -> [C_out, H]"],
    ),
    "pair used twice": (
        {"--passed-through": ["1:1", "1:1"]},
        ["names a dimension twice", "in [C_in, H] -> [C_out, H]", "in one pair at most"],
    ),
    "no pair": ({"--passed-through": "one:two"}, ["'one:two' is not a pair of dimensions"]),
    "no shapes": ({"--input": None, "--output": None}, ["without a specification", "expected: "]),
    "half a shape": ({"--output": None}, ["--output is missing", "expected: "]),
    "two specifications": ({"--preset": "paper/gpt2"}, ["both --preset and shapes", "expected: "]),
    "fit above one": (
        {"--min-fit": "1.5"},
        ["limit 'min_fit' cannot be 1.5", "expected: "],
    ),
    "fit no number": ({"--min-fit": "nan"}, ["limit 'min_fit' cannot be nan", "expected: "]),
    "depth negative": ({"--max-depth": "-1"}, ["'--max-depth'", "-1"]),
    "depth a word": ({"--max-depth": "deep"}, ["'--max-depth'", "'deep' is not a valid int"]),
    "flag a word": ({"--even-windows": "maybe"}, ["'--even-windows'", "'maybe'"]),
    "no layers": ({"--binding": None}, ["no layer", "a value for each of"]),
}


@pytest.mark.parametrize("case", SPECIFICATIONS)
def test_a_specification(case: str) -> None:
    changes, parts = SPECIFICATIONS[case]
    check(run(line("enumerate", changes)), *parts)


LINES: dict[str, tuple[list[str], Sequence[str]]] = {
    "unknown command": (["enumerat"], ["no such command 'enumerat'", "`syno --help`"]),
    "unknown option": (["enumerate", "--dept", "3"], ["no such option '--dept'", "--depth"]),
    "one argument too many": (["enumerate", "x"], ["unexpected extra argument", "--help"]),
    "an argument is missing": (["rules", "show"], ["missing argument 'RULE'", "--help"]),
    "a value is missing": (["enumerate", "--depth"], ["option '--depth' requires an argument"]),
    "no specification": (["enumerate"], ["no specification is given", "presets: "]),
    "unknown preset": (["sample", "--preset", "paper/none"], ["unknown preset 'paper/none'"]),
    "a specification without layers": (
        ["enumerate", "--input", "[H, W]", "--output", "[H, W]", "--primary=H:1", "--primary=W:1"],
        ["no layer to enumerate operators for", "a value for each of H, W"],
    ),
    "unknown rule": (["rules", "show", "R99"], ["unknown rule 'R99'", "known rules: "]),
    "unknown kind of rule": (["rules", "list", "--kind", "soft"], ["'soft' is not one of"]),
    "unknown figure": (["bench", "sythesis"], ["no such command 'sythesis'", "--help"]),
    "unknown key": (["show", "8e296a06"], ["no file '8e296a06'", "expected: "]),
    "no such file": (
        ["explain", "op.txt", "--preset", "paper/resnet18"],
        ["there is no operator file 'op.txt'", "expected: "],
    ),
}


@pytest.mark.parametrize("case", LINES)
def test_a_line(case: str) -> None:
    arguments, parts = LINES[case]
    check(run(arguments), *parts)


OPTIONS: dict[str, tuple[str, Options, Sequence[str]]] = {
    "rule without a state": ("sample", {"--rule": "R6a"}, ["does not switch a rule", "R6a=off"]),
    "rule without a name": ("sample", {"--rule": "=off"}, ["does not switch a rule", "ID=off"]),
    "rule with another state": ("sample", {"--rule": "R6a=no"}, ["'R6a=no'", "ID=off or ID=on"]),
    "no such rule": ("enumerate", {"--rule": "R99=off"}, ["unknown rule 'R99'", "R6a view-above"]),
    "no operators to draw": (
        "enumerate",
        {"--sample": "0"},
        ["'--sample'", "0 is not in the range"],
    ),
    "strata without draws": (
        "enumerate",
        {"--stratify": "macs"},
        ["--stratify is given without --sample", "expected: --sample K"],
    ),
    "unknown strata": (
        "enumerate",
        {"--sample": "1", "--stratify": "cost"},
        ["'cost' is not one of"],
    ),
    "seed a word": ("enumerate", {"--seed": "x"}, ["'--seed'", "'x' is not a valid integer"]),
    "seed negative": (
        "enumerate",
        {"--seed": "-1", "--sample": "1", "--depth": "2"},
        ["'seed' is an integer of at least 0, got -1", "expected: "],
    ),
    "seed of a sample": (
        "sample",
        {"--seed": "-1"},
        ["'seed' is an integer of at least 0, got -1", "expected: "],
    ),
    "depth zero": ("enumerate", {"--depth": "0"}, ["'--depth'", "x>=1"]),
    "depth beyond the limit": (
        "enumerate",
        {"--depth": "13"},
        ["--depth 13 is more than the specification allows", "add --max-depth 13"],
    ),
    "depth of the bench": ("bench", {"--depth": "13"}, ["--depth 13 is more than", "expected: "]),
    "no nodes": ("enumerate", {"--max-nodes": "0"}, ["'--max-nodes'", "x>=1"]),
    "nodes a word": ("enumerate", {"--max-nodes": "all"}, ["'--max-nodes'", "'all'"]),
    "no memory": ("enumerate", {"--max-memory": "0"}, ["'0' is not an amount of memory", "500M"]),
    "memory in stones": (
        "enumerate",
        {"--max-memory": "5st"},
        ["'5st' is not an amount", "expected: "],
    ),
    "no seconds": ("enumerate", {"--max-seconds": "0"}, ["'--max-seconds'", "x>0"]),
    "seconds of the bench": ("bench", {"--seconds": "-1"}, ["'--seconds'", "x>0"]),
    "no threads": ("enumerate", {"--threads": "0"}, ["'--threads'", "1<=x<="]),
    "unknown bound": ("enumerate", {"--bound": "tight"}, ["'tight' is not one of", "'loose'"]),
    "resume without a file": (
        "enumerate",
        {"--resume": ""},
        ["--resume is given without a file", "expected: --file PATH"],
    ),
    "resume without its file": (
        "enumerate",
        {"--resume": "", "--file": "nothing.space"},
        ["cannot read the file of an enumeration 'nothing.space'", "no such file", "what to do: "],
    ),
    "file in no folder": (
        "enumerate",
        {"--file": "nowhere/a.space"},
        ["cannot write the file", "no folder 'nowhere'", "what to do: "],
    ),
    "count zero": ("sample", {"--count": "0"}, ["'--count'", "x>=1"]),
    "nothing connects": (
        "sample",
        {"--max-depth": "1"},
        ["no operator connects the shapes", "what to do: "],
    ),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_an_option(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command, changes, parts = OPTIONS[case]
    arguments = line(command, changes)
    if command == "bench":
        arguments.insert(1, "synthesis")
    check(run(arguments), *parts)


# Operators.

TEXT = """syno operator 1
out [C_out, H]
in [C_in, H]
reduce C_in -> i
reduce k -> a
contract o0:drop i:keep a:keep
unfold o1 a -> h
match i h
"""
TEXTS = {
    "empty": ("", "is empty", "expected: an operator's text or JSON"),
    "blank": ("\n \n", "is empty", "expected: "),
    "another language": ("hello\n", "not a Syno text", 'in line 1: "hello"'),
    "a newer version": (TEXT.replace("operator 1", "operator 2"), "from a newer Syno", "line 1"),
    "a partial graph": (TEXT.replace("operator 1", "graph 1"), "not a Syno text", "line 1"),
    "no out": (TEXT.replace("out [C_out, H]\n", ""), "expected the line 'out' first", "line 2"),
    "no in": (TEXT.replace("in [C_in, H]\n", ""), "the line 'in' is missing", "in line 7"),
    "no match": (TEXT.replace("match i h\n", ""), "the line 'match' is missing", "in line 7"),
    "two outs": (TEXT.replace("in [C_in, H]", "out [H]"), "a second line 'out'", "in line 3"),
    "malformed shape": (TEXT.replace("[C_in, H]", "[C_in, H"), "expected ']'", "in line 3"),
    "unknown step": (TEXT.replace("unfold", "fold"), "unknown step 'fold'", "in line 7"),
    "unknown coordinate": (TEXT.replace("o1 a", "o1 q"), "unknown coordinate 'q'", "in line 7"),
    "no arrow": (TEXT.replace("-> h", "h"), "expected: unfold OLD WINDOW", "in line 7"),
    "two results": (TEXT.replace("-> h", "-> h w"), "produces 1 coordinates, got 2", "in line 7"),
    "too few operands": (
        TEXT.replace("o1 a ->", "o1 ->"),
        "expected: unfold OLD WINDOW",
        "in line 7",
    ),
    "unknown role": (
        TEXT.replace("i:keep", "i:hold"),
        "keep, drop or join, got 'i:hold'",
        "in line 6",
    ),
    "no role": (TEXT.replace("i:keep", "i"), "keep, drop or join, got 'i'", "in line 6"),
    "taken twice": (TEXT.replace("a:keep", "a:keep a:keep"), "'a' is taken twice", "in line 6"),
    "no weight": (
        TEXT.replace("contract o0:drop i:keep a:keep", "contract"),
        "a contraction takes at least one coordinate",
        "in line 6",
    ),
    "joined, but in no weight": (TEXT.replace("o0:drop", "o0:join"), "'drop'", "in line 6"),
    "made twice": (TEXT.replace("-> a", "-> i"), "coordinate 'i' is made twice", "in line 5"),
    "used up": (
        TEXT.replace("match i h", "match i o1"),
        "each of 'i', 'h'      got: 'i', 'o1'",
        'in line 8: "match i o1"',
    ),
    "matched twice": (TEXT.replace("match i h", "match i i"), "each coordinate", "line 8"),
    "another size": (
        TEXT.replace("match i h", "match h i"),
        "coordinate 'h' cannot be matched with input dimension 0",
        "line 8",
    ),
    "too few matched": (TEXT.replace("match i h", "match i"), "names 1 coordinates", "line 8"),
    "more behind": (TEXT + "reduce k -> b\n", "nothing may follow", "in line 9"),
    "size of numbers": (TEXT.replace("reduce k", "reduce 3"), "give the number a name", "line 5"),
    "size one": (TEXT.replace("reduce k", "reduce 1"), "a size of 1", "in line 5"),
    "no size": (TEXT.replace("reduce k -> a", "reduce -> a"), "expected a name", "in line 5"),
    "no amount": (
        TEXT.replace("unfold o1 a", "shift o1"),
        "expected: shift OLD AMOUNT",
        "in line 7",
    ),
    "amount zero": (
        TEXT.replace("unfold o1 a", "shift o1 0"),
        "a shift by 0 does nothing",
        "in line 7",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_an_operator_as_text(case: str) -> None:
    text, *parts = TEXTS[case]
    check(run(["show", "-"], text), *parts, "standard input")


FORM = {
    "out": [{"size": "C_out"}, {"size": "H"}],
    "in": [{"size": "C_in"}, {"size": "H"}],
    "steps": [
        {"op": "reduce", "size": "C_in", "out": "i"},
        {"op": "reduce", "size": "k", "out": "a"},
        {"op": "contract", "dims": [["o0", "drop"], ["i", "keep"], ["a", "keep"]]},
        {"op": "unfold", "in": ["o1", "a"], "out": "h"},
    ],
    "match": ["i", "h"],
}


def form(change: Callable[[dict], object]) -> str:
    data = json.loads(json.dumps(FORM))
    change(data)
    return json.dumps(data)


FORMS = {
    "cut off": (json.dumps(FORM)[:40], "not valid JSON", "line 1, column"),
    "no match": (form(lambda d: d.pop("match")), "the field 'match' is missing", "expected: "),
    "a field too many": (form(lambda d: d.update(x=1)), "the field 'x' is not known", "out, in"),
    "steps a number": (form(lambda d: d.update(steps=3)), "'steps' is not a list", "got: the num"),
    "unknown op": (
        form(lambda d: d["steps"][0].update(op="sum")),
        "the step's 'op' is not known",
        "step 1",
    ),
    "size a number": (
        form(lambda d: d["steps"][1].update(size=3)),
        "the field 'size' is malformed",
        "got: the number 3",
    ),
    "size malformed": (form(lambda d: d["steps"][1].update(size="k^")), "expected", "step 2"),
    "unknown coordinate": (
        form(lambda d: d["steps"][3].update({"in": ["o1", "q"]})),
        "unknown coordinate 'q'",
        "step 4 (unfold)",
    ),
    "made twice": (form(lambda d: d["steps"][1].update(out="i")), "is made twice", "step 2"),
    "unknown role": (
        form(lambda d: d["steps"][2].update(dims=[["i", "hold"]])),
        "the field 'dims' is malformed",
        "keep, drop",
    ),
    "match too short": (form(lambda d: d.update(match=["i"])), "names 1 coordinates", "'match'"),
    "another size": (
        form(lambda d: d.update(match=["h", "i"])),
        "coordinate 'h' cannot be matched with input dimension 0",
        "extent",
    ),
}


@pytest.mark.parametrize("case", FORMS)
def test_an_operator_as_json(case: str) -> None:
    text, *parts = FORMS[case]
    check(run(["show", "-"], text), *parts, "standard input")
    check(run(["show", text]), *parts, "the operator on the command line")


OPERANDS: dict[str, tuple[str, Options, Sequence[str]]] = {
    "a formula": (
        "y[o,h] = sum(i:C_in) x[i,h+1] * w0[o,i]",
        {},
        ["index 'h+1' of x is outside", "column 26", "(h+1) mod H", "on the command line"],
    ),
    "a name that no file can have": ("a" * 5000, {}, ["no operator file", "expected: "]),
    "a folder": (".", {}, ["the folder '.' contains no operator", "expected: "]),
    "other variables": (
        TEXT.replace("C_in", "C"),
        {},
        ["variables that the specification does not know: C", "known variables: "],
    ),
    "other shapes": (
        TEXT.replace("[C_in, H]", "[H, C_in]").replace("match i h", "match h i"),
        {},
        ["the specification asks for [C_in, H] -> [C_out, H]", "hint: "],
    ),
    "no specification": (
        TEXT,
        dict.fromkeys(SMALL),
        ["no specification is given", "expected: --preset NAME"],
    ),
    "no layers": (TEXT, {"--binding": None}, ["without layers", "expected: at least one"]),
    "an unknown rule": (TEXT, {"--rule": "R0=off"}, ["unknown rule 'R0'", "known rules: "]),
    "no store": (
        TEXT,
        {"--store": "none.db"} | dict.fromkeys(SMALL),
        ["none.db", "what to do"],
    ),
}


@pytest.mark.parametrize("command", ["explain", "why-not"])
@pytest.mark.parametrize("case", OPERANDS)
def test_an_operand(
    case: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    op, changes, parts = OPERANDS[case]
    command_name, *rest = line(command, changes)
    check(run([command_name, op, *rest]), *parts)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    file = tmp_path / "op.txt"
    file.write_bytes(b"syno operator 1\n\xff\xfe")
    check(run(["show", file]), f"cannot read the operator file '{file}'", "expected: ")
    check(run(["show", "-"], b"\xff\xfe"), "cannot read the operator from standard input")


def test_the_table_is_long_enough() -> None:
    tables = (SHAPES, VARIABLES, BINDINGS, SPECIFICATIONS, LINES, OPTIONS, TEXTS, FORMS, OPERANDS)
    assert sum(len(table) for table in tables) >= 150
