"""What all commands have in common: one way for each thing, and output that fits."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from tests.study.fakes import FakeEvaluator, FakeSpace

import syno
from marks import slow_but
from syno._util.tables import Table
from syno.cli import framework, output
from syno.cli.main import cli
from syno.cli.watch import Watch
from syno.operators import zoo
from syno.store import Outcome, Store
from syno.study import Study, StudySettings, run


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def commands() -> Iterator[tuple[str, click.Command]]:
    for name in cli.commands_by_name:
        found = cli.get_command(None, name)
        if isinstance(found, click.Group):
            context = click.Context(found)
            for part in found.list_commands(context):
                yield f"{name} {part}", found.get_command(context, part)
        yield name, found


def on_a_terminal(*words: str, columns: int) -> list[str]:
    """The lines that a command prints to a terminal of this width, without colours."""
    process, screen = pty.fork()
    if process == 0:
        ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.execv(sys.executable, [sys.executable, "-m", "syno", *words])
    content = b""
    while True:
        try:
            part = os.read(screen, 65536)
        except OSError:  # the command has ended
            break
        if not part:
            break
        content += part
    os.close(screen)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", content.decode()).splitlines()


# Names.


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("serach",), "search"),
        (("zoo", "lst"), "list"),
        (("search", "--evaluatons", "3"), "--evaluations"),
    ],
)
def test_a_misspelt_command_or_option_gets_a_suggestion(
    words: tuple[str, ...], suggestion: str
) -> None:
    result = invoke(*words)
    assert result.exit_code == framework.MISTAKE
    assert re.search(rf"did you mean\W.*{suggestion}", result.stderr, re.IGNORECASE)


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "syno", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"syno {syno.__version__}\n"


def test_every_command_with_studies_names_their_store_in_one_way() -> None:
    for name, command in commands():
        arguments = [p.name for p in command.params if isinstance(p, click.Argument)]
        assert "store" not in arguments, name
        options = [p for p in command.params if "--store" in p.opts]
        if {"--study", "--final", "--release"} & {o for p in command.params for o in p.opts}:
            assert options, name


def test_the_former_way_to_name_a_store_is_accepted(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    with Store.open(path) as store:
        Study.create(store, "study", StudySettings(), FakeSpace())
    for words in (("status", path), ("status", "--store", path), ("store", "check", path)):
        assert invoke(*words).exit_code == 0, words
    assert "unexpected extra argument" in invoke("status", path, path).stderr


# Operators.


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_op_is_a_name_of_the_zoo_everywhere(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sizes = ",".join(f"{name}={size}" for name, size in zoo.binding("conv1x1").items())
    more = ("-o", "op.py") if command == "export" else ()
    result = invoke(command, "conv1x1", "--binding", sizes, *more)
    assert result.exit_code == 0, result.output


def test_op_is_an_id_that_is_the_same_in_all_specifications(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "y[n,o,h,w] = sum(i:C_in) x[n,i,h,w] * v[o,i]"
    shapes = ["[N, C_in: unordered, H, H]", "[N, C_out: unordered, H, H]"]
    operator = syno.Operator.parse(text, input=shapes[0], output=shapes[1])
    monkeypatch.chdir(tmp_path)
    with Store.open("runs.db") as store:
        for number, preset in enumerate(("paper/resnet18", "paper/densenet121")):
            bound = operator.with_specification(syno.Specification.preset(preset))
            content = json.loads(bound.specification.to_json())
            study = store.create_study(
                preset.replace("/", "-"), specification=(str(number), content), settings={}, seed=0
            )
            store.ask(study, 1, (bound.text, bound.key), "worker")
    shown = invoke("show", operator.structure[:8])  # without --store: runs.db
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(f"operator {operator.structure}\n")
    keys = {operator.with_specification(syno.Specification.preset(p)).key for p in PRESETS}
    assert len(keys) == 2  # which a key is not
    for key in keys:
        by_key = invoke("show", key[:10])
        assert by_key.stdout.startswith(f"operator {operator.structure}\n"), by_key.output


PRESETS = ("paper/resnet18", "paper/densenet121")


def test_an_unknown_name_suggests_one_of_the_zoo() -> None:
    result = invoke("show", "conv2dd")
    assert result.exit_code == framework.MISTAKE
    assert "did you mean: conv2d" in result.stderr


# Stores with several studies.


def store_of_two(path: Path) -> str:
    class Rejecting(FakeEvaluator):
        def evaluate(self, operator: object) -> Outcome:
            if not self.evaluated:
                self.evaluated.append("first")
                return Outcome("rejected", reason="diverging", rung="r")
            return super().evaluate(operator)

    with Store.open(str(path)) as store:
        for name in ("first", "second"):
            settings = StudySettings(evaluations=6, seed=1)
            run(Study.create(store, name, settings, FakeSpace()), Rejecting())
    return str(path)


def test_the_latest_study_is_taken_and_rejected_counts_apart_from_failed(tmp_path: Path) -> None:
    path = store_of_two(tmp_path / "runs.db")
    selected = invoke("select", "--store", path)
    assert selected.exit_code == 0, selected.output
    assert "study second, the latest of 2; --study NAME selects another" in selected.stderr
    status = invoke("status", "--store", path, "--operators", "--json")
    for study in json.loads(status.stdout)["studies"]:
        statuses = [operator["status"] for operator in study["operators"]]
        assert statuses.count("rejected") == study["rejected"] >= 1
        assert len(statuses) == study["trained"] + study["rejected"] + study["failed"]
    (first, *_) = invoke("status", "--store", path).stdout.splitlines()
    assert first.split()[:4] == ["study", "trained", "rejected", "failed"]


# Defaults in the help.


NUMBERS = (click.types.IntParamType, click.types.FloatParamType)


def test_every_number_in_the_help_has_its_default() -> None:
    missing = []
    for name, command in commands():
        for parameter in command.params:
            if not isinstance(parameter, click.Option) or parameter.is_flag or parameter.required:
                continue
            if not isinstance(parameter.type, NUMBERS):
                continue
            text = (parameter.get_help_record(click.Context(command)) or ("", ""))[1]
            bounds = r"\[[^\]]*x[<>][^\]]*\]"
            if "[" not in re.sub(bounds, "", text) and "default: " not in text:
                missing.append(f"syno {name} {parameter.opts[0]}")
    assert missing == []


# Interrupts.


def test_ctrl_c_prints_the_command_that_resumes_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "my runs.db")
    with Store.open(path) as store:
        study = Study.create(store, "a study", StudySettings(), FakeSpace())

        def interrupted(*_arguments: object, observer: Watch, **_options: object) -> None:
            observer.on_start(study.record, study.settings, study.tally())
            raise KeyboardInterrupt

        monkeypatch.setattr("syno.study.search.search", interrupted)
        result = invoke("search", "--data", "digits", "--store", path)
    assert result.exit_code == framework.INTERRUPTED
    line = re.search(r"`(syno resume .*)` resumes it", result.stderr)
    assert line is not None, result.stderr
    assert shlex.split(line[1]) == ["syno", "resume", "--store", path, "--study", "a study"]


def test_ctrl_c_in_a_training_repeats_the_command_with_the_name_of_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        arguments[1].on_study("model-digits-1")  # type: ignore[attr-defined]
        raise KeyboardInterrupt

    monkeypatch.setattr("syno.study.training.train.run", interrupted)
    words = ["train", "conv1x1", "--data", "digits", "--store", str(tmp_path / "runs.db")]
    result = invoke(*words)
    assert result.exit_code == framework.INTERRUPTED
    line = re.search(r"`(syno .*)` resumes it", result.stderr)
    assert line is not None, result.stderr
    assert shlex.split(line[1]) == ["syno", *words, "--name", "model-digits-1"]


# Tables.


@pytest.mark.parametrize(
    "words",
    [
        ("models",),
        ("zoo", "list"),
        pytest.param(("models", "resnet-small"), marks=pytest.mark.slow),
    ],
)
def test_tables_fit_80_columns(words: tuple[str, ...]) -> None:
    lines = on_a_terminal(*words, columns=80)
    assert len(lines) > 10
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


def test_columns_are_left_out_from_the_last_marked_one() -> None:
    table = Table(("name", "a>?", "b?", "text~"), (("n" * 20, "1", "b" * 30, "words " * 5),))
    assert table.fitting(200) == (table, [])
    narrow, left_out = table.fitting(60)
    assert (narrow.headings, left_out) == (("name", "a>?", "text~"), ["b"])
    assert table.fitting(20)[1] == ["a", "b"]


def test_tables_are_not_padded_in_pipes() -> None:
    for words in (("models",), ("zoo", "list"), ("data", "list")):
        lines = invoke(*words).stdout.splitlines()
        assert lines == [line.rstrip() for line in lines if line.strip()]
        assert "─" not in "".join(lines)


# Progress.


def test_the_clock_counts_only_the_steps_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    clock = output.ProgressClock(done=10)
    assert clock.words(10, 20) == "elapsed 0.0 s"
    now[0] += 30
    assert clock.words(12, 20) == "elapsed 30.0 s, left 2 min 00 s"
    assert clock.words(20, 20) == "elapsed 30.0 s, left 0.0 s"
    assert output.ProgressClock(remaining=False).words(5, 10) == "elapsed 0.0 s"


# Presets and models.


EVERY_PRESET = slow_but(syno.Specification.presets(), "paper/resnet18", "paper/vit", "paper/readme")


@pytest.mark.parametrize("preset", EVERY_PRESET)
def test_every_preset_works_in_sample_and_enumerate(preset: str) -> None:
    sampled = invoke("sample", "--preset", preset, "--count", "1", "--max-nodes", "2000")
    assert sampled.exit_code == 0, sampled.output
    listed = invoke("enumerate", "--preset", preset, "--depth", "3", "--json")
    assert listed.exit_code in (framework.OK, framework.NEGATIVE), listed.output
    assert json.loads(listed.stdout)["graphs"] is not None


def test_models_are_listed_without_building_them() -> None:
    code = (
        "import sys; from syno.cli.main import cli\n"
        "try: cli.main(['models'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# Completion.


def test_the_shell_completes_commands_and_options() -> None:
    for words, expected in (("syno sea", "search"), ("syno search --eval", "--evaluations")):
        environment = {
            **os.environ,
            "_SYNO_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-m", "syno"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"plain,{expected}" in done.stdout.splitlines(), done.stderr
