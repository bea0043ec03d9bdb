"""Random operators that look like convolutions; uniform random operators seldom do."""

from __future__ import annotations

import random


def random_convolution(draw: random.Random) -> tuple[str, dict[str, int]]:
    """Text and binding: windows over up to three dimensions; batch, groups and channels vary.

    Some have a second weight nearer the input that holds a window too, as Operator 1 does: there
    the window is taken after that weight's contraction.
    """
    sizes = {"N": draw.choice([1, 2, 3])}
    out, data = ["N"], ["o0"]
    steps: list[str] = []
    weight: list[str] = []
    second: list[str] = []
    names = iter(range(100))
    reductions = iter(range(100))

    def fresh() -> str:
        return f"c{next(names)}"

    def reduce(size: str) -> str:
        name = f"r{next(reductions)}"
        steps.append(f"reduce {size} -> {name}")
        return name

    def dimension(variable: str, choices: list[int]) -> str:
        sizes[variable] = draw.choice(choices)
        out.append(variable)
        return f"o{len(out) - 1}"

    if draw.random() < 0.3:  # another dimension that only passes through, or that a weight scales
        extra = dimension("T", [1, 2, 5])
        data.append(extra)
        if draw.random() < 0.3:
            weight.append(f"{extra}:keep")

    groups = draw.choice(["none", "grouped", "shared", "depthwise"])
    if groups == "depthwise":
        channel = dimension("C", [1, 2, 4])
        weight.append(f"{channel}:keep")
        data.append(channel)
    else:
        sizes["C_out"] = draw.choice([1, 2, 3])
        filters = f"o{len(out)}"
        out.append("C_out")
        if groups != "none":
            sizes["g"] = draw.choice([1, 2, 3])
            out[-1] = "g*C_out"
            group, inner = fresh(), fresh()
            steps.append(f"merge {filters} C_out -> {group} {inner}")
            filters = inner
        weight.append(f"{filters}:drop")
        if draw.random() < 0.8:
            sizes["C_in"] = draw.choice([1, 2, 3])
            channel = reduce("C_in")
            (weight if draw.random() < 0.7 else second).append(f"{channel}:keep")
            if groups != "none":
                joined = fresh()
                steps.append(f"split {group} {channel} -> {joined}")
                channel = joined
            data.append(channel)
        elif groups != "none":
            data.append(group)
        if groups == "grouped":
            weight.append(f"{group}:keep")

    for axis, variable in zip(range(draw.choice([1, 2, 2, 3])), ("H", "W", "D"), strict=False):
        place = dimension(variable, [1, 2, 3, 7])
        if draw.random() < 0.85:
            size = f"k_{axis}"
            sizes[size] = draw.choice([1, 2, 3, 4, 5])
            tap = reduce(size)
            if draw.random() < 0.9:
                weight.append(f"{tap}:keep")
                if draw.random() < 0.2:
                    second.append(f"{tap}:keep")
            if draw.random() < 0.1:
                weight.append(f"{place}:keep")
            tap_read = tap
            if draw.random() < 0.15:  # dilation
                sizes[f"d_{axis}"] = draw.choice([2, 3])
                tap_read = fresh()
                steps.append(f"stride {tap} d_{axis} -> {tap_read}")
            if draw.random() < 0.15:
                sizes[f"s_{axis}"] = draw.choice([2, 3])
                strided = fresh()
                steps.append(f"stride {place} s_{axis} -> {strided}")
                place = strided
            window = fresh()
            causal = " causal" if draw.random() < 0.2 else ""
            steps.append(f"unfold {place} {tap_read}{causal} -> {window}")
            place = window
        data.append(place)

    rest = data[1:]
    draw.shuffle(rest)
    data = [data[0], *rest]
    first = _first_view(steps)
    steps[first:first] = ["contract " + " ".join(dims) for dims in (weight, second) if dims]
    text = ["syno operator 1", f"out [{', '.join(out)}]", "in [?]", *steps]
    text.append("match " + " ".join(data))
    extents = {f"o{d}": size for d, size in enumerate(out)}
    for step in steps:
        words = step.split()
        if words[0] == "reduce":
            extents[words[3]] = words[1]
        elif words[0] == "merge":
            extents[words[4]], extents[words[5]] = "g", "C_out"
        elif words[0] == "split":
            extents[words[4]] = f"{extents[words[1]]}*{extents[words[2]]}"
        elif words[0] == "stride":
            extents[words[4]] = f"{extents[words[1]]}*{words[2]}"
        elif words[0] == "unfold":
            extents[words[-1]] = extents[words[1]]
    text[2] = f"in [{', '.join(extents[name] for name in data)}]"
    return "\n".join(text) + "\n", sizes


def _first_view(steps: list[str]) -> int:
    """Where the contraction goes: after what makes its coordinates, before what consumes them."""
    makers = [i for i, step in enumerate(steps) if step.startswith(("reduce", "merge"))]
    views = [i for i, step in enumerate(steps) if step.startswith(("split", "stride", "unfold"))]
    steps[:] = [steps[i] for i in makers] + [steps[i] for i in views]
    return len(makers)
