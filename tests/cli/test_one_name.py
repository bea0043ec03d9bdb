"""Two commands with one name at once: they share the work, or the second one is refused clearly.

For every command that takes a name, a study or a file that it continues. The second one runs while
the first one is in the middle of its work, in the same process: locks and leases tell them apart.
That two processes share a search is in tests/e2e/test_two_searches.py, and that workers do is in
tests/study/test_workers.py.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from syno.cli.commands import __path__ as commands_path
from syno.cli.main import cli
from syno.store import Store

TRAIN = ["--model", "cnn-small", "--data", "digits", "--fidelity", "digits", "--epochs", "1"]
TRAIN += ["--images", "60", "--no-latency"]

# Where a command is in the middle of its work, by what it calls then.
MIDDLE = {
    "train": "syno.study.training.train.TrainingStudy.add",
    "bench table": "syno_lab.benchmark.generator.Trainer.train",
}
# Commands that continue something, and the test that tries two of them where it is not this one.
ELSEWHERE = {
    "adapt": "tests/adaptation/pipeline/test_adapt.py::"
    "test_of_two_that_adapt_at_once_the_second_is_refused",
    "bench adaptation": "tests/adaptation/pipeline/test_journal.py::"
    "test_a_second_process_is_refused_and_continues_when_the_first_one_ends",
    "bench latency": "tests/lab/experiments/test_latency.py::test_files_that_cannot_be_continued",
    "data prepare": "tests/data/test_records.py::test_two_processes_at_once_write_one_set",
    "experiment projection": "tests/cli/test_one_name.py::test_a_file_is_written_by_one",
    "resume": "tests/e2e/test_two_searches.py::test_two_that_resume_at_once_share_the_evaluations",
    "tune": "tests/tune/test_clear.py::test_results_that_another_process_makes_are_not_deleted",
}


def invoked(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


class Interrupter:
    """Runs the same command again when the first one calls a function for the first time."""

    def __init__(self, patch: pytest.MonkeyPatch, place: str, words: list[object]) -> None:
        self.second: Result | None = None
        self._running = False
        owner, _, name = place.rpartition(".")
        found = self._owner(owner)
        original = getattr(found, name)

        def call(*args: object, **named: object) -> object:
            if not self._running:
                self._running = True
                self.second = invoked(*words)
            return original(*args, **named)

        patch.setattr(found, name, call)

    @staticmethod
    def _owner(name: str) -> object:
        import importlib

        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            module, _, kind = name.rpartition(".")
            return getattr(importlib.import_module(module), kind)


def check_refused(second: Result | None, first: Result) -> None:
    assert first.exit_code in (0, 1), first.output
    assert second is not None, "the first command never was in the middle of its work"
    assert second.exit_code == 2, second.output
    assert "another process" in second.output
    assert "what to do" in second.output


@pytest.mark.slow
def test_of_two_that_train_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "runs.db"
    words: list[object] = ["train", "conv1x1", *TRAIN, "--store", store, "--name", "one"]
    both = Interrupter(monkeypatch, MIDDLE["train"], words)
    first = invoked(*words)
    check_refused(both.second, first)
    with Store.open(str(store)) as opened:
        found = opened.summary("one").evaluations
        assert len(found) == len({(e.text, e.seed) for e in found})


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from syno_lab.benchmark import Configuration, new_table

    given = {
        "name": "made",
        "summary": "a table",
        "data": "digits",
        "model": "cnn-small",
        "model_options": {"width": 8, "layers": 1, "stages": 1},
        "specification": {
            "input": "[N, C_in: unordered, H, H]",
            "output": "[N, C_out: unordered, H, H]",
            "primary": ["N: 0", "C_in: 2", "C_out: 4", "H: 0"],
            "coefficient": ["k=3: 2"],
            "passed_through": [[0, 0]],
            "max_depth": 3,
            "min_unfold_ratio": 1.3,
            "element_wise_weights": True,
        },
        "fidelity": {"name": "digits", "images": 60, "epochs": 1, "batch": 30},
        "least_macs": 0.0,
    }
    path = tmp_path_factory.mktemp("table") / "made.jsonl.gz"
    new_table(Configuration.from_json(given)).write(path)
    return path


def test_of_two_that_continue_a_table_the_second_is_refused(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made.jsonl.gz"
    shutil.copy(table, path)
    words: list[object] = ["bench", "table", "--out", path, "--limit", "1"]
    both = Interrupter(monkeypatch, MIDDLE["bench table"], words)
    first = invoked(*words)
    check_refused(both.second, first)
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    done = [(x["operator"], x["seed"]) for x in lines if "seed" in x]
    assert len(done) == len(set(done)) == 1


def test_a_file_is_written_by_one(tmp_path: Path) -> None:
    from syno import UserError
    from syno.runs.file_lock import one_writer, written_by_one

    path = tmp_path / "new" / "results.json"

    @one_writer
    def work(first: int, *, path: Path) -> int:
        with pytest.raises(UserError, match=r"another process writes '.*results.json'\n"):
            work(2, path=path)
        return first

    assert work(1, path=path) == 1
    assert work(3, path=path) == 3
    with written_by_one(path), written_by_one(tmp_path / "other.json"):
        pass
    with pytest.raises(UserError, match="cannot write"):
        work(1, path=path / "results.json" / "below\0")


def alone(module: str, name: str) -> Callable[..., object]:
    import importlib

    found: Callable[..., object] = getattr(importlib.import_module(module), name)
    return found


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("syno_lab.benchmark.generator", "generate"),
        ("syno_lab.benchmark.latency", "measure_latencies"),
        ("syno_lab.experiments.ranking", "run"),
        ("syno_lab.experiments.projection", "compare_projection"),
        ("syno_lab.experiments.layers.bench", "bench_layers"),
    ],
)
def test_each_function_that_continues_a_file_is_alone_with_it(
    module: str, name: str, tmp_path: Path
) -> None:
    import inspect

    from syno import UserError
    from syno.runs.file_lock import written_by_one

    path = tmp_path / "results"
    function = alone(module, name)
    given = {
        each.name: None
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty
    }
    with written_by_one(path), pytest.raises(UserError, match="another process writes"):
        function(**{**given, "path": path})


def test_of_two_searches_with_one_name_the_second_is_refused(tmp_path: Path) -> None:
    from syno import UserError

    with Store.open(str(tmp_path / "runs.db")) as store:
        given = {"specification": ("5bec", {}), "settings": {}, "seed": 1}
        store.create_study("one", **given)  # type: ignore[arg-type]
        with pytest.raises(UserError, match=r"has a study 'one' already\n.*syno resume"):
            store.create_study("one", **given)  # type: ignore[arg-type]


def test_every_command_that_takes_a_name_is_in_a_test() -> None:
    """Options that name what a command continues: a new command with one of them needs a test."""
    names = {"--name", "--study", "--out", "--store", "--bundle"}
    reads = {"status", "report", "select", "show", "export-network", "measure", "import", "store"}
    tested = {"search", "train", "adapt", "tune", "resume", "worker", "data", "experiment", "bench"}
    others = {"demo", "doctor", "export", "enumerate", "sample", "verify", "models"}
    folder = Path(next(iter(commands_path)))
    for command in cli.commands_by_name:
        own = [*folder.glob(f"{command.replace('-', '_')}*.py")]
        text = "".join(each.read_text() for each in own)
        takes = any(f'"{name}"' in text for name in names) or "out: Path" in text
        if takes and command not in reads | others:
            assert command in tested, f"nothing tests two of `syno {command}` at once"
    for test in ELSEWHERE.values():
        file, _, function = test.partition("::")
        source = (Path(__file__).parents[2] / file).read_text()
        assert f"def {function}(" in source, test
