"""Every model of the catalogue: its slots, sizes and costs, and what cannot be built."""

from __future__ import annotations

import functools
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import syno
from marks import slow_but, with_slow
from syno import Specification, UserError, layer_report
from syno.network.models import build, built, describe, list_models, slots, summarise, summary
from syno.network.surgery import slot_bindings
from syno.study.evaluate.weights import load_weights, write_weights
from syno.study.specifications import PAPER_MACS_SHARES

from .small import CONVOLUTION

# Slots and different sizes of the paper's models, as its experiments count them.
PAPER = {
    "resnet18": (19, 7),
    "resnet34": (35, 7),
    "densenet121": (58, 4),
    "resnext29_2x64d": (10, 4),
    "efficientnet_v2_s": (10, 5),
    "vit_b_16": (24, 2),
    "gpt2": (12, 1),
}
# Multiply-adds and parameters that torchvision's documentation and the papers give, in G and M.
PUBLISHED = {
    "resnet18": (1.814, 11.690),
    "resnet34": (3.664, 21.798),
    "resnet50": (4.089, 25.557),
    "densenet121": (2.834, 7.979),
    "efficientnet_v2_s": (None, 21.458),
    "mobilenet_v2": (0.301, 3.505),
    "vit_b_16": (17.564, 86.568),
    "convnext_tiny": (4.456, 28.589),
}

# Networks that take seconds to build and to follow: the others stand for them in make test.
LARGE = ("densenet121", "efficientnet_v2_s", "vit_b_16", "convnext_tiny", "gpt2")


def few(figures: dict[str, Any]) -> list[Any]:
    """The figures of each network; those of the large ones are for slow tests."""
    return [
        pytest.param(name, figure, marks=pytest.mark.slow if name in LARGE else ())
        for name, figure in figures.items()
    ]


whole = functools.cache(summarise)  # with default options


@pytest.mark.parametrize(("name", "counts"), few(PAPER))
def test_the_papers_layers_are_the_slots(name: str, counts: tuple[int, int]) -> None:
    found = whole(name)
    assert (found.slots, len(found.bindings)) == counts
    assert sum(count for _, count in found.bindings) == found.slots


def test_the_sizes_of_resnet18_are_those_of_its_experiment() -> None:
    found = [(b["C_in"], b["C_out"], b["H"], b["W"], n) for b, n in whole("resnet18").bindings]
    assert found == [
        (64, 64, 56, 56, 4),
        (64, 128, 28, 28, 2),
        (128, 128, 28, 28, 3),
        (128, 256, 14, 14, 2),
        (256, 256, 14, 14, 3),
        (256, 512, 7, 7, 2),
        (512, 512, 7, 7, 3),
    ]


@pytest.mark.parametrize(("name", "figures"), few(PUBLISHED))
def test_costs_are_the_published_ones(name: str, figures: tuple[float | None, float]) -> None:
    found = whole(name)
    macs, params = figures
    assert found.params / 1e6 == pytest.approx(params, abs=1e-3)
    if macs is not None:
        assert found.macs / 1e9 == pytest.approx(macs, abs=1e-3)


def test_every_multiply_add_of_gpt2_is_counted() -> None:
    options = {"vocabulary": 50, "context": 20, "layers": 3, "heads": 2, "width": 8}
    found = summarise("gpt2", **options)
    t, w = 20, 8
    block = t * (3 * w * w + w * w + 8 * w * w) + 2 * t * t * w  # projections, MLP; attention
    assert found.macs == 3 * block + t * w * 50
    assert found.slot_macs == 3 * t * w * 3 * w
    assert found.bindings == [({"H_in": 8, "H_out": 24, "seq_len": 20}, 3)]


def test_operators_of_the_artifact_have_their_published_parameters_in_resnext29() -> None:
    """That its stages have 3, 3, 3 and 1 blocks is read off these figures."""
    found = whole("resnext29_2x64d")
    kept = found.params - found.slot_params
    one = sum(n * (b["C_in"] // 2) * 3 * (b["C_out"] // 2) for b, n in found.bindings)
    assert (kept + one) / 1e6 == pytest.approx(13.35, abs=5e-3)  # 07914: [C_in/s, k_1, C_out/s]


@pytest.mark.parametrize(
    "name", with_slow([n for n in list_models() if describe(n).preset], *LARGE)
)
def test_a_preset_has_the_sizes_of_its_model(name: str) -> None:
    preset = Specification.preset(str(describe(name).preset))
    with torch.device("meta"):
        net = slots(build(name))
    found = slot_bindings(net, preset)
    given = {tuple(sorted(b.items())): m for b, m in _pairs(preset)}
    ours = zip(found["bindings"], found["multiplicities"], strict=True)
    if not preset.bindings:  # takes them from the network
        assert found["multiplicities"] == [3, 3, 3, 1]
        return
    assert {tuple(sorted(b.items())): m for b, m in ours} == given
    if preset.limits["min_macs"]:
        report = layer_report(net)
        kept = report.macs - sum(row.macs for row in report.slots)
        low, high = (
            (round(share * report.macs - kept))
            for share in PAPER_MACS_SHARES[str(describe(name).preset)]
        )
        assert (max(low, 0), high) == (preset.limits["min_macs"], preset.limits["max_macs"])
        core = preset.with_changes()._core.source["layer_macs"]
        assert list(core) == found["layer_macs"]


def _pairs(preset: Specification) -> list[tuple[dict[str, int], int]]:
    return list(zip(preset.bindings, preset.multiplicities, strict=True))


SMALL = {
    "resnet18": {"width": 8},
    "resnet34": {"width": 8},
    "resnet50": {"width": 8},
    "densenet121": {"growth": 4},
    "resnext29_2x64d": {"width": 8},
    "efficientnet_v2_s": {},
    "mobilenet_v2": {"percent": 25},
    "vit_b_16": {"patch": 8, "layers": 2, "heads": 2, "width": 16},
    "convnext_tiny": {"width": 8},
}


@pytest.mark.parametrize(("cifar_stem", "channels"), [(0, 1), (1, 3)])
@pytest.mark.parametrize("name", SMALL)
def test_options_make_smaller_networks_that_score_every_class(
    name: str, cifar_stem: int, channels: int
) -> None:
    options = dict(SMALL[name])
    if "cifar_stem" in describe(name).options:
        options["cifar_stem"] = cifar_stem
    torch.manual_seed(0)
    net = build(name, classes=7, channels=channels, size=32, **options).eval()
    assert net(torch.randn(2, channels, 32, 32)).shape == (2, 7)
    assert built(net).input_shape == (channels, 32, 32)


def test_a_stem_for_small_images_keeps_their_size() -> None:
    maps = {}
    for stem in (0, 1):
        found = summarise("resnet18", size=32, classes=10, cifar_stem=stem)
        maps[stem] = [row.binding["H"] for row in found.report.rows if row.name == "layer1.0.conv1"]
    assert maps == {0: [8], 1: [32]}


@pytest.mark.parametrize("name", [n for n in list_models() if "cifar_stem" in describe(n).options])
def test_the_smallest_images_give_scores(name: str) -> None:
    for size, stem in ((8, 1), (32, 0)):
        net = build(name, classes=3, size=size, cifar_stem=stem).eval()
        assert net(torch.zeros(1, 3, size, size)).shape == (1, 3)


def test_a_stem_stays_for_images_of_any_number_of_channels() -> None:
    for name in ("resnet18", "densenet121"):
        rows = summarise(name, size=32, channels=8, cifar_stem=1).report.rows
        assert rows[0].binding["C_in"] == 8
        assert rows[0].status == "kept"


def test_layers_whose_maps_are_too_small_stay() -> None:
    rows = {row.name: row for row in summarise("resnet18", size=32).report.rows}
    assert rows["layer2.0.conv1"].status == "slot"
    assert rows["layer3.0.conv2"].reason == "H=2, W=2 is below 4"


@pytest.mark.parametrize(
    "name", with_slow(["resnet18", "densenet121", "gpt2-small", "vit_b_16"], *LARGE)
)
def test_a_built_network_is_the_one_its_package_has(name: str) -> None:
    """With default options and three channels: the same names, shapes and drawn weights."""
    from syno.network.models.extras import load_extra

    if name == "gpt2-small":
        transformers = load_extra("transformers", "a test")
        config = transformers.GPT2Config(
            vocab_size=256, n_positions=128, n_layer=4, n_head=4, n_embd=128
        )
        torch.manual_seed(0)
        theirs = transformers.GPT2LMHeadModel(config)
    else:
        models = load_extra("torchvision", "a test").models
        torch.manual_seed(0)
        theirs = getattr(models, name)(weights=None)
    torch.manual_seed(0)
    ours = build(name)
    state, other = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(other)
    assert all(torch.equal(state[key], other[key]) for key in state)


def test_gpt2_maps_ids_to_scores_and_never_reads_a_later_token() -> None:
    torch.manual_seed(0)
    net = slots(build("gpt2-small", context=16, layers=2, width=32)).eval()
    ids = torch.randint(0, 256, (2, 16))
    scores = net(ids)
    assert scores.shape == (2, 16, 256)
    later = ids.clone()
    later[:, 9:] = 0
    torch.testing.assert_close(net(later)[:, :9], scores[:, :9])
    assert net(ids[:, :5]).shape == (2, 5, 256)
    for wrong in (ids[0], torch.zeros(1, 17, dtype=torch.long)):
        with pytest.raises(UserError, match=r"up to context=16      got: \[1"):
            net(wrong)


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_weights_come_from_a_file(tmp_path: Path, suffix: str) -> None:
    torch.manual_seed(1)
    first = build("resnet-small", width=4)
    path = tmp_path / f"weights{suffix}"
    if suffix == ".pt":
        torch.save(first.state_dict(), path)
    else:
        save_file(first.state_dict(), path)
    again = build("resnet-small", width=4, weights=str(path))
    for key, tensor in first.state_dict().items():
        assert torch.equal(tensor, again.state_dict()[key])


def test_weights_of_a_network_whose_layers_are_in_slots_are_those_of_its_model(
    tmp_path: Path,
) -> None:
    torch.manual_seed(1)
    template = syno.substitute(
        build("resnet-small", width=4), example_input=torch.zeros(1, 3, 16, 16)
    )
    path = tmp_path / "weights.safetensors"
    save_file(template.state_dict(), path)
    assert any(".layer." in key for key in template.state_dict())
    again = build("resnet-small", width=4, weights=str(path)).eval()
    x = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(again(x), template.eval()(x))


def test_weights_go_from_networks_with_slots_to_those_without_and_back(tmp_path: Path) -> None:
    def net() -> nn.Module:
        return build("resnet-small", width=4)

    x = torch.randn(2, 3, 16, 16)
    first = net().eval()
    template = syno.substitute(net(), example_input=x).eval()
    template.load_state_dict(first.state_dict())
    assert torch.equal(template(x), first(x))
    again = syno.substitute(net(), example_input=x).eval()
    again.load_state_dict(template.state_dict())
    assert torch.equal(again(x), first(x))
    path = tmp_path / "baseline.safetensors"
    write_weights(path, template, {"input_shape": [3, 16, 16], "classes": 7, "vocabulary": None})
    plain = net().eval()
    plain.load_state_dict(load_file(path))
    assert torch.equal(plain(x), first(x))

    report = syno.replace(template, CONVOLUTION)
    assert report.replaced and report.kept
    write_weights(path, template, {"input_shape": [3, 16, 16], "classes": 7, "vocabulary": None})
    filled = syno.substitute(net(), example_input=x).eval()
    syno.replace(filled, CONVOLUTION)
    load_weights(path, filled)
    assert torch.equal(filled(x), template(x))
    with pytest.raises(RuntimeError, match="Missing key"):
        filled.load_state_dict(first.state_dict())


def test_wrong_weights_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(build("resnet-small", width=4).state_dict(), path)
    with pytest.raises(UserError, match=r"not those of model 'resnet-small'(.|\n)*is \[4, 3, 3, 3"):
        build("resnet-small", width=8, weights=str(path))
    with pytest.raises(UserError, match=r"'conv1.weight' is missing(.|\n)*and \d+ more"):
        build("resnet18", weights=str(path))
    with pytest.raises(UserError, match="'weights' is the path of a file"):
        build("resnet-small", weights=3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="there is no file with weights at"):
        build("resnet-small", weights=str(tmp_path / "none.pt"))
    for name in ("text.pt", "text.safetensors"):
        (tmp_path / name).write_text("not weights")
        with pytest.raises(UserError, match="holds no state dict"):
            build("resnet-small", weights=str(tmp_path / name))
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(UserError, match="holds no state dict, but list"):
        build("resnet-small", weights=str(tmp_path / "list.pt"))


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("resnet-18", {}, r"unknown model 'resnet-18'\n(.|\n)*did you mean: resnet18"),
        ("ResNet50", {}, "did you mean: resnet50"),
        (3, {}, "unknown model '3'"),
        ("resnet18", {"withd": 3}, r"unknown option 'withd'(.|\n)*did you mean: width"),
        ("resnet18", {"cifar_stem": 2}, r"cannot be 2\n.* from 0 to 1"),
        ("resnet18", {"width": True}, "cannot be True"),
        ("resnet18", {"size": 31}, r"size = 31\n.* at least 32"),
        ("resnet18", {"size": 7, "cifar_stem": 1}, r"size = 7\n.* at least 8"),
        ("vit_b_16", {"size": 100}, r"size = 100\n  expected: a multiple of its patches of 16 px"),
        ("vit_b_16", {"size": 8}, r"size = 8\n.* at least 16"),
        ("vit_b_16", {"heads": 5}, r"width = 768 into heads = 5\n  expected: heads that divide"),
        ("gpt2-small", {"heads": 3}, "heads that divide the width"),
        (
            "gpt2-small",
            {"classes": 10, "size": 32},
            "token ids, not images: it has no classes, size",
        ),
        ("gpt2-small", {"vocabulary": 1}, r"cannot be 1\n.* from 2 to"),
        ("timm/resnet18", {"width": 8}, r"unknown option 'width'(.|\n)*it has no options"),
        ("timm/resnet1", {}, r"timm \S+ has no model 'resnet1'\n(.|\n)*did you mean: resnet1"),
    ],
)
def test_bad_input_says_what_is_accepted(
    name: str, arguments: dict[str, int], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        slots(build(name, **arguments))


def test_a_missing_package_is_named_with_the_line_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package, name, extra in (
        ("torchvision", "resnet18", "vision"),
        ("timm", "timm/resnet18", "vision"),
        ("transformers", "gpt2", "language"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(UserError) as error:
                build(name)
            if package == "torchvision":
                with pytest.raises(UserError, match="torchvision cannot be imported"):
                    build("timm/resnet18")
        text = str(error.value)
        assert f"needs the package {package}, and {package} cannot be imported" in text
        assert text.endswith(f"  what to do: pip install 'syno[{extra}]'")


def test_a_model_without_replaceable_layers_lists_its_layers_with_reasons() -> None:
    with pytest.raises(UserError) as error:
        slots(build("mobilenet_v2"), syno.conv2d(kernel=5))
    lines = str(error.value).splitlines()
    assert re.match(r"the network MobileNetV2 has no slots$", lines[0])
    assert "got: none of 53 layers" in lines[1]
    assert "  features.0.0 (conv 3x3 /2): stride 2" in lines or any("kernel 3" in x for x in lines)
    assert any(
        re.match(r"  features\S+, \S+ and \d+ more \(conv 1x1\): kernel 1", x) for x in lines
    )
    assert "  classifier.1 (linear): not a conv2d layer" in lines
    assert len(lines) < 20


TIMM = ["resnet10t", "vit_tiny_patch16_224", "mixer_s16_224", "mobilenetv3_small_050"]


@pytest.mark.parametrize("name", slow_but(TIMM, "mobilenetv3_small_050"))
def test_any_model_of_timm_has_slots(name: str) -> None:
    found = summarise(f"timm/{name}", classes=5)
    assert found.slots > 0
    assert found.slot_macs > found.macs / 4
    if name == "vit_tiny_patch16_224":
        smaller = summarise(f"timm/{name}", size=64)
        assert [b["seq_len"] for b, _ in smaller.bindings] == [17, 17]


def test_slots_of_another_network_are_refused() -> None:
    with pytest.raises(UserError, match=r"slots\(\) is for networks made by syno\.models\.build"):
        slots(nn.Linear(2, 2))


def test_the_stored_summaries_of_small_models_are_those_of_the_models() -> None:
    path = Path(summary.__file__).with_name("summaries.json")
    stored = json.loads(path.read_text(encoding="utf-8"))
    small = [name for name, each in stored.items() if each["macs"] < 2e7]
    assert len(small) >= 4
    for name in small:
        found = summarise(name).to_json()
        assert stored[name] == json.loads(
            json.dumps({k: v for k, v in found.items() if k != "name"})
        )


@pytest.mark.slow
def test_the_stored_summaries_are_those_of_the_models() -> None:
    """`syno models` reads them. SYNO_UPDATE_GOLDEN=1 writes them anew."""
    found = {name: summarise(name).to_json() for name in list_models()}
    content = {name: {k: v for k, v in each.items() if k != "name"} for name, each in found.items()}
    path = Path(summary.__file__).with_name("summaries.json")
    if os.environ.get("SYNO_UPDATE_GOLDEN"):
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    assert json.loads(path.read_text(encoding="utf-8")) == content
    assert summary.entries() == list(found.values())
