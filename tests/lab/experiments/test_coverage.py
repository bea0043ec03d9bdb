"""Which networks are compiled: families, their smallest networks, processes, files of results."""

import dataclasses
import json

import pytest
import torch
from torch import nn

from syno import UserError
from syno_lab.experiments.child import ProcessLimits
from syno_lab.experiments.coverage import examine, sweep
from syno_lab.experiments.coverage.examine import ComparedLibrary, Covered
from syno_lab.experiments.coverage.families import Family, families, smallest
from syno_lab.experiments.coverage.sweep import Coverage, CoverageSweep, cover
from syno_lab.experiments.coverage.tables import missing_table, networks_table


@pytest.fixture(scope="module")
def known():
    return {family.key: family for family in families()}


def test_families_are_files_of_the_packages(known):
    assert "vgg11" in known["torchvision/vgg"].networks
    assert "repvit_m0_9" in known["timm/repvit"].networks
    assert "eca_botnext26ts_256" in known["timm/byoanet"].networks
    names = [name for family in known.values() for name in family.networks]
    assert not any(name.startswith("test_") for name in names)
    assert len({(f.package, n) for f in known.values() for n in f.networks}) == len(names)


def test_the_smallest_network_has_the_fewest_parameters():
    family = Family("torchvision", "squeezenet", ("squeezenet1_0", "squeezenet1_1"))
    assert smallest(family) == ("squeezenet1_1", 1_235_496)


def test_a_network_that_computes_its_widths_is_built(known):
    regnet = known["torchvision/regnet"]
    assert smallest(dataclasses.replace(regnet, networks=("regnet_y_400mf",))) == (
        "regnet_y_400mf",
        4_344_144,
    )


class Part(nn.Module):
    """A convolution, and a function that may have no code."""

    def __init__(self, sort):
        super().__init__()
        self.conv, self.sort = nn.Conv2d(3, 4, 3), sort

    def forward(self, x):
        y = torch.relu(self.conv(x))
        return (y.sort(1).values if self.sort else y).mean((2, 3))


@pytest.mark.parametrize("sort", [False, True])
def test_a_network_is_covered_or_names_what_is_missing(sort, monkeypatch):
    monkeypatch.setattr(examine, "smallest", lambda family: ("part", 112))
    monkeypatch.setattr(examine, "built", lambda package, name: Part(sort).eval())
    monkeypatch.setattr(examine, "input_of", lambda package, net: (3, 6, 5))
    found = examine.examined(Family("timm", "parts", ("part",)))
    assert (found.network, found.input, found.traced, found.layers) == ("part", (3, 6, 5), True, 1)
    assert found.whole is not sort
    assert list(found.missing) == (["aten.sort.default"] if sort else [])
    assert found.reason.endswith("at aten.sort.default") is sort
    assert found.others["mean.dim"] == 1


FAMILY = Family("torchvision", "squeezenet", ("squeezenet1_1",))


def test_a_process_that_takes_too_long_is_ended_and_the_file_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "families", lambda: [FAMILY])
    path, said = tmp_path / "found.json", []
    short = CoverageSweep(limits=ProcessLimits(seconds=0.01))
    found = cover(path, short, progress=lambda *each: said.append(each))
    (ended,) = found.networks
    assert (ended.family, ended.reason) == (FAMILY.key, "it took more than 0 s")
    assert said[-1][:2] == (1, 1)
    assert sweep.read(path) == found
    cover(path, short, progress=lambda *each: said.append(each))
    assert said[-1][:2] == (0, 0)  # nothing is left
    content = json.loads(path.read_text())
    content["networks"][0]["commit"] = "another"
    path.write_text(json.dumps(content))
    assert cover(path, short).networks == [ended]  # other sources may cover it
    with pytest.raises(UserError, match="there is no family 'timm/resnot'"):
        cover(path, CoverageSweep(only=("timm/resnot",)))
    content["environment"]["libraries"]["timm"] = "0"
    path.write_text(json.dumps(content))
    with pytest.raises(UserError, match="are of other libraries"):
        cover(path, short)
    path.write_text("[]")
    with pytest.raises(UserError, match="holds no coverage of networks"):
        sweep.read(path)


@pytest.mark.slow
def test_a_network_is_compiled_and_compared_in_its_process(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "families", lambda: [FAMILY])
    (found,) = cover(tmp_path / "found.json", CoverageSweep(compiled=True)).networks
    assert found.whole and found.compiled is not None
    assert found.compiled.error < 1e-4


def test_the_tables_name_what_is_not_covered_first():
    one = Covered("timm/one", "net_one", 1000, (3, 4, 4), True, True, layers=7)
    two = dataclasses.replace(
        one, family="timm/two", network="net_two", whole=False, reason="why", missing={"op": "no"}
    )
    made = dataclasses.replace(one, family="timm/three", compiled=ComparedLibrary(error=2e-6))
    found = Coverage({}, [one, two, made])
    rows = networks_table(found).markdown().splitlines()[2:]
    assert [row.split(" | ")[3] for row in rows] == ["why", "covered", "covered, off by 2e-06"]
    assert "| op | 1 | no |" in missing_table(found).markdown()
    assert found.whole == 2
