"""The figures of the paper: drawn from result files, with what is published beside them."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.report.sample import report

from syno import UserError
from syno.cli.main import cli
from syno.operators import zoo
from syno_lab import published
from syno_lab.experiments.layers.results import LayerResults, LayerRun, LayerSubject, LayerTime
from syno_lab.figures import FIGURES, Missing, Sources, Written, read_sources, write_figures
from syno_lab.figures.end_to_end import _model
from syno_lab.figures.write import as_csv

RESULTS = Path(__file__).parents[3] / "bench" / "results"
# A case study of an earlier version, without latencies.
CASE_STUDY = Path(__file__).with_name("quantize_resnet20.json")


def time(subject: str, engine: str, speedup: float) -> LayerTime:
    own = engine == "syno-cpp"
    ms = 1 / speedup
    return LayerTime(
        subject, engine, "float32", own, ms, ms, ms, ms, 0.0, speedup, speedup, 0.1, 0.5
    )


def layers() -> LayerResults:
    """Two layers; NAS-PTE has a time in one of them."""
    runs = []
    for label, count in (("64x56", 6), ("64x56-128x28-k1", 1)):
        times = [
            time("original", "onnxruntime", 1.0),
            time("original", "syno-cpp", 1.1),
            time("operator-1", "syno-cpp", 2.0),
            time("operator-1", "eager", 0.5),
        ]
        times += [time("nas-pte-2", "eager", 0.8)] if count == 6 else []
        costs = {each.subject: LayerSubject(1000, 10) for each in times}
        environment = {"device": "a processor"}
        run = LayerRun(
            *(label, "layer1", count, (1, 64, 56, 56), (1, 64, 56, 56), costs, tuple(times)),
            *("onnxruntime", {}, 0.3, 0.01, False, 100.0, 1.0, environment),
        )
        runs.append(run)
    return LayerResults({"model": "resnet34", "threads": 2}, runs)


def case_study() -> dict[str, Any]:
    content = json.loads(CASE_STUDY.read_text())
    for row, ratio in zip(content["results"], (1.0, 0.5, 0.8, 0.4), strict=True):
        row["latency_ratio"], row["latency_ms"] = ratio, 3 * ratio
    return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every kind, and files that are none."""
    folder = tmp_path_factory.mktemp("results")
    for name in ("canonical_rate", "distance_ablation", "gpt2_projection", "network_engines"):
        shutil.copy(RESULTS / f"{name}.json", folder)
    (folder / "layers.json").write_text(json.dumps(layers().to_json()))
    (folder / "case-study.json").write_text(json.dumps(case_study()))
    (folder / "other.json").write_text('{"a": 1}')
    (folder / "broken.json").write_text("{")
    return folder


@pytest.fixture(scope="module")
def sources(folder: Path) -> Sources:
    found = read_sources([folder])
    found.studies = [report(8)]
    return found


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def drawn(sources: Sources, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures")
    found = write_figures(sources, out)
    assert [type(each) for each in found] == [Written] * len(FIGURES)
    return out


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_is_a_pdf_a_picture_and_a_table_with_sources(name: str, drawn: Path) -> None:
    assert (drawn / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    assert (drawn / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    rows = rows_of(drawn / f"{name}.csv")
    kinds = {row["source"].partition(":")[0] for row in rows}
    assert kinds == {"measured", "published"}


def test_published_times_of_tvm_are_marked_in_every_table(drawn: Path) -> None:
    for name in ("end-to-end", "pareto", "layer-wise"):
        found = [
            row["comparable"]
            for row in rows_of(drawn / f"{name}.csv")
            if row["source"].startswith("published") and "TVM" in "".join(row.values())
        ]
        assert found and set(found) == {"published, not comparable"}, name


def test_a_speedup_above_1_is_faster(drawn: Path) -> None:
    rows = [r for r in rows_of(drawn / "end-to-end.csv") if r["source"].startswith("measured")]
    original = {
        row["engine"]: float(row["milliseconds"]) for row in rows if row["operator"] == "original"
    }
    rival = original[rows[0]["original_engine"]]
    for row in rows:
        faster = float(row["milliseconds"]) < 0.9 * rival
        assert faster <= (float(row["speedup"]) > 1)
    front = rows_of(drawn / "pareto.csv")
    published = [row for row in front if row["operator"] == "original"]
    assert {float(row["speedup"]) for row in published} == {1.0}


def test_means_are_geometric_and_of_the_fastest_engine() -> None:
    found = layers()
    assert found.mean_speedup("operator-1") == (pytest.approx(2.0), 2)
    assert found.mean_speedup("operator-1", "eager") == (pytest.approx(0.5), 2)
    assert found.mean_speedup("nas-pte-2") == (pytest.approx(0.8), 1)
    assert found.mean_speedup("nas-pte-2", "syno-cpp") is None
    assert LayerResults.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_same_results_give_the_same_files(
    sources: Sources, drawn: Path, tmp_path: Path
) -> None:
    write_figures(sources, tmp_path, only=["canonical-rate"])
    for suffix in ("pdf", "png", "csv"):
        name = f"canonical-rate.{suffix}"
        assert (tmp_path / name).read_bytes() == (drawn / name).read_bytes()


def test_a_figure_without_data_is_listed_with_its_command(tmp_path: Path) -> None:
    found = write_figures(Sources(), tmp_path / "out")
    drawn = {each.plan.name for each in found if isinstance(each, Written)}
    assert drawn == {"end-to-end", "pareto"}
    assert {path.stem for path in (tmp_path / "out").iterdir()} == drawn
    assert all(each.plan.command.startswith("syno ") for each in found)
    # A training whose latencies were not measured is no case study.
    without = read_sources([CASE_STUDY])
    assert isinstance(write_figures(without, tmp_path, ["case-study"])[0], Missing)


def test_published_points_are_drawn_without_a_store(tmp_path: Path) -> None:
    for each in write_figures(Sources(), tmp_path, ["pareto", "end-to-end"]):
        assert isinstance(each, Written) and each.published_only
        rows = rows_of(each.files[2])
        assert {row["source"] for row in rows} == {"published: the paper's artifact"}
    # Every published network with a time on a platform is in the table of the fronts.
    points = {(r["model"], r["operator"]) for r in rows_of(tmp_path / "pareto.csv")}
    assert len(points) == len({(e.model, e.operator) for e in published.operators()}) + 5
    named = {operator for _, operator in points} - {"original"}
    assert {f"operator-{number}" for number in named} <= set(zoo.published_names())


def test_a_figure_says_which_engines_a_file_lacks(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "network_engines.json").read_text())
    content["times"] = [time for time in content["times"] if time["engine"] != "inductor"]
    path = tmp_path / "network.json"
    path.write_text(json.dumps(content))
    whole, without = read_sources([folder / "network_engines.json", path]).networks
    assert whole.content.missing == ()
    assert without.content.missing == ("inductor",)
    (written,) = write_figures(read_sources([path]), tmp_path, ["end-to-end"])
    assert isinstance(written, Written)
    rows = [r for r in rows_of(written.files[2]) if r["source"].startswith("measured")]
    assert {row["missing_engines"] for row in rows} == {"inductor"}
    # Text stays text in a PDF, but it is compressed: the label is looked for in its function.
    assert _model(without.content).endswith("\nwithout TorchInductor")
    missing = LayerResults.from_json(json.loads(json.dumps(layers().to_json()))).missing
    assert missing == ("eager", "inductor", "openvino")


def test_files_that_hold_nothing_are_said(folder: Path, tmp_path: Path) -> None:
    ignored = read_sources([folder]).ignored
    assert {Path(name).name for name in ignored} == {"other.json", "broken.json"}
    for name, match in (
        ("other.json", "holds no results"),
        ("broken.json", "is not valid JSON"),
        ("absent.json", "cannot read the results"),
    ):
        with pytest.raises(UserError, match=match):
            read_sources([folder / name])
    damaged = json.loads((folder / "network_engines.json").read_text())
    del damaged["times"][0]["engine"]
    path = tmp_path / "damaged.json"
    path.write_text(json.dumps(damaged))
    with pytest.raises(UserError, match="are damaged"):
        read_sources([path])
    with pytest.raises(UserError, match="did you mean: pareto"):
        write_figures(Sources(), tmp_path, ["paretto"])


def test_names_are_no_markup(sources: Sources, tmp_path: Path) -> None:
    hostile = dataclasses.replace(report(4), title="$\\frac{$ _{")
    found = Sources(studies=[hostile])
    assert isinstance(write_figures(found, tmp_path, ["pareto"])[0], Written)
    assert as_csv([{"a": 'x,"y"', "b": None}, {"b": 0.1}]) == 'a,b\n"x,""y""",\n,0.1\n'


def test_the_command_draws_and_lists(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["report", "--figures", "out", "--only", "canonical-rate,pareto"]
    result = CliRunner().invoke(cli, [*words, "--results", str(folder)])
    assert result.exit_code == 0, result.output
    assert "wrote out/canonical-rate.pdf" in result.stdout
    assert "no data for pareto (Figure 6): syno search" in result.stdout
    as_json = CliRunner().invoke(cli, [*words, "--json"])
    assert as_json.exit_code == 0
    listed = json.loads(as_json.stdout)
    assert set(listed["missing"]) == {"canonical-rate", "pareto"}
    assert set(listed["written"]) == {"pareto"}
    nothing = CliRunner().invoke(cli, ["report", "--figures", "out", "--only", "canonical-rate"])
    assert nothing.exit_code == 1
    for wrong in (
        ["--results", str(folder)],
        [*words[1:], "--final"],
        [*words[1:], "--store", "no.db"],
    ):
        assert CliRunner().invoke(cli, ["report", *wrong]).exit_code == 2
    (tmp_path / "file").write_text("")
    taken = CliRunner().invoke(
        cli, ["report", "--figures", "file/out", "--results", str(folder), "--only", "loss"]
    )
    assert taken.exit_code == 2 and "cannot write figures" in taken.stderr
