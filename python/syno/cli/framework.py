"""The behavior of all commands: lazy loading, examples in the help, errors and exit codes.

0   The command succeeded.
1   The command ran, and the result is negative: a check failed, or nothing was found.
2   The input is wrong: `error: ...` on stderr, without a traceback.
70  Syno has a fault; SYNO_DEBUG=1 prints the traceback.
130 Ctrl-C interrupted the command.
143 SIGTERM paused the command; the same command resumes it.
"""

from __future__ import annotations

import errno
import functools
import importlib
import keyword
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

import click

from syno._util.checks import short, shown
from syno._util.errors import UserError, nearest
from syno._util.options import Options
from syno.cli import output
from syno.cli.extension import extensions
from syno.cli.options import built, parameters
from syno.study_options import FORMER_STORE

OK = 0
NEGATIVE = 1
MISTAKE = 2
FAULT = 70
INTERRUPTED = 130
PAUSED = 143


_FORMER_STORE_FIRST = ("resume", "status", "report", "store check")


class Command(click.Command):
    """A command with examples at the end of its help, from the file of its name."""

    full_name = ""  # with the group it belongs to, such as "zoo list"
    package = ""  # whose folder `examples` has its examples

    @property
    def examples(self) -> list[tuple[str, str]]:
        """The description and the command line of each example."""
        import tomllib
        from importlib.resources import files

        first, *rest = self.full_name.split()
        path = files(self.package) / "examples" / f"{first}.toml"
        found = tomllib.loads(path.read_text(encoding="utf-8"))[first]
        for word in rest:
            found = found[word]
        return [(words, line) for words, line in found.items() if isinstance(line, str)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words; one argument too many, at the beginning, is the store (see options)."""
        formers = [p for p in self.params if getattr(p, "former", "") == FORMER_STORE]
        names = [p.name or "" for p in self.params if isinstance(p, click.Argument)]
        if not formers or self.full_name not in _FORMER_STORE_FIRST:
            return super().parse_args(ctx, args)
        ctx.allow_extra_args = True
        super().parse_args(ctx, args)
        if len(ctx.args) == 1:
            words = [*(ctx.params[name] for name in names), *ctx.args]
            ctx.params |= dict(zip([str(formers[0].name), *names], words, strict=True))
            ctx.args = []
        if ctx.args:
            ctx.fail(f"got unexpected extra arguments ({' '.join(ctx.args)})")
        return ctx.args

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command, then those of each named section."""
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
        """Write the examples, each with its description above the command line."""
        if not self.full_name:
            return
        with formatter.section("Examples"):
            for index, (words, line) in enumerate(self.examples):
                if index:
                    formatter.write_paragraph()
                formatter.write_text(f"# {words}")
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class Group(Command, click.Group):
    """A group of commands, which prints its help if no command is given."""

    modules: Sequence[str] = ()  # of commands that are not declared beside the group

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of declaration."""
        return [str(part.name) for part in self._parts()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, None if there is none."""
        return next((each for each in self._parts() if each.name == cmd_name), None)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word, or suggest those that are like it."""
        if args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            raise _unknown(self, ctx, args[0])
        return super().resolve_command(ctx, args)

    def _parts(self) -> list[Command]:
        for name in self.modules:
            importlib.import_module(f"{self.package}.commands.{name}")
        for each in extensions():
            for name in each.parts.get(self.full_name, ()):
                importlib.import_module(f"{each.package}.commands.{name}")
        return _PARTS[self.full_name]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, then the commands."""
        Command.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


Kind = TypeVar("Kind", bound=Options)


def command(name: str, kind: type[Kind]) -> Callable[[Callable[[Kind], int | None]], Command]:
    """Create a command from a function of its options.

    Args:
        name: the full name, such as "zoo list".
        kind: the class of the options; each of them becomes a parameter.

    The function returns an exit code; None is success.
    """

    def decorate(function: Callable[[Kind], int | None]) -> Command:
        def run(**values: object) -> int | None:
            return function(cast(Kind, built(kind, values)))

        made = Command(
            name.split()[-1], callback=run, params=parameters(kind), help=function.__doc__
        )
        made.full_name, made.package = name, _package(function)
        first, *rest = name.split()
        if rest:
            _PARTS.setdefault(first, []).append(made)
        return made

    return decorate


_PARTS: dict[str, list[Command]] = {}  # commands of groups, by the name of the group


def group(name: str, *modules: str) -> Callable[[Callable[[], None]], Group]:
    """Create a group of commands, which prints its help if no command is given.

    Args:
        name: the name of the group.
        modules: modules beside that of the group that contain further commands of it.
    """

    def decorate(function: Callable[[], None]) -> Group:
        @click.pass_context
        def shown(ctx: click.Context) -> None:
            if ctx.invoked_subcommand is None:
                output.echo(ctx.get_help())

        made = Group(name, callback=shown, help=function.__doc__, invoke_without_command=True)
        made.full_name, made.modules, made.package = name, modules, _package(function)
        return made

    return decorate


def _package(function: Callable[..., object]) -> str:
    """The package whose folder `commands` has the module of a command."""
    return function.__module__.rpartition(".commands.")[0]


def _module_name(command: str) -> str:
    """The module of a command; a keyword of Python is no name of a module."""
    name = command.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def resumable(line: str) -> None:
    """State the command that resumes this one, which Ctrl-C prints from now on."""
    _resuming[:] = [line]


def this_command(**options: str) -> str:
    """Return the present command line, quoted, with options that it may lack."""
    given = [part for k, v in options.items() if f"--{k}" not in _words for part in (f"--{k}", v)]
    return shlex.join(["syno", *_words, *given])


_resuming: list[str] = []
_words: list[str] = []


def _unknown(group: click.Group, ctx: click.Context, word: str) -> click.UsageError:
    """Return the error for an unknown command, with the commands that are like it."""
    hint = nearest(word, group.list_commands(ctx))
    return click.UsageError(f"no such command '{shown(word)[1:-1]}'{hint}", ctx)


class LazyGroup(click.Group):
    """A group that imports the module of a command when the command runs.

    `commands_by_name` maps each name to a line of help, so that the overview needs no import. The
    commands of extensions come behind them.
    """

    def __init__(self, *args: Any, commands_by_name: Mapping[str, str], **options: Any) -> None:
        super().__init__(*args, **options)
        self._own = commands_by_name

    @functools.cached_property
    def commands_by_name(self) -> dict[str, str]:
        """The line of help of each command."""
        return dict(self._own) | {k: v for each in extensions() for k, v in each.commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order in which a new user needs them."""
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name, None if there is none."""
        if cmd_name not in self.commands_by_name:
            return None
        package = next((e.package for e in extensions() if cmd_name in e.commands), "syno.cli")
        module = importlib.import_module(f"{package}.commands.{_module_name(cmd_name)}")
        found = module.command
        assert isinstance(found, click.Command)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word, or suggest those that are like it."""
        if args[0] not in self.commands_by_name and not args[0].startswith("-"):
            raise _unknown(self, ctx, args[0])
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview of the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.commands_by_name.items()))

    def main(self, *args: Any, **options: Any) -> NoReturn:
        """Run the command line and exit the process with the exit code."""
        options["standalone_mode"] = False
        given = args[0] if args else options.get("args")
        words = sys.argv[1:] if given is None else list(given)
        _words[:] = words
        _resuming.clear()
        known = [word for word in words[:1] if word in self.commands_by_name]
        name = " ".join(["syno", *known])
        run = super().main

        def work() -> object:
            _check_words(words)
            return run(*args, **options)

        sys.exit(_run(work, name))


def _check_words(words: Sequence[str]) -> None:
    """Reject words that an operating system cannot pass; a calling program could pass them."""
    for word in words:
        try:
            if b"\0" not in os.fsencode(word):
                continue
            found = "a NUL character"
        except UnicodeEncodeError:
            found = "half of a surrogate pair"
        raise UserError(
            f"a word of the command line contains {found}: {shown(word)}\n"
            "  expected: words that a shell can pass"
        )


def _run(work: Callable[[], object], name: str = "syno") -> int:
    try:
        result = work()
        sys.stdout.flush()
    except click.UsageError as error:
        _fail(_as_ours(error), _usage_hint(error, name))
        return MISTAKE
    except click.Abort:
        _fail("interrupted", *(f"  `{line}` resumes it" for line in _resuming))
        return INTERRUPTED
    except click.ClickException as error:
        _fail(_as_ours(error))
        return MISTAKE
    except UserError as error:
        _fail(str(error))
        return MISTAKE
    except BrokenPipeError:
        # The reader has closed the pipe (`syno sample | head`), so that nothing can be flushed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        if error.errno not in _CIRCUMSTANCES:
            return _fault(error)
        _fail(
            f"cannot access {_place(error)}: {error.strerror}\n"
            "  expected: input paths that exist, and output paths with permissions and enough space"
        )
        return MISTAKE
    except Exception as error:
        return _fault(error)
    # Outside stand-alone mode click returns the exit code of `ctx.exit(code)`.
    return result if isinstance(result, int) else OK


# Errors of paths and disks, for which the program is not responsible.
_CIRCUMSTANCES = frozenset(
    {errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EACCES, errno.EPERM}
    | {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ELOOP, errno.EMFILE, errno.EFBIG}
)


def _place(error: OSError) -> str:
    return "a file" if error.filename is None else f"'{short(os.fsdecode(error.filename))}'"


def _fault(error: Exception) -> int:
    if os.environ.get("SYNO_DEBUG"):
        raise error
    _fail(
        f"a fault in Syno: {type(error).__name__}: {error}\n"
        "  please report it with this command line, the output with SYNO_DEBUG=1,\n"
        "  and the output of `syno doctor --json`"
    )
    return FAULT


def _usage_hint(error: click.UsageError, name: str) -> str:
    # The parser of options has no context.
    path = name if error.ctx is None else error.ctx.command_path
    return f"  `{path} --help` lists the options"


def _fail(message: str, hint: str = "") -> None:
    output.say("\n".join(part for part in (f"error: {message}", hint) if part))


def _as_ours(error: click.ClickException) -> str:
    """Return the message of Click in Syno's form: lower case after `error:`, no full stop."""
    message = error.format_message()
    return f"{message[:1].lower()}{message[1:]}".removesuffix(".")
