"""Spaces: all operators of a specification up to a depth, enumerated once, accessed by index."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from syno import _core
from syno._util import checks
from syno._util.arguments import checked, instance, path
from syno._util.errors import UserError
from syno._util.threads import check_threads
from syno.operators.operator import Operator
from syno.operators.specification import Specification
from syno.runs.files import replacing
from syno.space.options import ENUMERATED_NODES
from syno.space.orbits import orbits
from syno.space.rules import Rule, added_rules, rule_set

Progress = Callable[[_core.EnumerateStatus], bool]


class Space:
    """The operators of a specification, one for each semantic key, sorted by depth and key.

    `Space.enumerate` creates a space; `save` and `load` store it in a file. A space is a sequence
    of operators: `space[i]`, `len(space)`. It stores a few bytes for each graph and builds an
    operator when it is accessed.
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
        self._orbits: list[list[int]] | None = None

    @classmethod
    def enumerate(
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
        """Enumerate the operators of a specification under growing depth limits.

        Args:
            depth: maximum number of primitives in an operator; 0 uses the `max_depth` of the
                specification.
            max_nodes: maximum number of partial graphs to visit, over all depth limits.
            max_memory: maximum memory of graphs and tables in bytes; 0 for no limit.
            max_seconds: time limit in seconds; 0 for no limit.
            threads: number of threads; 0 uses all cores. The result does not depend on it.
            rules_off: rules to switch off, by id or name.
            rules: custom rules (`syno.rule`), applied after those of the catalogue.
            bound: the completion bound: "full", "loose" or "none". The operators are the same.
            progress: called regularly; the enumeration stops if it returns False.
            on_limit: called with the space of each depth limit that is completed.
            before: a space of the same specification and rules to continue from.

        Returns:
            The space of the last completed depth limit. If a limit ends the enumeration before
            any depth limit is completed, the space holds what was found until then.
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

        def completed(core: _core.Space) -> None:
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
            completed,
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
        """The number of primitives of the operator with this index."""
        return self._core.depth(self._place(index))

    def _place(self, index: int) -> int:
        return checks.whole("an operator's index", index, least=0, most=len(self) - 1)

    def sample(
        self, count: int, seed: int = 0, stratify: str = "none", threads: int = 0
    ) -> list[Operator]:
        """Sample distinct operators, at most `count`; the same seed gives the same operators.

        If the specification names symmetries, they are the first ones of distinct orbits.

        Args:
            count: the maximum number of operators.
            seed: the seed of the random numbers.
            stratify: "none" samples uniformly; "macs" and "params" sort the operators by their
                cost, divide them into `count` groups and sample one operator from each;
                "primitives" takes the multisets of primitives in turn.
            threads: number of threads; 0 uses all cores.
        """
        for name, value in (("count", count), ("seed", seed)):
            checks.whole(f"'{name}'", value, least=0)
        check_threads(threads, least=0)
        spec = self._specification._core
        symmetric = bool(self._specification.symmetries)
        wanted = len(self) if symmetric and stratify == "none" else count
        sampled = _core.sample_operators(
            self._core, spec, wanted, seed, checks.text("'stratify'", stratify), threads
        )
        if symmetric:
            first = {index: orbit[0] for orbit in self.orbits() for index in orbit}
            if stratify == "none":  # a random order of all: uniform over the first ones
                sampled = [index for index in sampled if first[index] == index][:count]
            else:
                sampled = list(dict.fromkeys(first[index] for index in sampled))
        return [self[index] for index in sampled]

    # What was found.

    @property
    def specification(self) -> Specification:
        """The specification of the operators."""
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
        """The rules that were switched off, by id or name."""
        return self._rules_off

    @property
    def custom_rules(self) -> tuple[Rule, ...]:
        """The custom rules that were applied."""
        return self._added

    @property
    def rules_added(self) -> tuple[str, ...]:
        """The custom rules that were applied, by id and name."""
        return tuple(rule.title for rule in self._added)

    @property
    def ended(self) -> str:
        """Why the enumeration ended: "complete", "stopped" or the name of a limit."""
        return self._ended

    @property
    def complete_depth(self) -> int:
        """The largest completed depth limit."""
        return self._core.complete_depth

    @property
    def depth_limit(self) -> int:
        """The depth limit of the counts; above `complete_depth` if it is not completed."""
        return self._core.depth_limit

    @property
    def exhausted(self) -> bool:
        """Whether the requested depth is completed."""
        return self._core.exhausted

    def counts(self) -> dict[str, int]:
        """Count graphs, structures and operators.

        Returns:
            graphs: complete graphs; structures: graphs with a matching to the input that pass all
            conditions; operators: distinct semantic keys; nodes: partial graphs under the last
            depth limit; visited: partial graphs over all depth limits. If the specification names
            symmetries, also orbits: operators up to these symmetries.
        """
        return ({"orbits": len(self.orbits())} if self._specification.symmetries else {}) | {
            "graphs": self._core.graph_count,
            "structures": self._core.structures,
            "operators": len(self),
            "nodes": self._core.node_count,
            "visited": self._core.visited,
        }

    def orbits(self) -> list[list[int]]:
        """Group the operators that the symmetries of the specification map onto each other.

        Returns:
            The indices of the operators of each orbit, in the order of the first ones. Without
            symmetries, each operator is an orbit.
        """
        if self._orbits is None:
            if self._specification.symmetries:
                self._orbits = orbits(list(self), self._specification)
            else:
                self._orbits = [[index] for index in range(len(self))]
        return self._orbits

    def by_depth(self) -> list[dict[str, int]]:
        """Count complete graphs and operators by number of primitives, without empty rows."""
        rows = zip(self._core.graphs_by_depth(), self._core.operators_by_depth(), strict=True)
        return [
            {"depth": depth, "graphs": graphs, "operators": operators}
            for depth, (graphs, operators) in enumerate(rows)
            if graphs
        ]

    def by_primitives(self) -> dict[str, int]:
        """Count operators by multiset of primitives, the most frequent multiset first."""
        counts = self._core.operators_by_primitives()
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def rejections(self) -> dict[str, int]:
        """Count the rejected steps and operators under the last depth limit, by reason."""
        return dict(sorted(self._core.rejections.items(), key=lambda item: -item[1]))

    def signature(self) -> str:
        """Return a number that identifies the set of structures.

        It does not depend on threads, names of variables or the order of their declaration.
        """
        return self._core.signature()

    # Files.

    @checked(path=path)
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the space to a file.

        The file is written under another name first, so that it is never incomplete.

        Raises:
            UserError: the file cannot be written.
        """
        target = Path(path)
        check_writable(target)
        try:
            rules = rule_set(self._rules_off, self._added)
            with replacing(target) as part:
                _core.save_space(self._core, str(part), self._specification._core, rules)
        except OSError as error:
            raise UserError(_cannot_write(target, error.strerror or str(error))) from error

    @classmethod
    @checked(path=path, specification=instance(Specification))
    def load(
        cls,
        path: str | os.PathLike[str],
        specification: Specification,
        rules_off: Iterable[str] = (),
        rules: Iterable[Rule] = (),
    ) -> Space:
        """Read a file that `save` wrote.

        Raises:
            UserError: the file is damaged, or was written for another specification or with other
                rules; the message names the difference.
        """
        _check_readable(Path(path))
        off, added = checks.names("rules_off", rules_off), added_rules(rules)
        try:
            core = _core.load_space(str(path), str(path), specification._core, rule_set(off, added))
        except UnicodeDecodeError as error:  # from a message that quotes bytes of the file
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
        "the specification has no layer to enumerate operators for\n"
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
