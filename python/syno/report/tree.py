"""An operator as a text tree, for terminals and for pages without Graphviz."""

from __future__ import annotations

from syno.operators.json_form import OperatorForm, StepForm

# A step that makes coordinates, by the name of each coordinate it makes.
_Makers = dict[str, tuple[StepForm, str]]


def tree(form: OperatorForm) -> str:
    """Draw an operator as trees: each input dimension and weight with its coordinates below.

    The leaves are output dimensions and reductions. A coordinate that is used twice is drawn only
    the first time.
    """
    makers = _makers(form)
    out_sizes = {f"o{i}": dim["size"] for i, dim in enumerate(form["out"])}
    visited: set[str] = set()

    def lines(name: str, mark: str) -> list[str]:
        head = f"{name}{mark}"
        if name in out_sizes:
            return [f"{head}  output dimension {name[1:]}, size {out_sizes[name]}"]
        if name not in makers:
            return [head]
        step, part = makers[name]
        if name in visited and step["op"] != "reduce":
            return [f"{head}  (drawn above)"]
        visited.add(name)
        children = [lines(child, "") for child in _inputs(step)]
        return [f"{head}  {_describe(step, part)}", *_branches(children)]

    data = [
        _labelled(f"x[{i}] size {dim['size']}", lines(name, ""))
        for i, (dim, name) in enumerate(zip(form["in"], form["match"], strict=True))
    ]
    blocks = ["input x", *_branches(data)]
    contractions = [step for step in form["steps"] if step["op"] == "contract"]
    for index, step in enumerate(contractions):
        dims = [lines(name, f" ({role})") for name, role in step["dims"]]
        blocks += [f"weight w{index}", *_branches(dims)]
    expanded = [
        lines(name, "")
        for step in form["steps"]
        if step["op"] == "expand"
        for name in _inputs(step)
    ]
    if expanded:
        blocks += ["expanded (the result repeats along these)", *_branches(expanded)]
    return "\n".join(blocks)


def _makers(form: OperatorForm) -> _Makers:
    makers: _Makers = {}
    for step in form["steps"]:
        out = step.get("out")
        if isinstance(out, list):  # of a merge
            makers[out[0]] = (step, "div")
            makers[out[1]] = (step, "mod")
        elif out is not None:
            makers[out] = (step, "")
    return makers


def _inputs(step: StepForm) -> list[str]:
    source = step.get("in", [])
    return [source] if isinstance(source, str) else list(source)


def _describe(step: StepForm, part: str) -> str:
    match step["op"]:
        case "merge":
            return f"merge, {part} {step['block']}"
        case "reduce":
            return f"reduce, size {step['size']}"
        case "shift":
            return f"shift by {step['d']}"
        case "stride":
            return f"stride {step['S']}"
        case "unfold":
            return "unfold, causal" if step.get("causal") else "unfold"
        case other:
            return str(other)


def _labelled(label: str, lines: list[str]) -> list[str]:
    return [f"{label} = {lines[0]}", *lines[1:]]


def _branches(children: list[list[str]]) -> list[str]:
    result: list[str] = []
    for index, child in enumerate(children):
        last = index == len(children) - 1
        result.append(("└─ " if last else "├─ ") + child[0])
        result += [("   " if last else "│  ") + line for line in child[1:]]
    return result
