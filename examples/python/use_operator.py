"""Write an operator and a network with it as files, and use them without Syno.

python examples/python/use_operator.py [FOLDER]     files go to FOLDER (default: here)
"""

import importlib.util
import sys
from pathlib import Path

import torch
from torch import nn

import syno
from syno.codegen.export import export, export_network

FORMULA = "y[n,o,h,w] = sum(i:C_in, a:k) x[n,i,h+a-k/2,w] * w0[o,i,a]"


def main(folder: Path) -> torch.Tensor:
    """Export both, import the files, and run them."""
    torch.manual_seed(0)
    operator = syno.Operator.parse(
        FORMULA, input="[N, C_in, H, W]", output="[N, C_out, H, W]", sizes={"k": 3}
    )
    files = export(operator, folder / "column_conv", binding="C_in=8,C_out=8,H=8,W=8,N=1,k=3")
    print(f"one layer: {files.code.name}")
    layer = imported(files.code).load()
    print(layer(torch.randn(5, 8, 8, 8)).shape)

    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1))
    net = syno.substitute(net, syno.conv2d(kernel=3), torch.zeros(1, 3, 8, 8))
    specification = syno.Specification(
        "[N, C_in, H, W]",
        "[N, C_out, H, W]",
        ["N: 1", "C_in: 1", "C_out: 1", "H: 1", "W: 1"],
        ["k=3: 1"],
        passed_through=[(0, 0)],
    )
    syno.replace(net, operator.with_specification(specification))
    net.eval()
    x = torch.randn(2, 3, 8, 8)
    files = export_network(net, folder / "whole_net", x, format="torch-network")
    module = imported(files.code).load()
    print(f"whole network: {files.code.name}")
    assert torch.allclose(module(x), net(x), atol=1e-5)
    return module(x)


def imported(file: Path):
    """The module of a Python file, as a program without Syno would import it."""
    found = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
