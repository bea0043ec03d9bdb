"""Networks as C++ libraries in bfloat16."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from syno import UserError, models
from syno.codegen.export import export_network, formats
from syno.codegen.export.write import network_subject
from syno.inference import load

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.bfloat16().float()


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Conv2d, Path]:
    torch.manual_seed(0)
    net = nn.Conv2d(5, 24, 3, padding=1).eval()
    written = export_network(
        net,
        tmp_path_factory.mktemp("layer") / "net",
        torch.zeros(1, 5, 9, 8),
        format="cpp-network",
        precision="bfloat16",
    )
    return net, written.code


@torch.no_grad()
def test_data_and_weights_are_rounded_and_sums_are_float32(layer: tuple[nn.Conv2d, Path]) -> None:
    net, code = layer
    x = torch.randn(3, 5, 9, 8, generator=torch.Generator().manual_seed(1))
    expected = nn.functional.conv2d(rounded(x), rounded(net.weight), net.bias, padding=1)
    y = torch.from_numpy(load(code)(x.numpy(), threads=2))
    assert (y - expected).abs().max() < 1e-5
    assert (y - net(x)).abs().max() > 1e-4


def test_a_processor_without_the_instructions_is_refused(
    layer: tuple[nn.Conv2d, Path], tmp_path: Path
) -> None:
    _, code = layer
    text = code.read_text()
    assert text.count("bool fits = true;") == 1
    other = tmp_path / "other.cpp"
    other.write_text(text.replace("bool fits = true;", "bool fits = false;"))
    with pytest.raises(UserError, match="compiled for a processor with other instructions"):
        load(other, code.with_suffix(".bin"))


def test_weights_of_another_precision_are_refused(
    layer: tuple[nn.Conv2d, Path], tmp_path: Path
) -> None:
    net, code = layer
    written = export_network(net, tmp_path / "net", torch.zeros(1, 5, 9, 8), format="cpp-network")
    with pytest.raises(UserError, match="the weights of another network"):
        load(code, written.weights)


@pytest.mark.parametrize(
    ("format", "precision"), [("cpp-network", "int4"), ("torch-export", "bfloat16")]
)
def test_precisions_that_a_format_does_not_have(
    format: str, precision: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=f"does not have the precision '{precision}'"):
        export_network(
            nn.Linear(2, 2), tmp_path / "net", torch.zeros(1, 2), format=format, precision=precision
        )


@torch.no_grad()
def test_a_network_is_checked_within_the_errors_of_rounding(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = models.build("resnet-small", classes=10, channels=3, size=16).eval()
    nn.init.normal_(net.head.weight, std=0.1)
    chosen = formats.get("cpp-network", networks=True, precision="bfloat16")
    subject = replace(network_subject(net, torch.zeros(1, 3, 16, 16)), precision="bfloat16")
    written = chosen.write(subject, tmp_path / "net")
    run = chosen.check(written, subject)
    assert run.passed, run.output
    x = torch.randn(2, 3, 16, 16)
    expected, y = net(x), torch.from_numpy(load(written.code)(x.numpy()))
    error = (y - expected).abs().max() / expected.abs().max()
    assert 1e-4 < error < 0.03
    subject.reference.head.bias.add_(expected.abs().max())
    assert not chosen.check(written, subject).passed
