"""Rules: the catalogue, sets of rules, and custom rules.

@syno.rule("U1", "no-shift-of-piece", kind="restriction", steps=["shift"])
def no_shift_of_piece(graph, step):
    '''no Shift of what a Merge made'''
    return graph.maker(step.inputs[0]) == "merge"

syno.Space.enumerate(specification, depth=4, rules=[no_shift_of_piece])
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, path
from syno._util.errors import UserError

Kind = Literal["exact", "approximate", "restriction"]
KINDS: tuple[Kind, ...] = ("exact", "approximate", "restriction")
PRIMITIVES = tuple(_core.primitive_names())

Step = _core.Step
_T = TypeVar("_T")


@dataclass(frozen=True)
class RuleInfo:
    """The description of a rule.

    kind: exact, approximate or restriction. doc: the texts under the headings What, Why, When,
    Soundness, Status and Example.
    """

    id: str
    name: str
    kind: str
    doc: dict[str, str]

    @property
    def status(self) -> str:
        """The maturity of the rule, such as "stable since 0.1"."""
        return self.doc["Status"]

    def as_json(self) -> dict[str, str | dict[str, str]]:
        """Return the description as plain values."""
        named = {"id": self.id, "name": self.name, "kind": self.kind, "status": self.status}
        return named | {"doc": self.doc}


class PartialGraph:
    """A partial graph as a rule sees it: a value that is read, not changed.

    Coordinates go by name: `o0`, `o1`, ... iterate over the output's dimensions, `r0`, `r1`, ...
    are reductions, `c0`, `c1`, ... everything else, in the order in which they were made.
    """

    def __init__(self, core: _core.Graph) -> None:
        self._core = core
        self._steps: list[Step] | None = None

    @property
    def text(self) -> str:
        """The canonical text, one step a line."""
        return self._core.text

    @property
    def frontier(self) -> dict[str, str]:
        """Coordinates that the data is read at, each with its size such as "s^-1*H"."""
        return {self._core.name(id): self._core.extent(id) for id in self._core.frontier}

    @property
    def steps(self) -> list[Step]:
        """The steps from the output on: op, inputs, out, size, amount, causal, dims."""
        if self._steps is None:
            self._steps = self._core.steps
        return self._steps

    @property
    def depth(self) -> int:
        """The number of steps."""
        return self._core.depth

    @property
    def primitives(self) -> dict[str, int]:
        """How many steps use each primitive."""
        return self._core.primitives

    def producer(self, coordinate: str) -> Step | None:
        """The step that made a coordinate; None for an iterator of the output."""
        for step in self.steps:
            if coordinate in step.out:
                return step
        return None

    def maker(self, coordinate: str) -> str:
        """The primitive that made a coordinate; "" for an iterator of the output."""
        step = self.producer(coordinate)
        return "" if step is None else step.op

    def weights(self, coordinate: str) -> int:
        """How many weights hold a coordinate."""
        return sum(any(name == coordinate for name, _ in step.dims) for step in self.steps)

    def start(self) -> PartialGraph:
        """The empty graph of the same output."""
        return PartialGraph(self._core.root())

    def then(
        self,
        op: str,
        *inputs: str,
        size: str = "",
        amount: int = 0,
        causal: bool = False,
        dims: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> PartialGraph:
        """The graph with one more step; `.steps[-1].out` names what it made.

        size: block, factor or extent. dims: the coordinates of a contraction, each with its role
        (keep, drop, join). UserError for a step that makes no sense.
        """
        ids = {self._core.name(id): id for id in self._core.frontier}
        pairs = list(dims.items()) if isinstance(dims, Mapping) else list(dims)
        for name in [*inputs, *(name for name, _ in pairs)]:
            if name not in ids:
                raise UserError(
                    f"'{name}' is no coordinate that the data is read at\n"
                    f"  expected: one of {', '.join(ids)}      got: {name!r}"
                )
        made = self._core.copy()
        shared = [(ids[name], role) for name, role in pairs]
        made.apply(op, [ids[name] for name in inputs], size, amount, causal, shared)
        return PartialGraph(made)

    def taking(self, step: Step) -> PartialGraph:
        """The graph with a step of its own coordinates, such as the one that is asked about."""
        return self.then(
            step.op,
            *step.inputs,
            size=step.size,
            amount=step.amount,
            causal=step.causal,
            dims=step.dims,
        )

    def __repr__(self) -> str:
        return f"<PartialGraph of {self.depth} steps, frontier {self.frontier}>"


Answer = bool | PartialGraph | str | None
Function = Callable[[PartialGraph, Step], Answer]


@dataclass(frozen=True)
class Rule:
    """A rule of one's own; `syno.rule` makes one of a function.

    function(graph, step) is asked about one step on top of a partial graph, by one thread at a
    time. A restriction answers whether the step is left out. An exact or approximate rule answers
    with the graph that is kept instead, a PartialGraph or its text, or None where its pattern does
    not match; the search then refuses the step where the kept graph is legal and costs no more.
    The answer must depend on graph and step alone.

    steps: the primitives that it is asked about; all when empty. doc: in words, the first line
    stands in lists. version: to be changed with the function; id, name, doc and version tell the
    results of one rule from those of another.
    """

    id: str
    name: str
    kind: Kind
    function: Function
    steps: tuple[str, ...] = ()
    doc: str = ""
    version: str = ""

    def __post_init__(self) -> None:
        for what in ("id", "name", "doc", "version"):
            if not isinstance(getattr(self, what), str):
                raise UserError(f"the {what} of a rule is a string, got {getattr(self, what)!r}")
            checks.text(f"the {what} of a rule", getattr(self, what))
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise UserError(
                f"unknown kind of rule {self.kind!r}\n"
                f"  expected: {', '.join(KINDS[:-1])} or {KINDS[-1]}      got: {self.kind!r}"
            )
        if not callable(self.function):
            raise UserError(f"rule '{self.id}' has no function, got {self.function!r}")
        for step in self.steps:
            if not isinstance(step, str) or step not in PRIMITIVES:
                raise UserError(
                    f"rule '{self.id}' names an unknown primitive {checks.shown(step)}\n"
                    f"  expected: {', '.join(PRIMITIVES)}      got: {step!r}"
                )

    @property
    def title(self) -> str:
        """Id and name, as searches count refusals."""
        return f"{self.id} {self.name}"

    @property
    def summary(self) -> str:
        """The first line of the doc, or the name."""
        return self.doc.strip().partition("\n")[0] or self.name

    def __call__(self, graph: PartialGraph, step: Step) -> Answer:
        """What the rule answers about a step on top of a graph."""
        return self.function(graph, step)

    def _asked(self, graph: _core.Graph, step: Step) -> bool | _core.Graph | None:
        """What the library calls. An exception goes on to the caller, with a note of the rule."""
        try:
            answer = self.function(PartialGraph(graph), step)
            if self.kind == "restriction":
                return _yes_or_no(self, answer)
            return _kept(self, answer)
        except Exception as error:
            on = graph.text.rstrip().replace("\n", "\n  ")
            error.add_note(f"in rule {self.title}, asked about '{step.op}' on top of\n  {on}")
            raise


def _yes_or_no(rule: Rule, answer: Answer) -> bool:
    if isinstance(answer, bool):
        return answer
    raise UserError(
        f"rule '{rule.title}' answers {answer!r}\n"
        "  expected: True or False, whether the restriction leaves the step out"
        f"      got: {type(answer).__name__}"
    )


def _kept(rule: Rule, answer: Answer) -> _core.Graph | None:
    if answer is None:
        return None
    if isinstance(answer, PartialGraph):
        return answer._core
    if isinstance(answer, str):
        return _core.Graph.parse(answer)
    raise UserError(
        f"rule '{rule.title}' answers {answer!r}\n"
        f"  expected: the graph that an {rule.kind} rule keeps (a PartialGraph or its text), or "
        f"None      got: {type(answer).__name__}"
    )


def rule(
    id: str,
    name: str,
    *,
    kind: Kind,
    steps: Iterable[str] = (),
    doc: str | None = None,
    version: str = "",
) -> Callable[[Function], Rule]:
    """Make a rule of a function (graph, step); its docstring is the rule's doc."""
    named = (steps,) if isinstance(steps, str) else checks.listed("steps", steps, "primitives")

    def decorate(function: Function) -> Rule:
        words = inspect.getdoc(function) if doc is None else doc
        return Rule(id, name, kind, function, named, "" if words is None else words, version)

    return decorate


@checked(path=path)
def load_rules(path: str | Path) -> list[Rule]:
    """The rules that a Python file defines at its top level, in order.

    The file is run. UserError for a file that cannot be read or run, and for one without rules.
    """
    file = Path(path)
    if not checks.is_file(file):
        raise UserError(
            f"cannot read the rules in '{path}'\n"
            "  expected: a Python file that defines rules with @syno.rule      got: "
            + ("a folder" if checks.is_folder(file) else "no such file")
        )
    name = f"syno_rules_{file.stem}_{abs(hash(file.resolve()))}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(f"cannot read the rules in '{path}': its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(
            f"cannot run the rules in '{path}'\n"
            f"  found: {type(error).__name__}: {error}{_line(error, file)}"
        ) from error
    finally:
        sys.modules.pop(name, None)  # another thread may have read the same file
    found = [value for value in vars(module).values() if isinstance(value, Rule)]
    if not found:
        raise UserError(
            f"there is no rule in '{path}'\n"
            "  expected: at least one function with @syno.rule(ID, NAME, kind=...)      got: none"
        )
    return list(dict.fromkeys(found))


def _line(error: BaseException, file: Path) -> str:
    """Where in the file an error arose, in words."""
    if isinstance(error, SyntaxError):
        return ""
    lines = []
    at = error.__traceback__
    while at is not None:
        if Path(at.tb_frame.f_code.co_filename) == file:
            lines.append(at.tb_lineno)
        at = at.tb_next
    return f" (line {lines[-1]})" if lines else ""


def reported(rule: Rule) -> Rule:
    """The rule for a command: whatever it raises is a UserError that names it and the line."""
    function = rule.function

    def asked(graph: PartialGraph, step: Step) -> Answer:
        try:
            return function(graph, step)
        except Exception as error:
            file = Path(inspect.getsourcefile(function) or "")
            raise UserError(
                f"rule '{rule.title}' failed\n"
                f"  found: {type(error).__name__}: {error}{_line(error, file)}\n"
                f"  asked about '{step.op}' on top of\n{graph.text.rstrip()}"
            ) from error

    return Rule(rule.id, rule.name, rule.kind, asked, rule.steps, rule.doc, rule.version)


def list_rules() -> list[RuleInfo]:
    """Every rule of the catalogue, in the order in which rules are asked."""
    return [
        RuleInfo(rule["id"], rule["name"], rule["kind"], dict(_core.rule_doc_parts(rule["id"])))
        for rule in _core.rule_catalogue()
    ]


def describe_rule(rule: str) -> RuleInfo:
    """A rule by id or name. UserError that lists the rules."""
    if isinstance(rule, str):
        for known in list_rules():
            if rule in (known.id, known.name):
                return known
    rule_set([rule])
    raise AssertionError(f"a set of rules knows '{rule}', the catalogue does not")


def added_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """What a user gave as `rules`. UserError for anything else than rules."""
    if isinstance(rules, (Rule, str)):
        raise UserError(
            f"'rules' is one value\n  expected: a list of rules      got: {checks.shown(rules)}"
        )
    listed = tuple(_listed("rules", rules))
    for one in listed:
        if not isinstance(one, Rule):
            raise UserError(
                f"'rules' holds {checks.shown(one)}, which is no rule\n"
                "  expected: what @syno.rule(ID, NAME, kind=...) makes of a function      got: "
                f"{type(one).__name__}\n"
                "  hint: rules of the catalogue are on unless 'rules_off' names them"
            )
    return listed


def rule_set(off: Iterable[str] = (), added: Iterable[Rule] = ()) -> _core.RuleSet:
    """All rules but those of `off`, by id or name, and those that are added.

    A kind, such as "approximate", stands for all its rules.

    UserError that lists the rules, and for an added rule whose id or name is taken.
    """
    if isinstance(off, str):
        raise UserError(f"'rules_off' is one string\n  expected: a list of rules      got: {off!r}")
    off = _listed("rules_off", off)
    rules = _core.RuleSet()
    for one in added_rules(added):
        rules.add(one.id, one.name, one.kind, one.doc, one.version, list(one.steps), one._asked)
    for rule in off:
        if not isinstance(rule, str):
            raise UserError(f"a rule is named by its id or name, got {checks.shown(rule)}")
        checks.text("the id or name of a rule", rule)
        for id in of_kind(rule) if rule in KINDS else [rule]:
            rules.set(id, False)
    return rules


def _listed(name: str, value: Iterable[_T]) -> Iterable[_T]:
    return checks.listed(name, value, "rules")


def of_kind(kind: str) -> list[str]:
    """The ids of the catalogue's rules of a kind."""
    return [rule["id"] for rule in _core.rule_catalogue() if rule["kind"] == kind]


def switched_off(
    switches: Sequence[tuple[str, bool]], own: Mapping[str, str] | None = None
) -> list[str]:
    """The ids of the rules that are off after all switches (an id, a name or a kind; whether it is
    on). `own` has the ids of a user's rules by id and name. UserError for an unknown rule."""
    states: dict[str, bool] = {}
    for wanted, on in switches:
        if wanted in KINDS:
            states |= dict.fromkeys(of_kind(wanted), on)
        else:
            states[(own or {}).get(wanted) or describe_rule(wanted).id] = on
    return [id for id, on in states.items() if not on]
