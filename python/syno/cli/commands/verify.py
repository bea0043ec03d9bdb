"""`syno verify`: verify generated code against the reference interpreter."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from syno._util.errors import UserError
from syno._util.options import Options, group, option
from syno.cli import framework, options, output
from syno.cli.results import print_results
from syno.codegen import emitters
from syno.operands import sizes
from syno.operands.options import Operand

# Number of mismatches to print; --json prints all.
_PRINTED = 10

if TYPE_CHECKING:
    from syno import Operator
    from syno.codegen.verify import RandomCheck, Verification


@dataclass(frozen=True, kw_only=True)
class _Arguments(Options):
    op: str | None = option("", None, names="OP")
    operand: Operand = group(Operand)
    bindings: tuple[str, ...] = option(
        "Sizes of a layer, such as C_in=64,H=28; can be repeated.",
        cast(tuple[str, ...], ()),
        unset="those of the specification",
        names="--binding",
        metavar="SIZES",
    )
    random: int | None = option(
        "Instead of OP, verify N random operators under random bindings, with all gradients.",
        None,
        minimum=1,
        metavar="N",
        unset="off",
    )
    emitters: str = option(
        "Emitters to verify, such as pytorch,cpp; `all` is every emitter that can run here.",
        "pytorch",
        metavar="NAMES",
    )
    jobs: int | None = option(
        "Number of processes for --random.",
        None,
        minimum=1,
        unset="one for each core, for many operators",
    )
    seed: int = options.seed()
    as_json: bool = output.as_json()


@framework.command("verify", _Arguments)
def command(given: _Arguments) -> int:
    """Verify the generated code of an operator against the reference interpreter.

    Input and weights are random; the values are compared under each binding. With --random, the
    operators and bindings are random, too, and a failing case is reduced to a smaller one. The exit
    code is 1 if any value differs.
    """
    names = emitters.named(given.emitters)
    if given.random is not None:
        if given.op is not None or given.bindings:
            raise UserError(
                "--random cannot be used with OP or --binding: operators and bindings are random"
            )
        return _verify_random(given, given.random, names)
    if given.op is None:
        raise UserError("nothing to verify\n  expected: OP, or --random N      got: neither")
    operator = given.operand.load(given.op)
    line = given.operand.line("verify", given.op)
    bindings = [sizes.checked_sizes(operator, b, line) for b in given.bindings]
    bindings = bindings or sizes.own_sizes(operator, line)
    results = _verify(operator, bindings, names, given.seed)
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
    from syno.codegen.verify.tables import checks_table

    output.show(checks_table(results))
    for each in results:
        if each.failure:
            output.console().print(output.indented(each.failure, 2), soft_wrap=True)


def _verify_random(given: _Arguments, count: int, names: tuple[str, ...]) -> int:
    """Verify random operators, print the results, and return the exit code."""
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
        print_results(result.to_json(), threads=jobs)
    else:
        _print_random(result)
    return framework.NEGATIVE if result.mismatches else framework.OK


def _print_random(result: RandomCheck) -> None:
    from syno.codegen.verify.tables import emitters_table, mismatch_in_words, mix_table

    output.show(mix_table(result))
    output.show(emitters_table(result))
    for mismatch in result.mismatches[:_PRINTED]:
        output.console().print(output.indented(mismatch_in_words(mismatch), 0), soft_wrap=True)
    if len(result.mismatches) > _PRINTED:
        output.say(f"... and {len(result.mismatches) - _PRINTED:,} more; --json prints all")
