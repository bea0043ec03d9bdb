"""How every command behaves: lazy loading, examples in its help, errors and exit codes.

0   done
1   ran, and the result is negative (a check failed, nothing was found)
2   the user's mistake: `error: ...` on stderr, no traceback
70  a fault in Syno itself: how to report it; SYNO_DEBUG=1 prints the traceback
130 interrupted with Ctrl-C
143 paused by SIGTERM: the same command goes on
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

import click

from syno._util.checks import short, shown
from syno._util.errors import UserError
from syno._util.options import Options
from syno.cli import output
from syno.cli.options import built, parameters

OK = 0
NEGATIVE = 1
MISTAKE = 2
FAULT = 70
INTERRUPTED = 130
PAUSED = 143


class Command(click.Command):
    """A command with examples at the end of its help, from the file of its name."""

    full_name = ""  # with the group it belongs to, such as "zoo list"

    @property
    def examples(self) -> list[tuple[str, str]]:
        """What each example does, and its line."""
        import tomllib
        from importlib.resources import files

        first, *rest = self.full_name.split()
        path = files("syno.cli") / "examples" / f"{first}.toml"
        found = tomllib.loads(path.read_text(encoding="utf-8"))[first]
        for word in rest:
            found = found[word]
        return [(words, line) for words, line in found.items() if isinstance(line, str)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then those of each named section."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                section = getattr(parameter, "section", "Options")
                sections.setdefault(section, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, one line of words above each command line."""
        if not self.full_name:
            return
        with formatter.section("Examples"):
            for index, (words, line) in enumerate(self.examples):
                if index:
                    formatter.write_paragraph()
                formatter.write_text(f"# {words}")
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Group(Command, click.Group):
    """A command of commands, with examples at the end of its help. Alone it prints its help."""

    modules: Sequence[str] = ()  # of commands that are not declared beside the group

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which they are declared."""
        return [str(part.name) for part in self._parts()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the name; None for an unknown one."""
        return next((each for each in self._parts() if each.name == cmd_name), None)

    def _parts(self) -> list[Command]:
        for name in self.modules:
            importlib.import_module(f"syno.cli.commands.{name}")
        return _PARTS[self.full_name]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        Command.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


Kind = TypeVar("Kind", bound=Options)


def command(name: str, kind: type[Kind]) -> Callable[[Callable[[Kind], int | None]], Command]:
    """Make a command of a function from its options, with a parameter for each of them.

    name: in full, such as "zoo list". The function gives an exit code; None is success.
    """

    def decorate(function: Callable[[Kind], int | None]) -> Command:
        def run(**values: object) -> int | None:
            return function(cast(Kind, built(kind, values)))

        made = Command(
            name.split()[-1], callback=run, params=parameters(kind), help=function.__doc__
        )
        made.full_name = name
        first, *rest = name.split()
        if rest:
            _PARTS.setdefault(first, []).append(made)
        return made

    return decorate


_PARTS: dict[str, list[Command]] = {}  # commands of groups, by the name of the group


def group(name: str, *modules: str) -> Callable[[Callable[[], None]], Group]:
    """Make a group of commands; without one of its commands it prints its help.

    modules: those of `syno.cli.commands` that have some of its commands.
    """

    def decorate(function: Callable[[], None]) -> Group:
        @click.pass_context
        def shown(ctx: click.Context) -> None:
            if ctx.invoked_subcommand is None:
                output.echo(ctx.get_help())

        made = Group(name, callback=shown, help=function.__doc__, invoke_without_command=True)
        made.full_name, made.modules = name, modules
        return made

    return decorate


class LazyGroup(click.Group):
    """A group that imports a command's module when that command runs.

    `commands_by_name` maps a name to a line of help: the overview needs no import.
    """

    def __init__(self, *args: Any, commands_by_name: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands_by_name = commands_by_name

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer meets them."""
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now; None for an unknown name."""
        if cmd_name not in self.commands_by_name:
            return None
        module = importlib.import_module(f"syno.cli.commands.{cmd_name.replace('-', '_')}")
        found = module.command
        assert isinstance(found, click.Command)
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands_by_name.items()))

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run and leave the process with the exit code of what happened."""
        options["standalone_mode"] = False
        given = args[0] if args else options.get("args")
        words = sys.argv[1:] if given is None else list(given)
        known = [word for word in words[:1] if word in self.commands_by_name]
        name = " ".join(["syno", *known])
        run = super().main

        def work() -> Any:
            _check_words(words)
            return run(*args, **options)

        sys.exit(_run(work, name))


def _check_words(words: Sequence[str]) -> None:
    """UserError for words that no system passes on; a program that calls commands itself could."""
    for word in words:
        try:
            if b"\0" not in os.fsencode(word):
                continue
            found = "a NUL character"
        except UnicodeEncodeError:
            found = "half of a surrogate pair"
        raise UserError(
            f"a word of the command line holds {found}: {shown(word)}\n"
            "  expected: words as a shell passes them"
        )


def _run(work: Callable[[], Any], name: str = "syno") -> int:
    try:
        result = work()
        sys.stdout.flush()
    except click.UsageError as error:
        _fail(_as_ours(error), _usage_hint(error, name))
        return MISTAKE
    except click.Abort:
        _fail("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        _fail(_as_ours(error))
        return MISTAKE
    except UserError as error:
        _fail(str(error))
        return MISTAKE
    except BrokenPipeError:
        # The reader has gone (`syno sample | head`): nothing to say, and nothing more to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        if error.errno not in _CIRCUMSTANCES:
            return _fault(error)
        _fail(
            f"the system refuses {_place(error)}: {error.strerror}\n"
            "  expected: paths that exist where they are read, and room and rights where they are "
            "written"
        )
        return MISTAKE
    except Exception as error:
        return _fault(error)
    # Outside stand-alone mode click returns the exit code of `ctx.exit(code)`.
    return result if isinstance(result, int) else OK


# What an operating system says about a path or a disk, whatever the program does.
_CIRCUMSTANCES = frozenset(
    {errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM}
    | {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ELOOP, errno.EMFILE, errno.EFBIG}
)


def _place(error: OSError) -> str:
    return "this" if error.filename is None else f"'{short(os.fsdecode(error.filename))}'"


def _fault(error: Exception) -> int:
    if os.environ.get("SYNO_DEBUG"):
        raise error
    _fail(
        f"a fault in Syno: {type(error).__name__}: {error}\n"
        "  please report it with this command line and what SYNO_DEBUG=1 prints;\n"
        "  `syno doctor --json` says what to include about this machine"
    )
    return FAULT


def _usage_hint(error: click.UsageError, name: str) -> str:
    # The parser of options knows no context.
    path = name if error.ctx is None else error.ctx.command_path
    return f"  `{path} --help` says what is possible"


def _fail(message: str, hint: str = "") -> None:
    output.say("\n".join(part for part in (f"error: {message}", hint) if part))


def _as_ours(error: click.ClickException) -> str:
    """Click's message in our form: after `error:` comes a small letter, and no full stop."""
    message = error.format_message()
    return f"{message[:1].lower()}{message[1:]}".removesuffix(".")
