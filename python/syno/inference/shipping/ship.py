"""A network as a folder to hand over, which runs without Syno and without PyTorch."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import torch
from torch import nn

from syno._util.arguments import checked, optional, path, text, texts
from syno._util.cpu_info import cpu_info
from syno._util.errors import UserError
from syno._util.tables import Table
from syno._util.trial_calls import difference
from syno.codegen.export import formats
from syno.codegen.export.cpp_files import function_name
from syno.codegen.export.formats import Exported, ExportSubject
from syno.codegen.export.programs import array, examples_of_all
from syno.codegen.export.write import network_subject
from syno.codegen.native.compiler import Compiler, find_compiler
from syno.data import progress
from syno.inference.library.load import NetworkLibrary, parts_of
from syno.inference.precision import FLOAT32, TOLERANCES
from syno.runs.files import write_text

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
_PROTOTYPE = re.compile(r"^([\w* ]+?[ *])(\w+)\(([^()]*)\);$", re.MULTILINE)
_WORD = re.compile(r"@([A-Z]+)@")
NATIVE = "native"
_COMMON = ("-std=c++17", "-O3", "-fPIC", "-shared", "-static-libstdc++", "-static-libgcc")
_AVX2 = ("-mavx2", "-mfma")
_AVX512 = (*_AVX2, "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq")
_HAS_AVX512 = " && ".join(
    f'HAS("{each}")' for each in ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx2", "fma")
)


@dataclass(frozen=True)
class Function:
    """A function of a header in C, as it stands there; name: without the beginning of all."""

    result: str
    name: str
    arguments: str

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The type and the name of each."""
        found = []
        for each in self.arguments.split(", ") if self.arguments != "void" else ():
            type_, name = re.fullmatch(r"(.*?[ *])(\w+)", each).groups()  # type: ignore[union-attr]
            found.append((type_.strip(), name))
        return found

    @property
    def names(self) -> list[str]:
        """Of the parameters."""
        return [name for _, name in self.parameters]


@dataclass(frozen=True)
class Processor:
    """A kind of processors. flags: of the compiler; has: a condition in C; about: in words."""

    flags: Sequence[str]
    has: str
    about: str


# By the architecture and by name, the best ones last.
_PROCESSORS: Mapping[str, Mapping[str, Processor]] = {
    "x86_64": {
        "baseline": Processor((), "1", "any x86-64"),
        "avx2": Processor(_AVX2, 'HAS("avx2") && HAS("fma")', "AVX2 and FMA"),
        "avx2-vnni": Processor(
            (*_AVX2, "-mavxvnni"),
            'HAS("avx2") && HAS("fma") && has_avx_vnni()',
            "AVX2 and dot products of 8-bit integers (AVX-VNNI)",
        ),
        "avx512": Processor(_AVX512, _HAS_AVX512, "AVX-512 (F, BW, VL, DQ)"),
        "avx512-vnni": Processor(
            (*_AVX512, "-mavx512vnni"),
            f'{_HAS_AVX512} && HAS("avx512vnni")',
            "AVX-512 and dot products of 8-bit integers (VNNI)",
        ),
        "avx512-bf16": Processor(
            (*_AVX512, "-mavx512vnni", "-mavx512bf16"),
            f'{_HAS_AVX512} && HAS("avx512vnni") && HAS("avx512bf16")',
            "AVX-512 with VNNI and bfloat16",
        ),
    },
    "aarch64": {
        "baseline": Processor((), "1", "any ARMv8-A"),
        "dotprod": Processor(
            ("-march=armv8.2-a+dotprod",), "has_dot_products()", "dot products of 8-bit integers"
        ),
        "i8mm": Processor(
            ("-march=armv8.2-a+dotprod+i8mm",),
            "has_dot_products() && has_matrices()",
            "products of matrices of 8-bit integers",
        ),
    },
}
# Beside the best one for this machine.
_USUAL = ("baseline", "avx2", "avx512")
# This machine's features, as Linux names them, that a processor needs.
_FEATURES: Mapping[str, Sequence[str]] = {
    "avx2": ("avx2", "fma"),
    "avx2-vnni": ("avx2", "fma", "avx_vnni"),
    "avx512": ("avx512f", "avx512bw", "avx512vl", "avx512dq"),
    "avx512-vnni": ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"),
    "avx512-bf16": ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16"),
    "dotprod": ("asimddp",),
    "i8mm": ("asimddp", "i8mm"),
}


@dataclass(frozen=True)
class Shipped:
    """What was written.

    folder: with all of it. library: chooses among those for processors, by name in `processors`,
    when it is first called. loader: for Python; example: for C; card: the model card.
    """

    folder: Path
    library: Path
    processors: tuple[str, ...]
    loader: Path
    example: Path
    card: Path


@checked(folder=path, name=text, processors=optional(texts), precision=text, about=text)
def ship_network(
    net: nn.Module,
    folder: str | os.PathLike[str],
    example_input: torch.Tensor | tuple[torch.Tensor, ...],
    *,
    name: str = "network",
    processors: Sequence[str] | None = None,
    precision: str = FLOAT32,
    about: str = "",
) -> Shipped:
    """Write a network with its weights as a folder that runs without Syno and PyTorch.

    It holds libraries for several kinds of processors, of which the best one is chosen when the
    program starts, the code that they were compiled from, the weights, an example in C, a loader in
    Python that needs NumPy alone, and a model card.

    Args:
        net: in evaluation mode, or what `syno.quantize` returned.
        folder: is made; files of the same names in it are replaced.
        example_input: a tensor, or a tuple of the arguments of the network.
        name: of the library and its functions: letters, digits and underscores.
        processors: `baseline`, `avx2`, `avx2-vnni`, `avx512`, `avx512-vnni`, `avx512-bf16`, or
            `native`: the best of these for this machine; on ARM `baseline`, `dotprod`, `i8mm`.
            Default: baseline, avx2, avx512 and native.
        precision: of layers, as in `export_network`.
        about: further sections of the model card, in Markdown.

    Raises:
        UserError: there is no compiler, it does not compile for a processor, the name or a
            processor is unknown, the folder cannot be written, or as `export_network`.
    """
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is no name of a library\n  expected: a letter, and letters, digits and "
            "underscores"
        )
    chosen = _chosen(processors)
    precision = getattr(net, "syno_precision", precision)
    writer = formats.get("cpp-network", networks=True, precision=precision)
    compiler = find_compiler()
    place = Path(folder)
    try:
        (place / "processors").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder '{place}': {error.strerror}") from error
    subject = replace(network_subject(net, example_input), precision=precision, tuned=True)
    written = writer.write(subject, place / f"{name}.cpp")
    assert written.header is not None
    header = written.header.read_text(encoding="utf-8")
    words = {"FILE": name, "NAME": f"syno_{name}"}
    functions = _functions(header, words["NAME"])
    write_text(written.header, _with_processor(header, words["NAME"]))
    start = place / "start.c"
    write_text(start, _filled("start.c", words | _forwards(functions, chosen, words["NAME"])))
    shared = place / f"lib{name}.so"
    _build(compiler, written.code, start, shared, chosen)
    verified = _verified(subject, written, chosen)
    example, loader = place / "example.c", place / f"{name}.py"
    write_text(example, _filled("example.c", words | _memory(functions, words["NAME"])))
    write_text(loader, _filled("loader.py", words))
    card = place / "README.md"
    write_text(card, _card(name, chosen, compiler, about, verified))
    return Shipped(place, shared, tuple(chosen), loader, example, card)


def _chosen(names: Sequence[str] | None) -> dict[str, Processor]:
    """The processors by name, the best ones last. UserError for one that is unknown."""
    known = _PROCESSORS.get(platform.machine())
    if known is None:
        raise UserError(
            f"networks cannot be shipped for the processors of this machine ({platform.machine()})"
            f"\n  expected: {' or '.join(_PROCESSORS)}\n"
            "  what to do: export_network(..., format='cpp-network'), and compile the code there"
        )
    wanted = [*(each for each in _USUAL if each in known), NATIVE] if names is None else [*names]
    for each in wanted:
        if each not in known and each != NATIVE:
            raise UserError(
                f"there is no processor '{each}' to ship for\n"
                f"  expected: some of {', '.join([*known, NATIVE])}"
            )
    if not wanted:
        raise UserError("there are no processors to ship for\n  expected: at least one")
    native = [each for each in known if _runs_here(each)][-1]
    wanted = [native if each == NATIVE else each for each in wanted]
    return {each: known[each] for each in known if each in wanted}


def _runs_here(name: str) -> bool:
    """Whether this machine can run the library for a kind of processors."""
    return set(_features()).issuperset(_FEATURES.get(name, ()))


def _verified(
    subject: ExportSubject, written: Exported, chosen: Mapping[str, Processor]
) -> dict[str, float]:
    """The largest difference of each library that runs here from the network.

    UserError where it is too large.
    """
    assert written.weights is not None
    found = {}
    for name in filter(_runs_here, chosen):
        place = written.code.parent / "processors" / f"{written.code.stem}-{name}.so"
        library = NetworkLibrary(
            ctypes.CDLL(str(place.resolve())), function_name(written.code), written.weights
        )
        worst = 0.0
        for inputs, expected in examples_of_all(subject):
            made = library(*map(array, inputs))
            results = made if isinstance(made, list) else [made]
            for y, other in zip(results, expected, strict=True):
                worst = max(worst, difference(torch.from_numpy(y), other))
        if not worst <= TOLERANCES[subject.precision]:
            raise UserError(
                f"the library for {name} differs from the network: by {worst:.1e} of the largest "
                f"result\n  expected: at most {TOLERANCES[subject.precision]:.0e}\n"
                "  what to do: report this, with the network"
            )
        found[name] = worst
    return found


def _features() -> list[str]:
    """What this machine's processor has, in the words of Linux."""
    return next(iter(cpu_info("flags", "Features")), "").split()


def _functions(header: str, prefix: str) -> list[Function]:
    """The functions of a header, without the beginning of their names."""
    return [
        Function(result.strip(), name.removeprefix(f"{prefix}_"), arguments)
        for result, name, arguments in _PROTOTYPE.findall(header)
    ]


def _with_processor(header: str, prefix: str) -> str:
    """A header with the function that says which library runs."""
    end = "#ifdef __cplusplus\n}"
    before, found, after = header.rpartition(end)
    assert found
    return (
        f"{before}/* Which library runs, of those in the folder `processors`; empty where none can "
        f"be. */\nconst char* {prefix}_processor(void);\n\n{found}{after}"
    )


def _forwards(
    functions: Sequence[Function], chosen: Mapping[str, Processor], prefix: str
) -> dict[str, str]:
    """What `start.c` lacks."""
    calls = []
    for each in functions:
        if each.name == "error":
            continue
        call = f"call_{each.name}({', '.join(each.names)})"
        if each.result == "void":
            body = f"if (started()) {call};"
        else:
            body = f"return started() ? {call} : {'0' if each.result.endswith('*') else '-1'};"
        calls.append(f"{each.result} {prefix}_{each.name}({each.arguments}) {{ {body} }}")
    return {
        "PROCESSORS": ", ".join(f'"{name}"' for name in chosen),
        "POINTERS": "\n".join(
            f"static {each.result} (*call_{each.name})({each.arguments});" for each in functions
        ),
        "CHOICE": "\n".join(
            f'  if ({each.has}) return "{name}";' for name, each in reversed([*chosen.items()])
        ),
        "LOADS": "\n".join(
            f'  *(void**)&call_{each.name} = found(library, "{prefix}_{each.name}");'
            for each in functions
        ),
        "FORWARDS": "\n".join(calls),
    }


def _memory(functions: Sequence[Function], prefix: str) -> dict[str, str]:
    """What `example.c` lacks: the inputs and outputs of a call."""
    (run,) = (each for each in functions if each.name == "run")
    given: list[str] = []
    taken: list[str] = []
    places: list[str] = []
    for type_, _ in run.parameters[1:-2]:
        is_input = type_.startswith("const")
        number = sum(place.startswith("x" if is_input else "y") for place in places)
        which, own = ("input", f"x{number}") if is_input else ("output", f"y{number}")
        element = type_.removeprefix("const").strip(" *")
        count = f"elements({prefix}_{which}_shape({number}), {prefix}_{which}_rank({number}))"
        given.append(f"  const long {own}_count = batch * {count};")
        given.append(f"  {element}* const {own} = calloc(sizeof({element}), (size_t){own}_count);")
        taken.append(f"  free({own});")
        places.append(own)
    return {"MEMORY": "\n".join(given), "PLACES": ", ".join(places), "FREE": "\n".join(taken)}


def _filled(template: str, words: Mapping[str, str]) -> str:
    """A file of this folder with words in place of @NAMES@."""
    found = (resources.files("syno.inference.shipping") / template).read_text(encoding="utf-8")
    return _WORD.sub(lambda match: words[match[1]], found)


def _build(
    compiler: Compiler, code: Path, start: Path, shared: Path, chosen: Mapping[str, Processor]
) -> None:
    """Compile the code for each processor, and what chooses among the libraries."""
    source = code.read_text(encoding="utf-8")
    parts = parts_of(source)
    with progress.bar("compiling for processors", len(chosen)) as advance:
        for name, processor in chosen.items():
            made = code.parent / "processors" / f"{code.stem}-{name}.so"
            compiler.build(source, (*_COMMON, *processor.flags), made, parts=parts)
            advance(1)
    text = start.read_text(encoding="utf-8")
    flags = ("-O2", "-fPIC", "-shared", f"-I{start.parent.resolve()}", "-x", "c")
    compiler.build(text, flags, shared)


def _card(
    name: str,
    chosen: Mapping[str, Processor],
    compiler: Compiler,
    about: str,
    verified: Mapping[str, float],
) -> str:
    """The model card."""
    table = Table.of(
        chosen.items(),
        ("library", lambda item: f"processors/{name}-{item[0]}.so"),
        ("needs", lambda item: item[1].about),
        ("flags", lambda item: " ".join(item[1].flags)),
    )
    flags = " ".join((*_COMMON, *compiler.thread_flags))
    parts = [
        f"# {name}",
        about.strip(),
        "## Use",
        "In Python, with NumPy alone:",
        f"```python\nfrom {name} import Network\n\nnetwork = Network()\n"
        "y = network(x, threads=1)   # x: [n, ...] for any n\n```",
        f"In C, with `{name}.h`, as `example.c` does:",
        f"```console\ncc -O2 example.c -o example -L. -l:lib{name}.so -Wl,-rpath,'$ORIGIN'\n"
        "./example\n```",
        f"`lib{name}.so` chooses a library for the processor when it is first called; "
        f"`SYNO_PROCESSOR=baseline` takes that of a name. `{name}.bin` has the weights.",
        "## Processors",
        table.markdown(),
        f"Compiled by {compiler.version} with `{flags}` from `{name}.cpp`, and `start.c` as "
        f"`lib{name}.so`. They need the C library of this machine or a later one"
        + (", and OpenMP (libgomp)." if compiler.threads else "."),
        "Compared with the network in PyTorch when they were written, by the largest difference of "
        "a result, as a share of the largest result: "
        + ", ".join(f"{each} {worst:.1e}" for each, worst in verified.items())
        + "."
        if verified
        else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
