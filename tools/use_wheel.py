"""Uses an installed wheel: what it holds, and that it finds, plans and evaluates operators.

Usage: use_wheel.py FOLDER    FOLDER is where the wheel was unpacked, and stands first on the path
"""

import sys
from pathlib import Path

import numpy as np

import syno


def main(folder: Path) -> None:
    """Fails with an assertion when the package from `folder` is not complete."""
    package = Path(syno.__file__).parent
    assert package == folder / "syno", f"syno comes from {package}, not from {folder}"
    assert (package / "_core.pyi").is_file() and (package / "py.typed").is_file()
    assert "torch" not in sys.modules, "import syno loads torch"
    assert (package / "report" / "templates" / "page.html").is_file()
    size = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "W": 6}
    sampler = syno.Sampler(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0", "W: 0"],
        ["k=3: 2"],
        bindings=[size],
        passed_through=[(0, 0)],
        max_depth=5,
    )
    operator = sampler.sample()
    shapes = operator.weight_shapes(size)
    y = operator.interpret(size, np.ones((1, 8, 6, 6)), [np.ones(shape) for shape in shapes])
    assert y.shape == (1, 8, 6, 6) and y.any()
    assert syno.Operator.from_json(operator.to_json()) == operator
    compile(operator.source(size), "operator", "exec")
    print(f"syno {syno.__version__} from the wheel: {operator.formula()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
