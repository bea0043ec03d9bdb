"""`syno verify`: generated code against the reference interpreter."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util import numbers as fmt
from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.codegen import emitters
from syno.operands import sizes

# Mismatches that are printed; --json has them all.
_PRINTED = 10

if TYPE_CHECKING:
    from syno import Operator
    from syno.codegen.verify import Mismatch, RandomCheck, Verification


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """Arguments of `syno verify`."""

    op: str | None = option("", None, names="OP")
    operand: options.Operand = group(options.Operand)
    bindings: tuple[str, ...] = option(
        "Sizes to check under, as C_in=64,H=28; repeat.",
        cast(tuple[str, ...], ()),
        unset="those of the specification",
        names="--binding",
        metavar="SIZES",
    )
    random: int | None = option(
        "Instead of OP: N random operators under random bindings, with all gradients.",
        None,
        minimum=1,
        metavar="N",
    )
    emitters: str = option(
        "Whose code is checked, as pytorch,...; `all` is every emitter that can run here.",
        "pytorch",
        metavar="NAMES",
    )
    jobs: int | None = option(
        "Processes for --random.", None, minimum=1, unset="one a processor, for many operators"
    )
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("verify", Arguments)
def command(given: Arguments) -> int:
    """Check the code generated from an operator against the reference interpreter.

    Input and weights are random; values are compared under each binding. With --random, operators
    and bindings are random too, and a failing case is made small. The exit code is 1 when any
    differs.
    """
    names = emitters.named(given.emitters)
    if given.random is not None:
        if given.op is not None or given.bindings:
            raise UserError("--random draws operators and bindings itself: leave OP and --binding")
        return _verify_random(given, given.random, names)
    if given.op is None:
        raise UserError("nothing to verify\n  expected: OP, or --random N      got: neither")
    operator = given.operand.load(given.op)
    line = given.operand.line("verify", given.op)
    chosen = [sizes.checked_sizes(operator, b, line) for b in given.bindings]
    chosen = chosen or sizes.own_sizes(operator, line)
    results = _verify(operator, chosen, names, given.seed)
    passed = all(result.passed for result in results)
    if given.as_json:
        found = [dataclasses.asdict(result) for result in results]
        output.print_json({"key": operator.key, "passed": passed, "results": found})
    else:
        output.console().print(output.heading(f"operator {operator.key}"))
        _print(results)
    return framework.OK if passed else framework.NEGATIVE


def _verify(
    operator: Operator, bindings: list[dict[str, int]], names: tuple[str, ...], seed: int
) -> list[Verification]:
    from syno.codegen.verify import verify

    results = []
    checks = [(name, binding) for name in names for binding in bindings]
    with output.progress("verifying", len(checks)) as move:
        for index, (name, binding) in enumerate(checks):
            results.append(verify(operator, binding, emitter=name, seed=seed))
            move(index + 1)
    return results


def _print(results: list[Verification]) -> None:
    output.show(
        results,
        ("binding~", lambda each: " ".join(f"{name}={n}" for name, n in each.binding.items())),
        ("result", lambda each: "passed" if each.passed else "FAILED"),
        ("outputs compared>", lambda each: f"{each.outputs:,}"),
        ("largest error>", lambda each: f"{each.max_error:.1e}"),
        ("code", lambda each: f"{each.emitter} {each.source_hash[:12]}"),
    )
    for each in results:
        if each.failure:
            output.console().print(output.indented(each.failure, 2), soft_wrap=True)


def _verify_random(given: Arguments, count: int, names: tuple[str, ...]) -> int:
    """Check random operators, print, and say by the exit code whether anything differs."""
    from syno.codegen.verify import processes_for, random_check

    jobs = given.jobs or processes_for(count)
    with output.progress("operators", count) as move:
        result = random_check(
            count,
            given.seed,
            names,
            jobs=jobs,
            progress=lambda done, mismatches: move(done, f"{mismatches:,} mismatches"),
        )
    if given.as_json:
        output.print_json(result.to_json())
    else:
        _print_random(result)
    return framework.NEGATIVE if result.mismatches else framework.OK


def _print_random(result: RandomCheck) -> None:
    count = result.operators
    output.show(
        result.counted(),
        ("in the mix", lambda row: row[0]),
        ("operators>", lambda row: f"{row[1]:,}"),
        ("share>", lambda row: f"{100 * row[1] / count:.0f} %"),
    )
    output.show(
        result.emitters,
        ("emitter", str),
        ("operators>", lambda _: f"{count:,}"),
        ("mismatches>", lambda name: f"{sum(m.emitter == name for m in result.mismatches):,}"),
        ("largest error>", lambda name: f"{result.max_error[name]:.1e}"),
        ("at work>", lambda name: fmt.duration(result.emitter_seconds[name])),
    )
    for mismatch in result.mismatches[:_PRINTED]:
        output.console().print(output.indented(_told(mismatch), 0), soft_wrap=True)
    if len(result.mismatches) > _PRINTED:
        output.say(f"... and {len(result.mismatches) - _PRINTED:,} more; --json lists them all")


def _told(mismatch: Mismatch) -> str:
    """A mismatch with its smallest case, where there is one, and how to see it again."""
    again = f"syno verify --random 1 --seed {mismatch.seed} --emitters {mismatch.emitter}"
    if mismatch.smallest:
        return f"{mismatch.emitter}, made small ({again}):\n{mismatch.smallest}"
    return (
        f"{mismatch.emitter} ({again}):\n{mismatch.failure}\n  in binding {mismatch.binding}\n"
        f"  of operator\n{mismatch.operator}"
    )
