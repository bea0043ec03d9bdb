"""The public entries that take texts, JSON, files or numbers: valid inputs of each, and the call.

A call takes a whole input and gives it to the entry; it may raise UserError and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.audit import arguments, study_arguments
from tests.audit.lines import lines, mutated_line, try_line
from tests.audit.methods import other_operator, use_operator
from tests.audit.mutations import mutated_bytes, mutated_data, mutated_text
from tests.audit.valid import (
    COEFFICIENT,
    PRIMARY,
    SHAPES,
    SIZES,
    Entry,
    folder,
    operators,
    specification,
)

import syno
from syno import Operator, Space, Specification, UserError
from syno.operators import zoo
from syno.operators.specification import checked_binding


def _texts() -> list[str]:
    return [operator.text for operator in operators()]


# Operators.


def _from_json(value: Any) -> None:
    Operator.from_json(value)


def _shape(dims: list[dict[str, Any]]) -> str:
    shown = [f"{dim['size']}{': unordered' if dim['unordered'] else ''}" for dim in dims]
    return f"[{', '.join(shown)}]"


def _formulas() -> list[Any]:
    found = []
    for operator in operators():
        form = operator.to_json()
        given = {"input": _shape(form["in"]), "output": _shape(form["out"])}
        found += [given | {"text": operator.formula(stages=stages)} for stages in (False, True)]
    return found


def _mutated_formula(given: Any, rng: random.Random) -> Any:
    name = rng.choice(("text", "text", "text", "input", "output"))
    return given | {name: mutated_text(given[name], rng)}


# Specifications and what goes with them.


def _arguments() -> list[Any]:
    return [
        {
            "input": SHAPES[0], "output": SHAPES[1], "primary": PRIMARY,
            "coefficient": COEFFICIENT, "bindings": [SIZES, "C_in=8, C_out=8, H=3"],
            "multiplicities": [2, 1], "layer_macs": [100.0, 50.0], "passed_through": [[0, 0]],
            "max_depth": 5, "min_macs": 10, "min_fit": 0.5,
        }
    ]  # fmt: skip


def _specify(fields: Any) -> None:
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        raise UserError("Python itself refuses these keywords")
    if {"self"} & set(fields) or not {"input", "output", "primary"} <= set(fields):
        raise UserError("Python itself refuses these keywords")
    made = Specification(**fields)
    repr(made), made.key, made.limits
    assert Specification.from_json(made.to_json()) == made


def _json(value: Any) -> str:
    try:
        return json.dumps(value, skipkeys=True, default=str)
    except (ValueError, RecursionError) as error:
        raise UserError("Python itself writes no such JSON") from error


def _bindings() -> list[Any]:
    return [SIZES, {"C_in": 64, "C_out": 1, "H": 2}, "C_in=4, C_out=8, H=6", "H=3,C_in=1,C_out=2"]


def _bind(value: Any) -> None:
    checked_binding(value)
    specification().complete(value)
    operators()[-1].complete(value)


def _either(value: Any, rng: random.Random) -> Any:
    if isinstance(value, str) and rng.random() < 0.9:
        return mutated_text(value, rng)
    return mutated_data(value, rng)


def _listing() -> list[Any]:
    return [
        {
            "depth": 3, "max_nodes": 200, "max_memory": 0, "max_seconds": 0.0, "threads": 1,
            "rules_off": ["R1a", "approximate"], "rules": [], "bound": "full",
        }
    ]  # fmt: skip


def _list_space(given: Any) -> None:
    known = set(_listing()[0])
    if not isinstance(given, dict) or not set(given) <= known:
        raise UserError("Python itself refuses these keywords")
    # What is asked for is done: not more than a moment of it.
    given = {"max_nodes": 200} | given
    nodes = given["max_nodes"]
    if isinstance(nodes, int) and not isinstance(nodes, bool) and nodes > 1000:
        given["max_nodes"] = min(nodes, 2**63) if nodes >= 2**63 else 1000
    if isinstance(given.get("threads"), int) and given["threads"] == 0:
        given["threads"] = 1
    space = Space.enumerate(specification(), **given)
    space.sample(2, 1)


def _draws() -> list[Any]:
    return [{"count": 3, "seed": 1, "stratify": "macs", "threads": 1}]


@functools.cache
def _space() -> Space:
    return Space.enumerate(specification(), depth=3, max_nodes=200, threads=1)


def _draw(given: Any) -> None:
    if not isinstance(given, dict) or not set(given) <= set(_draws()[0]):
        raise UserError("Python itself refuses these keywords")
    _space().sample(**{"count": 3} | given)


# Files. An input is the content of the file, or of all files of a folder.


def _in_file(name: str, read: Callable[[Path], Any]) -> Callable[[Any], None]:
    def call(content: str | bytes) -> None:
        path = folder() / name
        if isinstance(content, str):
            content = content.encode("utf-8", "surrogatepass")
        path.write_bytes(content)
        read(path)

    return call


def _space_file() -> list[bytes]:
    path = folder() / "whole.space"
    _space().save(path)
    return [path.read_bytes()]


def _load_space(path: Path) -> None:
    space = Space.load(path, specification())
    len(space), space.counts(), space.signature()
    if len(space):
        space[0].text, space.sample(2, 1)


RULES = '''
import syno

@syno.rule("U1", "no-shift", kind="restriction", steps=["shift"], version="2")
def no_shift(graph, step):
    """no Shift of what an Unfold made"""
    return graph.maker(step.inputs[0]) == "unfold"
'''


def _load_rules(path: Path) -> None:
    from syno.space.rules import load_rules, reported, rule_set

    rules = [reported(rule) for rule in load_rules(path)]
    rule_set([], rules)
    Space.enumerate(specification(), depth=2, max_nodes=50, threads=1, rules=rules)


def _toml(place: str) -> Callable[[], list[str]]:
    def seeds() -> list[str]:
        root = Path(syno.__file__).parent / place
        return [path.read_text() for path in sorted(root.glob("*/*.toml"))]

    return seeds


def _read_recipe(path: Path) -> None:
    from syno.train import fidelity
    from syno.train.recipe import Recipe, recipe

    found = recipe(str(path))
    assert Recipe.from_json(json.loads(json.dumps(found.to_json()))) == found
    fidelity(str(path))


def _read_ladder(path: Path) -> None:
    from syno.study.fidelity.ladder import Ladder, ladder, ladder_summary

    found = ladder(str(path))
    ladder_summary(str(path))
    assert Ladder.from_json(json.loads(json.dumps(found.to_json()))) == found


def _fidelities() -> list[Any]:
    from syno.train import fidelity
    from syno.train.recipe import recipe_names

    made = []
    for name in recipe_names():
        with contextlib.suppress(UserError):
            made.append(json.loads(json.dumps(fidelity(name).to_json())))
    return made


def _recipe_named(name: str) -> None:
    from syno.study.fidelity.ladder import ladder
    from syno.train import fidelity, recipe

    for read in (recipe, fidelity, ladder):
        with contextlib.suppress(UserError):
            read(name)


def _from_fidelity(value: Any) -> None:
    from syno.train import Fidelity

    Fidelity.from_json(value)


def _from_recipe(value: Any) -> None:
    from syno.train.recipe import Recipe

    Recipe.from_json(value)


def _from_ladder(value: Any) -> None:
    from syno.study.fidelity.ladder import Ladder

    Ladder.from_json(value)


def _ladders() -> list[Any]:
    from syno.study.fidelity.ladder import ladder, ladder_names

    return [json.loads(json.dumps(ladder(name).to_json())) for name in ladder_names()]


def _predictors() -> list[Any]:
    from syno.measure.roofline import Level, Roofline
    from syno.prediction import Device, LatencyPredictor, LatencySample, Workload

    device = Device("a processor", 8, Roofline(1, 1e11, (Level(1 << 20, 1e10),)))
    conv2d = Workload(zoo.load("conv2d"), zoo.binding("conv2d"))
    linear = Workload(zoo.load("linear"), zoo.binding("linear"), 2)
    samples = [
        LatencySample((conv2d,), 1e-3, device, family="a"),
        LatencySample((conv2d, linear), 3e-3, device, "net", "b"),
    ]
    return [json.loads(json.dumps(LatencyPredictor(device).fit(samples).to_json()))]


def _read_predictor(value: Any) -> None:
    from syno.prediction import LatencyPredictor

    LatencyPredictor.from_json(value)


def _tokenizers() -> list[Any]:
    from syno.data.tokens import BytePairTokenizer, ByteTokenizer

    trained = BytePairTokenizer.trained([b"some words, some more words"] * 20, 300)
    return [trained.to_json(), ByteTokenizer().to_json()]


def _read_tokenizer(value: Any) -> None:
    from syno.data.tokens import from_json

    found = from_json(value)
    found.decode(found.encode([b"some words", "é".encode()]))


def _weights() -> list[bytes]:
    import torch

    from syno.network import models

    net = models.build("resnet-small", width=4, classes=2, size=8)
    path = folder() / "weights.pt"
    torch.save(net.state_dict(), path)
    small = [path.read_bytes()]
    from safetensors.torch import save

    return [*small, save({k: v.contiguous() for k, v in net.state_dict().items()})]


def _load_weights(content: bytes) -> None:
    from syno.network import models

    safe = not content.startswith(b"PK") and b"{" in content[:64]
    path = folder() / ("w.safetensors" if safe else "w.pt")
    path.write_bytes(content)
    models.build("resnet-small", width=4, classes=2, size=8, weights=str(path))


def _data_seeds(make: Callable[[Path], None]) -> Callable[[], list[Any]]:
    """A folder as {path: content}."""

    def seeds() -> list[Any]:
        made = folder() / "made" / make.__name__
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        make(made)
        files = sorted(p for p in made.rglob("*") if p.is_file() and p.name != ".lock")
        return [{str(p.relative_to(made)): p.read_bytes() for p in files}]

    return seeds


def _mutated_files(files: dict[str, bytes], rng: random.Random) -> dict[str, bytes]:
    changed = dict(files)
    for name in rng.choices(sorted(files), k=rng.choice((1, 1, 2))):
        changed[name] = mutated_bytes(changed[name], rng)
    return changed


def _in_data_folder(use: Callable[[Path], Any]) -> Callable[[Any], None]:
    def call(files: dict[str, bytes]) -> None:
        made = folder() / "data"
        shutil.rmtree(made, ignore_errors=True)
        for name, content in files.items():
            path = made / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        use(made)

    return call


# Names and addresses.


def _names(*calls: Callable[[str], Any]) -> Callable[[Any], None]:
    def call(name: Any) -> None:
        for use in calls:
            with contextlib.suppress(UserError):
                use(name)

    return call


def _open_store(name: Any) -> None:
    """Opened in the worker's own folder, so that names make no files elsewhere."""
    from syno.store import Store
    from syno.store.database import parse_address

    address = parse_address(name)
    if address.dialect == "postgresql":
        return  # a server that is not there is waited for
    if address.path is not None and (address.path.is_absolute() or ".." in address.path.parts):
        Store.open(name, read_only=True).close()
        return
    with contextlib.chdir(folder()):
        with contextlib.suppress(UserError):
            Store.open(name, read_only=True).close()
        with Store.open(name) as store:
            store.studies()


class _Memory:
    """A store in memory, another after some studies: a study is found among all."""

    store: Any = None
    uses = 0

    @classmethod
    def take(cls) -> Any:
        from syno.store import Store

        if cls.uses % 100 == 0:
            cls.store = Store.open("sqlite:///:memory:")
        cls.uses += 1
        return cls.store


def _name_study(name: Any) -> None:
    store = _Memory.take()
    study = store.create_study(
        f"{name}-" if isinstance(name, str) else name,  # a number follows: no name is taken
        specification=("key", {}),
        settings={"model": "resnet-small"},
        seed=0,
    )
    store.summary(study)


def _settings() -> list[Any]:
    from syno.train import fidelity

    return [{"fidelity": fidelity("fast/digits").to_json()}]


def _read_settings(value: Any) -> None:
    from syno.store.objective import objective_of

    objective_of(value)


def _models() -> list[Any]:
    return [{"name": "resnet-small", "classes": 3, "size": 8, "channels": 3, "width": 4}]


def _build(given: Any) -> None:
    from syno.network import models

    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given):
        raise UserError("Python itself refuses these keywords")
    if "name" not in given:
        raise UserError("Python itself refuses these keywords")
    models.describe(given["name"])
    if "weights" in given:
        raise UserError("tried by another entry")
    large = [v for k, v in given.items() if isinstance(v, int) and 4000 < v < 2**31]
    if not large:  # a network of the size that was asked for is made
        models.build(**given)


def _parse_arguments() -> list[Any]:
    return [
        {"text": "y[o] = sum(i:C_in) x[i] * w0[o,i]", "input": "[C_in]", "output": "[C_out]"},
        {"text": "y[n,o] = sum(i:C_in) x[n,i] * w[o,i]", "output": "[N, C_out]", "sizes": "k=3"},
        {"text": "y[h:H] = sum(a:3) x[h+a-1] * w[a]", "input": "[H]", "sizes": {"k": 3}},
    ]


def _parse(given: Any) -> None:
    if not isinstance(given, dict) or not set(given) <= {"text", "input", "output", "sizes"}:
        raise UserError("Python itself refuses these keywords")
    found = Operator.parse(**{"text": ""} | given)
    found.text


def _words(*texts: str) -> Callable[[], list[Any]]:
    return lambda: list(texts)


def _damage() -> Iterator[tuple[str, Entry]]:
    from tests.data import test_damage as damage

    for make, use in (
        (damage.idx_files, damage.as_images),
        (damage.shards, damage.as_images),
        (damage.pickles, damage.as_images),
        (damage.images, damage.as_images),
        (damage.records, damage.as_images),
        (damage.texts, damage.as_text),
    ):
        name = f"data {make.__name__}".replace("_", " ")
        yield name, Entry(_data_seeds(make), _mutated_files, _in_data_folder(use))


def _goal(text: str) -> None:
    from syno.adaptation.pipeline import goals

    for resource in ("latency", "macs"):
        with contextlib.suppress(UserError):
            goals.goal(resource, text).limit(1.0)


def _arguments_of(callees: dict[str, arguments.Callee], share: int = 1) -> Entry:
    return Entry(
        arguments.seeds(callees), arguments.mutated, arguments.caller(callees), share=share
    )


ENTRIES: dict[str, Entry] = {
    "operator text": Entry(_texts, mutated_text, Operator.from_text),
    "operator methods": Entry(
        _texts, other_operator, lambda text: use_operator(Operator.from_text(text))
    ),
    "operator json text": Entry(
        lambda: [json.dumps(op.to_json()) for op in operators()], mutated_text, _from_json
    ),
    "operator json": Entry(
        lambda: [op.to_json() for op in operators()], mutated_data, _from_json
    ),
    "formula": Entry(_formulas, _mutated_formula, lambda given: Operator.parse(**given)),
    "formula arguments": Entry(_parse_arguments, mutated_data, _parse),
    "specification": Entry(_arguments, mutated_data, _specify),
    "specification json text": Entry(
        lambda: [specification().to_json(), Specification.preset("paper/resnet18").to_json()],
        mutated_text,
        Specification.from_json,
    ),
    "specification json": Entry(
        lambda: [json.loads(specification().to_json())],
        mutated_data,
        lambda value: Specification.from_json(_json(value)),
    ),
    "preset": Entry(
        _words("paper/resnet18"), mutated_text, lambda name: Specification.preset(name)
    ),
    "binding": Entry(_bindings, _either, _bind),
    "space": Entry(_listing, mutated_data, _list_space),
    "draw": Entry(_draws, mutated_data, _draw),
    "space file": Entry(_space_file, mutated_bytes, _in_file("a.space", _load_space)),
    "rule file": Entry(_words(RULES), mutated_text, _in_file("rules.py", _load_rules)),
    "rule name": Entry(
        _words("R1a", "merge-undoes-split", "R6a"),
        mutated_text,
        lambda name: (syno.space.rules.describe_rule(name), syno.space.rules.rule_set([name])),
    ),
    "recipe file": Entry(
        _toml("train/recipes"), mutated_text, _in_file("a.toml", _read_recipe)
    ),
    "ladder file": Entry(
        _toml("study/fidelity/ladders"), mutated_text, _in_file("l.toml", _read_ladder)
    ),
    "fidelity json": Entry(_fidelities, mutated_data, _from_fidelity),
    "recipe json": Entry(
        lambda: [f["recipe"] for f in _fidelities()], mutated_data, _from_recipe
    ),
    "ladder json": Entry(_ladders, mutated_data, _from_ladder),
    "settings json": Entry(_settings, mutated_data, _read_settings),
    "predictor json": Entry(_predictors, mutated_data, _read_predictor),
    "tokenizer json": Entry(_tokenizers, mutated_data, _read_tokenizer),
    "weights file": Entry(_weights, mutated_bytes, _load_weights),
    "model": Entry(_models, mutated_data, _build),
    "zoo name": Entry(
        _words("operator-1", "conv2d"), mutated_text,
        _names(zoo.load, zoo.binding, zoo.doc, zoo.module_doc),
    ),
    "recipe name": Entry(
        _words("fast/digits", "fast/short.toml"), mutated_text,
        _names(_recipe_named),
    ),
    "data name": Entry(
        _words("digits", "images", "folder/data.npz"), mutated_text,
        lambda name: _load_named(name),
    ),
    "store address": Entry(
        _words("runs.db", "sqlite:///a.db", "sqlite://", "postgresql://u@h/d"),
        mutated_text, _open_store,
    ),
    "study name": Entry(_words("digits-1", "résumé 2"), mutated_text, _name_study),
    "grid": Entry(lambda: [study_arguments.GRID], mutated_data, study_arguments.grid),
    "goal": Entry(_words("0.5x", "50%", "1.2ms", "40M"), mutated_text, _goal),
    "arguments": _arguments_of(arguments.CALLEES),
    "arguments of studies": _arguments_of(study_arguments.READING),
    "arguments of traces": _arguments_of(study_arguments.TRACING, share=20),
    "command line": Entry(lines, mutated_line, try_line),
    **dict(_damage()),
}  # fmt: skip


def _load_named(name: str) -> None:
    from syno.data import load, load_text

    if name.startswith(("/", "~")) or ".." in name:
        raise UserError("no folders elsewhere")
    empty = folder() / "empty"
    empty.mkdir(exist_ok=True)
    with contextlib.chdir(empty):
        for read in (load, load_text):
            with contextlib.suppress(UserError):
                read(name, str(empty), cache=False, progress=False)
