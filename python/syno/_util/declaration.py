"""What follows from the fields of `Options`: signatures, documentation, stored documents.

    @takes(Search)
    def search(given: Search) -> StudyResults:
        \"\"\"Find operators for the slots of a network. ...\"\"\"

`syno.search` has the arguments of the class `Search`, for a reader, an editor and a type checker,
and its documentation explains each of them. `syno.cli.options` makes the command line of the same
fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar, cast

from syno._util.errors import UserError, nearest
from syno._util.options import Option, Options, declared, groups

Arguments = ParamSpec("Arguments")
Given = TypeVar("Given", bound=Options)
Result = TypeVar("Result")
_WIDTH = 100
_ONLY_COMMANDS = "; can be repeated"  # of the help of an option; in Python, it is a list


def takes(
    kind: Callable[Arguments, Given],
) -> Callable[[Callable[[Given], Result]], Callable[Arguments, Result]]:
    """Make a function of one object of options a function of their values.

    It refuses an unknown argument with a UserError, which names the nearest known one or the group
    of options that has it.
    """
    owner = cast(type[Options], kind)

    def decorate(function: Callable[[Given], Result]) -> Callable[Arguments, Result]:
        signature, name = _signature(owner), function.__name__

        @functools.wraps(function)
        def call(*given: Arguments.args, **named: Arguments.kwargs) -> Result:
            for argument in named:
                if argument not in signature.parameters:
                    _refuse(f"syno.{name}", argument, owner)
            try:
                signature.bind(*given, **named)
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
            return function(kind(*given, **named))

        made = inspect.signature(function)
        call.__signature__ = signature.replace(return_annotation=made.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = with_arguments(function.__doc__ or "", owner)
        return call

    return decorate


def _signature(kind: type[Options]) -> inspect.Signature:
    """Return the signature of a class of options, where groups may be left out or None."""
    found = inspect.signature(kind)
    of_groups = groups(kind)
    return found.replace(
        parameters=[
            each.replace(default=None, annotation=f"{each.annotation} | None")
            if each.name in of_groups
            else each
            for each in found.parameters.values()
        ]
    )


def _refuse(function: str, argument: str, kind: type[Options]) -> None:
    known = list(inspect.signature(kind).parameters)
    for name, group in groups(kind).items():
        if argument in {each.name for each in dataclasses.fields(group)}:
            raise UserError(
                f"{function} has no argument '{argument}'\n"
                f"  what to do: {name}=syno.{group.__name__}({argument}=...)"
            )
    raise UserError(
        f"{function} has no argument '{argument}'{nearest(argument, known)}\n"
        f"  expected: one of {', '.join(known)}"
    )


Kind = TypeVar("Kind", bound=type[Options])


def documented(kind: Kind) -> Kind:
    """Add the options of a class to its documentation."""
    kind.__doc__ = with_arguments(kind.__doc__ or "", kind)
    return kind


def with_arguments(text: str, kind: type[Options]) -> str:
    """Return a documentation string with a section `Args:` for the fields of a class.

    It stands before the sections `Returns:` and `Raises:`.
    """
    text = inspect.cleandoc(text)
    places = [text.find(f"\n{each}:\n") for each in ("Returns", "Raises")]
    at = min((place for place in places if place >= 0), default=len(text))
    head, tail = text[:at], text[at:]
    entries = "\n".join(_entries(kind))
    return f"{head.rstrip()}\n\nArgs:\n{entries}\n{tail}"


def _entries(kind: type[Options]) -> Iterator[str]:
    own = {each.name: each for each in declared(kind)}
    of_groups = groups(kind)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    for name in inspect.signature(kind).parameters:
        if name in of_groups:
            summary = (of_groups[name].__doc__ or "").partition("\n")[0]
            words = f"{summary[0].lower()}{summary[1:]}" if summary else ""
        elif name in own:
            words = explanation(own[name])
        else:
            words = fields[name].metadata.get("doc", "")
        yield textwrap.fill(
            f"{name}: {words}",
            _WIDTH - 4,
            initial_indent=4 * " ",
            subsequent_indent=8 * " ",
            break_on_hyphens=False,
            break_long_words=False,
        )


def explanation(option: Option) -> str:
    """Return what the documentation of Python says about an option."""
    words = [option.doc.replace(_ONLY_COMMANDS, ""), option.more]
    words += [f"Default: {option.unset}."] if option.unset else []
    text = " ".join(each for each in words if each)
    return f"{text[:1].lower()}{text[1:]}"


def document(options: Options) -> dict[str, Any]:
    """Return the options that a study stores, by their names in the document of the study.

    JSON has no infinity: None stands for it.
    """
    found = {}
    for each in declared(type(options)):
        value = getattr(options, each.name)
        value = each.absent if value is None else value
        if each.stored is None or not (each.stored.always or value != each.absent):
            continue
        if each.many:
            value = list(cast(Sequence[object], value))
        endless = isinstance(value, float) and math.isinf(value)
        found[each.stored_name] = None if endless else value
    return found


def restored(kind: type[Given], content: Mapping[str, object], **more: object) -> Given:
    """Return the options of a document; more: options that studies do not store.

    An option that the document does not have, or None, has the value that this stands for.
    """
    found = dict(more)
    for each in declared(kind):
        if each.stored is not None:
            value = content.get(each.stored_name)
            found[each.name] = each.absent if value is None else value
    return kind(**found)


def stored_names(kind: type[Options]) -> tuple[str, ...]:
    """Return the names in the document of a study, in the order of the declaration."""
    return tuple(each.stored_name for each in declared(kind) if each.stored is not None)
