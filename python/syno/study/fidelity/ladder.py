"""Ladders: the rungs of successive halving. This module does not need torch.

Every operator is trained at the lowest rung, and the best operators are promoted and train longer.

    rung 2        o              all images, 32 px, many epochs
    rung 1      o o o            the best 1/eta of those below
    rung 0    o o o o o o o o o  few images, 16 px, few epochs

`asha.py` decides which operators are promoted. A rung is a `Fidelity` and a share of the width of
the network. Ladders are named files in `ladders/`, or files of the user.

A rung that only adds epochs to the rung below may continue from the checkpoint of a promoted
operator. It does so if a training can pause there without a loss of accuracy: with a constant
learning rate, and at the end of a cycle of a cyclic one. Then the rungs are parts of one training,
that of the highest of them, bit for bit. Every other schedule lowers the learning rate towards the
end of the training. There, each rung is a complete training from the initial weights, because a
training that is cut while its learning rate is high ranks operators by an intermediate state. A
rung with other images, another resolution or another width is a complete training as well: its
accuracy then depends on its fidelity only, and not on the ladder that contains it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from syno._util import checks
from syno._util.errors import UserError, nearest
from syno._util.file_catalogue import FileCatalogue
from syno.store.documents import LadderDocument, RungDocument

if TYPE_CHECKING:
    from syno.train import Fidelity

DEFAULT_ETA = 3
_FILES = FileCatalogue("ladder", "syno.study.fidelity", "ladders")
# No rung may have less of these than the rung below.
_RISING = ("images", "resolution", "epochs", "width")


@dataclass(frozen=True)
class Rung:
    """One rung: a fidelity for images or custom data, and the share of the network's width."""

    fidelity: Fidelity
    width: float = 1.0

    @property
    def name(self) -> str:
        """The name of the fidelity, which is the `rung` of its evaluations in the store."""
        return self.fidelity.name

    def amount(self, name: str) -> float:
        """Return `images`, `resolution`, `epochs` or `width`; infinity for all images."""
        value = self.width if name == "width" else getattr(self.fidelity, name)
        return float("inf") if value is None else checks.number(f"'{name}' of a rung", value)

    def is_same_but_longer(self, below: Rung) -> bool:
        """Return whether this rung only adds epochs to the rung below."""
        name, epochs = below.name, below.fidelity.epochs
        same = replace(self.fidelity, name=name, epochs=epochs) == below.fidelity
        longer = self.amount("epochs") > below.amount("epochs")
        return same and longer and self.width == below.width


@dataclass(frozen=True)
class Ladder:
    """Rungs, the lowest first; the best 1/eta of the results of each rung are promoted to the next.

    Raises:
        UserError: for fewer than two rungs, an eta below 2, a rung that trains less than the rung
            below or has another validation split, and a highest rung of less than the full width.
    """

    name: str
    rungs: tuple[Rung, ...]
    eta: int = DEFAULT_ETA

    def __post_init__(self) -> None:
        checks.text("the name of a ladder", self.name)
        if not checks.is_whole(self.eta, 2):
            self._refuse(
                f"eta = {checks.shown(self.eta)}",
                "a whole number of at least 2: the best 1/eta are promoted",
            )
        if len(self.rungs) < 2:
            self._refuse(f"{len(self.rungs)} rungs", "at least two, each a table [[rung]]")
        names = [rung.name for rung in self.rungs]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            self._refuse(f"two rungs named '{repeated}'", "a different name for each rung")
        for rung in self.rungs:
            task = self.rungs[0].fidelity.task
            if rung.fidelity.task != task or task == "text":
                expected = "images, or custom data in all rungs"
                self._refuse(f"a rung for {rung.fidelity.task} ('{rung.name}')", expected)
            if not checks.is_number(rung.width) or not 0 < rung.width <= 1:
                self._refuse(
                    f"width = {checks.shown(rung.width)}", "a share above 0 and at most 1", rung
                )
        for below, above in zip(self.rungs, self.rungs[1:], strict=False):
            self._check_order(below, above)
        if self.rungs[-1].width != 1:
            self._refuse(
                f"width = {self.rungs[-1].width:g}",
                "1: the highest rung trains the whole network",
                self.top,
            )

    def _check_order(self, below: Rung, above: Rung) -> None:
        for name in _RISING:
            if above.amount(name) < below.amount(name):
                found = f"{name} = {above.amount(name):g}"
                expected = f"at least those of rung '{below.name}', {below.amount(name):g}"
                if below.amount(name) == float("inf"):
                    expected = f"all, as rung '{below.name}' has"
                self._refuse(found, expected, above)
        if all(above.amount(name) == below.amount(name) for name in _RISING):
            self._refuse(f"no more than rung '{below.name}'", f"more {', '.join(_RISING)}", above)
        for name in ("holdout", "split_seed"):
            value, wanted = getattr(above.fidelity, name), getattr(below.fidelity, name)
            if value != wanted:
                expected = f"{wanted!r}, as below: all rungs are judged on the same images"
                self._refuse(f"{name} = {value!r}", expected, above)

    def _refuse(self, found: str, expected: str, rung: Rung | None = None) -> None:
        where = "" if rung is None else f" in rung '{rung.name}'"
        raise UserError(f"ladder '{self.name}' cannot have {found}{where}\n  expected: {expected}")

    @property
    def task(self) -> str:
        """What all rungs are for: images, or custom data."""
        return self.top.fidelity.task

    @property
    def top(self) -> Rung:
        """The highest rung, whose fidelity is that of the study."""
        return self.rungs[-1]

    def stretch(self, rung: int) -> tuple[int, int]:
        """Return the first and the last of the rungs that form one training with this rung."""
        first = last = rung
        groups = self._stretches()
        for start, end in groups:
            if start <= rung <= end:
                first, last = start, end
        return first, last

    def continues(self, rung: int) -> bool:
        """Return whether this rung continues from the checkpoint of the rung below."""
        return self.stretch(rung)[0] < rung

    def training(self, rung: int) -> tuple[Fidelity, int | None]:
        """Return the arguments (fidelity, stop_after) of `train` at a rung.

        The fidelity is that of the training that the rung belongs to; stop_after is the epoch after
        which the training pauses at this rung, or None at its last rung.
        """
        _, last = self.stretch(rung)
        epochs = self.rungs[rung].fidelity.epochs
        return self.rungs[last].fidelity, None if rung == last else epochs

    def _stretches(self) -> list[tuple[int, int]]:
        """Group the rungs that form one training: they differ in epochs only, and may pause."""
        groups: list[tuple[int, int]] = []
        for index, rung in enumerate(self.rungs):
            if groups and rung.is_same_but_longer(self.rungs[index - 1]):
                groups[-1] = (groups[-1][0], index)
            else:
                groups.append((index, index))
        found: list[tuple[int, int]] = []
        for first, last in groups:
            if self._may_pause(first, last):
                found.append((first, last))
            else:
                found += [(index, index) for index in range(first, last + 1)]
        return found

    def _may_pause(self, first: int, last: int) -> bool:
        whole = self.rungs[last].fidelity
        recipe, epochs = whole.recipe, whole.epochs or 1
        if recipe.progressive:  # its sizes are shares of the whole training
            return False
        if recipe.schedule == "constant":
            return True
        parts = [rung.fidelity.epochs or 1 for rung in self.rungs[first:last]]
        return recipe.schedule == "cyclic" and all(
            part * recipe.cycles % epochs == 0 for part in parts
        )

    def with_eta(self, eta: int | None) -> Ladder:
        """The same with another reduction factor; None keeps it."""
        return self if eta is None else replace(self, eta=eta)

    def to_json(self) -> LadderDocument:
        """Return the ladder as a JSON document."""
        rungs: list[RungDocument] = [
            {"fidelity": r.fidelity.to_json(), "width": r.width} for r in self.rungs
        ]
        return {"name": self.name, "eta": self.eta, "rungs": rungs}

    @staticmethod
    def from_json(content: Mapping[str, object]) -> Ladder:
        """Read the document of `to_json`.

        Raises:
            UserError: if the content is not a ladder.
        """
        from syno.train import Fidelity

        content = checks.fields("a ladder", content)
        listed = checks.field("a ladder", content, "rungs")
        if not isinstance(listed, (list, tuple)):
            raise UserError(
                f"a ladder's field 'rungs' is not a list\n  got: {checks.shown(listed)}"
            )
        tables = [checks.fields("a ladder's rung", table) for table in listed]
        rungs = [
            Rung(
                Fidelity.from_json(checks.field("a ladder's rung", table, "fidelity")),
                checks.field("a ladder's rung", table, "width"),
            )
            for table in tables
        ]
        name = checks.text("a ladder's name", checks.field("a ladder", content, "name"))
        return Ladder(name, tuple(rungs), checks.field("a ladder", content, "eta"))


def ladder(name: str) -> Ladder:
    """Read the ladder of this name, or of a .toml file.

    Raises:
        UserError: for an unknown name, with similar names, and for a file that is not a ladder.
    """
    title, content = _content(name)
    tables = content.get("rung", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UserError(f"ladder '{title}' has a `rung` that is not a list of tables, [[rung]]")
    every = {"recipe": content["recipe"]} if "recipe" in content else {}
    rungs = [_rung(title, number, every | table) for number, table in enumerate(tables, start=1)]
    return Ladder(title, tuple(rungs), content.get("eta", DEFAULT_ETA))


def ladder_names() -> tuple[str, ...]:
    """Return the names that `ladder` knows."""
    return _FILES.names()


def ladder_summary(name: str) -> str:
    """Describe a named ladder in one line."""
    return str(_content(name)[1].get("summary", ""))


def _content(name: str) -> tuple[str, dict[str, Any]]:
    title, content = _FILES.read(name)
    known = ("summary", "eta", "recipe", "rung")
    for key in content:
        if key not in known:
            raise UserError(
                f"ladder '{title}' has an unknown entry '{key}'\n"
                f"  expected: {', '.join(known)}{nearest(key, known)}"
            )
    return title, content


def _rung(ladder_name: str, number: int, table: Mapping[str, Any]) -> Rung:
    """Make a rung of a table with fields of `Fidelity`, fields of its recipe, and `width`."""
    from syno.train import Fidelity, recipe

    fields = {"name": f"{ladder_name}-{number}", **table}
    width = fields.pop("width", 1.0)
    try:
        how = recipe(fields.pop("recipe"))
        needed = {"epochs": 1} if how.task == "custom" else {"resolution": 1, "epochs": 1}
        if not needed.keys() <= fields.keys():
            raise UserError(f"a rung needs {' and '.join(needed)}")
        found = Fidelity(name=fields["name"], recipe=how, **needed).changed(**fields)
    except KeyError:
        raise UserError(
            f"rung {number} of ladder '{ladder_name}' has no recipe\n"
            '  expected: recipe = "..." there, or before the first rung for all of them'
        ) from None
    except UserError as error:
        raise UserError(f"{error}\n  in rung {number} of ladder '{ladder_name}'") from None
    return Rung(found, width)


def resolve_ladder(given: Ladder | str | Sequence[Rung], eta: int | None) -> Ladder:
    """Return the ladder that an argument `ladder=` of a search stands for.

    Raises:
        UserError: if the argument is not a ladder.
    """
    if isinstance(given, str):
        given = ladder(given)
    if not isinstance(given, Ladder):
        given = Ladder("given", tuple(given))
    return given.with_eta(eta)
