"""Whether the key in an operator's row is that of its text.

A key depends on the specification that the study began with and on the algorithm that makes it.
`KEY_VERSION` names the algorithm: it rises when an operator gets another key than before. A row is
written with the version when its key follows from its text, with 0 when the key came from
elsewhere: from a trainer with operators of its own, or from `syno train`, which takes operators
under specifications of their own. So a key of another version is never called damaged, and what
such a row holds is checked by its seal alone.
"""

from __future__ import annotations

import functools

from syno._util.checks import parsed_json
from syno._util.errors import UserError
from syno.operators.operator import Operator
from syno.operators.specification import Specification

KEY_VERSION = 1


class Keys:
    """Makes keys of texts; each specification is read once."""

    def __init__(self) -> None:
        self._specifications: dict[str, Specification | None] = {}

    def derived(self, text: str, specification: str) -> str | None:
        """The key of the operator with this text under the specification with this JSON; None
        where they are none of Syno's."""
        if specification not in self._specifications:
            self._specifications[specification] = _specification(specification)
        found = self._specifications[specification]
        if found is None:
            return None
        try:
            return Operator.from_text(text, found).key
        except UserError:
            return None

    def version(self, text: str, key: str, specification: str) -> int:
        """What a new row says of its key: `KEY_VERSION` where it follows from the text, else 0."""
        return KEY_VERSION if self.derived(text, specification) == key else 0


@functools.lru_cache(maxsize=8)
def _specification(content: str) -> Specification | None:
    """The specification with this JSON, None for what is none."""
    try:
        value = parsed_json(content)
        return Specification.from_json(value if isinstance(value, str) else content)
    except (UserError, ValueError):
        return None  # of a space of one's own
