"""Small forms of every model, and an operator that fits each."""

from __future__ import annotations

from syno import Operator, Specification
from syno.network import models
from syno.operators import zoo

# Arguments of `build` for networks that run in a fraction of a second.
IMAGES = {"classes": 7, "size": 32}
SMALL: dict[str, dict[str, int]] = {
    "resnet-small": IMAGES | {"width": 4},
    "resnet20": IMAGES | {"width": 4},
    "resnet32": IMAGES | {"width": 4},
    "resnet18-small": IMAGES | {"width": 4},
    "resnet34-small": IMAGES | {"width": 4},
    "cnn-small": IMAGES | {"width": 4},
    "mobilenetv2-cifar": IMAGES | {"width": 8},
    "mobilenetv3-cifar": IMAGES | {"width": 8},
    "efficientnet-cifar": IMAGES | {"width": 8},
    "repvit-cifar": IMAGES | {"width": 8},
    "convnext-cifar": IMAGES | {"width": 8},
    "deit-cifar": IMAGES | {"width": 12, "layers": 2},
    "resnet18": IMAGES | {"width": 8, "cifar_stem": 1},
    "resnet34": IMAGES | {"width": 8, "cifar_stem": 1},
    "resnet50": IMAGES | {"width": 8, "cifar_stem": 1},
    "densenet121": IMAGES | {"growth": 4, "cifar_stem": 1},
    "resnext29_2x64d": IMAGES | {"width": 8, "cifar_stem": 1},
    "efficientnet_v2_s": IMAGES | {"cifar_stem": 1},
    "mobilenet_v2": IMAGES | {"percent": 25, "cifar_stem": 1},
    "vit_b_16": IMAGES | {"patch": 8, "layers": 2, "heads": 2, "width": 16},
    "convnext_tiny": IMAGES | {"width": 8},
    "gpt2": {"vocabulary": 50, "context": 12, "layers": 2, "heads": 2, "width": 16},
    "gpt2-small": {"context": 12, "layers": 2, "width": 16},
    "timm/resnet10t": {"classes": 7, "size": 64},
    "timm/vit_tiny_patch16_224": {"classes": 7, "size": 32},
}

assert {name for name in SMALL if not name.startswith("timm/")} == set(models.list_models())


CONVOLUTION = zoo.load("conv2d").with_specification(
    Specification(
        "[N, C_in: unordered, H, W]",
        "[N, C_out: unordered, H, W]",
        ["N: 0", "C_in: 2", "C_out: 2", "H: 0", "W: 0"],
        ["k=3: 2"],
        passed_through=[(0, 0)],
    )
)
PROJECTION = Operator.parse(
    "y[n,t,o] = sum(i:H_in) x[n,t,i] * w0[i,o]",
    Specification(
        "[N, seq_len, H_in: unordered]",
        "[N, seq_len, H_out: unordered]",
        ["N: 0", "seq_len: 0", "H_in: 2", "H_out: 2"],
        passed_through=[(0, 0)],
    ),
)
# As the paper's preset for GPT-2 has the shapes.
QKV = Operator.parse(
    "y[n,q,o] = sum(i:H_in) x[n,q,i] * w0[i,o]",
    Specification(
        "[N, seq_len, H_in: unordered]",
        "[N, seq_len, t*H_in]",
        ["N: 0", "seq_len: 0", "H_in: 4"],
        ["t=3: 3"],
        passed_through=[(0, 0)],
    ),
)


def operator_for(name: str) -> Operator:
    """A convolution or a projection with the shapes of the model's slots."""
    if name.startswith("gpt2"):
        return QKV
    linear = ("vit_b_16", "convnext_tiny", "convnext-cifar", "deit-cifar")
    linear += ("timm/vit_tiny_patch16_224",)
    return PROJECTION if name in linear else CONVOLUTION
