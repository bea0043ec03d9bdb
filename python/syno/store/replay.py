"""What the tables must hold by the log of a study: each event says what it stored and changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from syno.store.raw import Values
from syno.store.records import COMPLETED, PENDING
from syno.store.schema import value_of


@dataclass
class Expected:
    """A proposal by the log; operator: its id, None for a baseline; created: when it was asked."""

    ask: int
    operator: int | None
    created: str
    state: str = PENDING
    rung: int = 0


@dataclass
class Failures:
    """The failures of an operator that count against it, by the log."""

    count: int
    kind: str
    reason: str
    updated: str


class LogReplay:
    """The log of one study up to some event.

    keys: of the operators, by id. stored: (table, id) of each row that must be there, with its
    seal.
    """

    def __init__(self, keys: Mapping[int, str]) -> None:
        self._keys = keys
        self.proposals: dict[int, Expected] = {}
        self.failures: dict[int, Failures] = {}
        self.stored: dict[tuple[str, int], str] = {}

    def take(self, event: Values) -> None:
        """The next event, as the database has it. ValueError when it is none that Syno writes."""
        try:
            data, stored = value_of(event["data"]), value_of(event["stored"])
            self._take(event["kind"], data, stored, event["created"])
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"its content is not that of the kind '{event['kind']}'") from error

    def _take(self, kind: str, data: Values, stored: Values, created: str) -> None:
        gone = {"evaluation": stored.pop("removed", []), **stored.pop("taken_back", {})}
        reopened = stored.pop("reopened", [])
        for table, rows in stored.items():
            self.stored |= {(table, int(row)): seal for row, seal in rows.items()}
        if kind == "asked":
            operator = next((int(row) for row in stored.get("operator", {})), None)
            self.proposals[data["proposal"]] = Expected(data["ask"], operator, created)
        elif kind == "told":
            self.proposals[data["proposal"]].state = COMPLETED
        elif kind == "promoted":
            found = self.proposals[data["proposal"]]
            found.state, found.rung = PENDING, data["rung"]
        elif kind == "failed":
            self._fail(data, created)
        elif kind == "released":
            self._release(data["key"])
        for place in [(table, int(row)) for table, rows in gone.items() for row in rows]:
            self.stored.pop(place, None)
        for proposal in reopened:
            self.proposals[proposal].state = PENDING

    def _fail(self, data: Values, created: str) -> None:
        operator = self.proposals[data["proposal"]].operator
        if operator is None:
            raise KeyError("a baseline has no failures")
        before = self.failures.get(operator)
        count = 1 + (0 if before is None else before.count)
        self.failures[operator] = Failures(count, data["failure"], data["reason"], created)

    def _release(self, key: str) -> None:
        for operator in [o for o in self.failures if self._keys.get(o) == key]:
            del self.failures[operator]
