"""Space: all operators of a specification up to a depth, listed once and reached by index."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from syno import _core
from syno._util import checks
from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.space.options import ENUMERATED_NODES
from syno.space.rules import Rule, added_rules, rule_set

Progress = Callable[[_core.EnumerateStatus], bool]


class Space:
    """The operators of a specification, one a semantic key, by depth and key.

    `Space.listed` makes one, `save` and `load` keep it in a file. It is a sequence of operators:
    `space[i]`, `len(space)`. A graph costs some bytes, an operator is built when it is asked for.
    """

    def __init__(
        self,
        core: _core.Space,
        specification: Specification,
        *,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        ended: str = "complete",
    ) -> None:
        self._core = core
        self._specification = specification
        self._rules_off = tuple(rules_off)
        self._added = tuple(rules)
        self._ended = ended

    @classmethod
    def listed(
        cls,
        specification: Specification,
        *,
        depth: int = 0,
        max_nodes: int = ENUMERATED_NODES,
        max_memory: int = 0,
        max_seconds: float = 0.0,
        threads: int = 0,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
        bound: str = "full",
        progress: Progress | None = None,
        on_limit: Callable[[Space], None] | None = None,
        before: Space | None = None,
    ) -> Space:
        """Lists a specification under growing depth limits, up to a budget.

        depth: primitives in an operator; 0 takes the specification's max_depth.
        max_nodes: partial graphs to visit, over all limits. max_memory: bytes of tables and
            graphs; 0 for no limit. max_seconds: 0 for no limit.
        threads: 0 for all cores; the result does not depend on it.
        rules_off: rules that are not asked, by id or name.
        rules: rules of one's own (`syno.rule`), asked after those of the catalogue.
        bound: "full", "loose" or "none": the completion bound; the operators are the same.
        progress: called now and then; False ends the listing like a spent budget.
        on_limit: called with the space of each depth limit that was listed completely.
        before: a space of the same specification and rules to go on from.

        Where a budget ends the listing, the last complete depth limit is the result, or what was
        found when there is none.
        """
        off, added = checks.names("rules_off", rules_off), added_rules(rules)
        check_layers(specification)
        for name, value, least in (
            ("max_nodes", max_nodes, 1),
            ("max_memory", max_memory, 0),
        ):
            checks.whole(f"'{name}'", value, least)

        checks.whole("'depth'", depth, least=0, most=checks.MOST_INT)
        check_threads(threads, least=0)

        def listed(core: _core.Space) -> None:
            if on_limit is not None:
                on_limit(cls(core, specification, rules_off=off, rules=added))

        core, ended = _core.deepen(
            specification._core,
            rule_set(off, added),
            depth,
            max_nodes,
            max_memory,
            checks.number("'max_seconds'", max_seconds),
            threads,
            checks.text("'bound'", bound),
            progress,
            listed,
            None if before is None else before._core,
        )
        return cls(core, specification, rules_off=off, rules=added, ended=ended)

    # As a sequence.

    def __len__(self) -> int:
        return len(self._core)

    def __getitem__(self, index: int) -> Operator:
        checks.whole("an operator's index", index)
        if not -len(self) <= index < len(self):
            raise IndexError(f"operator {index} of {len(self)}")
        index %= len(self)
        core = self._core.op(self._specification._core, index)
        return Operator(core, self._specification, key=self._core.key(index))

    def __iter__(self) -> Iterator[Operator]:
        return (self[index] for index in range(len(self)))

    def key_of(self, index: int) -> str:
        """The semantic key of the operator with this index."""
        return self.key(index)

    def key(self, index: int) -> str:
        """The semantic key of the operator with this index, without building it."""
        return self._core.key(self._place(index))

    def keys(self) -> set[str]:
        """The semantic keys of all operators."""
        return {self._core.key(index) for index in range(len(self))}

    def depth_of(self, index: int) -> int:
        """Primitives of the operator with this index."""
        return self._core.depth(self._place(index))

    def _place(self, index: int) -> int:
        return checks.whole("an operator's index", index, least=0, most=len(self) - 1)

    def draw(
        self, count: int, seed: int = 0, stratify: str = "none", threads: int = 0
    ) -> list[Operator]:
        """Distinct operators, at most `count`; the same seed gives the same ones.

        stratify: "none" draws uniformly; "macs" and "params" cut the operators in order of their
        cost into `count` groups and draw one of each; "primitives" lets the multisets of
        primitives take turns.
        """
        for name, value in (("count", count), ("seed", seed)):
            checks.whole(f"'{name}'", value, least=0)
        check_threads(threads, least=0)
        spec = self._specification._core
        drawn = _core.sample_operators(
            self._core, spec, count, seed, checks.text("'stratify'", stratify), threads
        )
        return [self[index] for index in drawn]

    # What was found.

    @property
    def specification(self) -> Specification:
        """What was listed."""
        return self._specification

    @property
    def shapes(self) -> str:
        """The shapes of the specification, as "input -> output"."""
        return self._core.spec_text

    @property
    def rules(self) -> str:
        """The version of the set of rules."""
        return self._core.rules

    @property
    def rules_off(self) -> tuple[str, ...]:
        """Rules that were not asked."""
        return self._rules_off

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        """Rules of one's own that were asked."""
        return self._added

    @property
    def rules_added(self) -> tuple[str, ...]:
        """Rules of one's own that were asked, by id and name."""
        return tuple(rule.title for rule in self._added)

    @property
    def ended(self) -> str:
        """Why the listing ended: "complete", "stopped" or the name of a budget."""
        return self._ended

    @property
    def complete_depth(self) -> int:
        """The largest depth limit that was listed completely."""
        return self._core.complete_depth

    @property
    def depth_limit(self) -> int:
        """The depth limit that is counted here; more than complete_depth when it is unfinished."""
        return self._core.depth_limit

    @property
    def exhausted(self) -> bool:
        """Whether that is the depth asked for."""
        return self._core.exhausted

    def counts(self) -> dict[str, int]:
        """graphs, structures (graphs with a matching to the input), operators (distinct keys).

        nodes: partial graphs under the last depth limit; visited: over all limits.
        """
        return {
            "graphs": self._core.graph_count,
            "structures": self._core.structures,
            "operators": len(self),
            "nodes": self._core.node_count,
            "visited": self._core.visited,
        }

    def by_depth(self) -> list[dict[str, int]]:
        """Complete graphs and operators by their number of primitives, without empty rows."""
        rows = zip(self._core.graphs_by_depth(), self._core.operators_by_depth(), strict=True)
        return [
            {"depth": depth, "graphs": graphs, "operators": operators}
            for depth, (graphs, operators) in enumerate(rows)
            if graphs
        ]

    def by_primitives(self) -> dict[str, int]:
        """Operators by multiset of primitives, the most frequent first."""
        counts = self._core.operators_by_primitives()
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def rejections(self) -> dict[str, int]:
        """How many steps and operators were refused under the last depth limit, by reason."""
        return dict(sorted(self._core.rejections.items(), key=lambda item: -item[1]))

    def signature(self) -> str:
        """A number for the set of structures.

        It does not depend on threads, names of variables or the order of their declaration.
        """
        return self._core.signature()

    # Files.

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the space to a file: under another name first, so a file is never half written.

        UserError when it cannot be written.
        """
        target = Path(path)
        check_writable(target)
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        try:
            rules = rule_set(self._rules_off, self._added)
            _core.save_space(self._core, str(part), self._specification._core, rules)
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            part.replace(target)
        except OSError as error:
            raise UserError(_cannot_write(target, error.strerror or str(error))) from error
        finally:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        specification: Specification,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
    ) -> Space:
        """Reads a file of `save`. UserError for a damaged one, and for one that was made for
        another specification or with other rules; the message says what differs.
        """
        _check_readable(Path(path))
        off, added = checks.names("rules_off", rules_off), added_rules(rules)
        try:
            core = _core.load_space(str(path), str(path), specification._core, rule_set(off, added))
        except UnicodeDecodeError as error:  # of a message that quotes bytes of the file
            raise UserError(error.object.decode("utf-8", "backslashreplace")) from None
        ended = "complete" if core.exhausted else ""
        return cls(core, specification, rules_off=off, rules=added, ended=ended)

    def __repr__(self) -> str:
        return (
            f"<Space of {len(self):,} operators, complete up to depth {self.complete_depth}: "
            f"{self.shapes}>"
        )


def check_layers(specification: object) -> None:
    """UserError unless it is a specification with a layer."""
    if not isinstance(specification, Specification):
        raise UserError(f"expected a Specification, got {type(specification).__name__}")
    if specification.full_bindings:
        return
    needed = [v for v in specification.variables if v not in specification.defaults]
    raise UserError(
        "the specification has no layer to list operators for\n"
        f"  in {specification!r}\n"
        "  expected: at least one binding      got: none\n"
        f"  what to do: give the sizes of a layer: a value for each of {', '.join(needed)}"
    )


def check_writable(path: Path) -> None:
    """UserError unless a file of this name can be made or replaced."""
    folder = path.parent
    with checks.from_file("cannot write the file of an enumeration", path):
        if path.is_dir():
            raise UserError(_cannot_write(path, "a folder"))
    if not folder.is_dir():
        raise UserError(_cannot_write(path, f"no folder '{folder}'"))
    if not os.access(folder, os.W_OK):
        raise UserError(_cannot_write(path, f"the folder '{folder}' may not be written"))


def _cannot_write(path: Path, found: str) -> str:
    return (
        f"cannot write the file of an enumeration '{path}'\n"
        f"  expected: a file in a folder that exists and may be written      got: {found}\n"
        "  what to do: name a file that can be written, or free some space"
    )


def _check_readable(path: Path) -> None:
    found = ""
    try:
        if stat.S_ISREG(path.stat().st_mode):
            with path.open("rb"):
                return
        found = "a folder" if path.is_dir() else "no regular file"
    except FileNotFoundError:
        found = "no such file"
    except OSError as error:
        found = error.strerror or str(error)
    except ValueError as error:  # a NUL character
        found = str(error)
    raise UserError(
        f"cannot read the file of an enumeration '{path}'\n"
        f"  expected: a file that `syno enumerate --file` wrote      got: {found}\n"
        "  what to do: name a file that exists and may be read"
    )
