"""Checks of the installation, with advice on how to fix problems."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from syno._util.threads import usable_cores
from syno.runs.helper_process import find_program

OK, WARN, FAIL = "ok", "warn", "fail"
_LIBRARIES = (
    "torch",
    "numpy",
    "sqlalchemy",
    "click",
    "rich",
    "matplotlib",
    "plotly",
    "scikit-learn",
    "pillow",
    "safetensors",
)
_LEAST_FREE = 2**30  # bytes in the cache folder; the arrays of CIFAR-10 need a fifth of this


@dataclass(frozen=True)
class Check:
    """A check with its result, and advice if the result is not `ok`."""

    name: str
    state: str
    found: str
    advice: str = ""


def check_installation(store: str, data_dir: str | None) -> list[Check]:
    """Check the library, its dependencies, the machine, and the folders and store of a search.

    Nothing is written.

    Args:
        store: the address of the store.
        data_dir: the folder of the data sets; None uses SYNO_DATA.
    """
    return [
        _syno(),
        _python(),
        _libraries(),
        _compiler(),
        _threads(),
        _data(data_dir),
        _cache(),
        _graphviz(),
        _store(store),
    ]


def _syno() -> Check:
    from syno import _core

    descriptors = len(_core.option_descriptors())
    return Check("syno", OK, f"{_core.__version__}, compiled core with {descriptors} options")


def _python() -> Check:
    return Check("python", OK, f"{platform.python_version()} on {platform.platform()}")


def _libraries() -> Check:
    found, missing = [], []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        advice = f"pip install {' '.join(missing)}"
        return Check("libraries", FAIL, f"missing: {', '.join(missing)}", advice)
    return Check("libraries", OK, ", ".join(found))


def _compiler() -> Check:
    program = next(filter(None, map(find_program, (os.environ.get("CXX") or "c++", "g++"))), None)
    advice = "`apt install g++` (Debian, Ubuntu); it is needed only to build Syno from source"
    if program is None:
        return Check("compiler", WARN, "no C++ compiler", advice)
    result = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return Check("compiler", WARN, f"{program} cannot be run", advice)
    return Check("compiler", OK, result.stdout.split("\n", 1)[0])


def _threads() -> Check:
    usable = usable_cores()
    limit = os.environ.get("OMP_NUM_THREADS")
    text = f"{usable} usable" + (f", OMP_NUM_THREADS={limit}" if limit else "")
    if limit and limit.isdecimal() and int(limit) > usable:
        return Check("threads", WARN, text, f"set OMP_NUM_THREADS to at most {usable}")
    return Check("threads", OK, text)


def _data(given: str | None) -> Check:
    from syno.data import KNOWN

    place = given or os.environ.get("SYNO_DATA")
    advice = "give a folder with --data-dir or SYNO_DATA; the data set `digits` needs none"
    if not place:
        return Check("data folder", WARN, "none given", advice)
    folder = Path(place).expanduser()
    if not folder.is_dir():
        return Check("data folder", WARN, f"there is no folder {folder}", advice)
    names = [n for n in KNOWN if any(entry.name.startswith(n) for entry in folder.iterdir())]
    return Check("data folder", OK, f"{folder}: {', '.join(names) or 'no known data set'}")


def _cache() -> Check:
    from syno._util.errors import UserError
    from syno.runs.cache_folder import cache_folder
    from syno.runs.private_files import check_folder

    folder = cache_folder()
    try:
        if folder.exists():
            check_folder(folder)
    except (UserError, OSError) as error:
        said, _, then = str(error).partition("\n")
        return Check("cache folder", FAIL, said, then.strip())
    made = _nearest_existing(folder)
    advice = "set SYNO_CACHE to a folder that can be written and has enough space"
    if not os.access(made, os.W_OK | os.X_OK):
        return Check("cache folder", FAIL, f"{folder} cannot be written", advice)
    free = shutil.disk_usage(made).free
    text = f"{folder}, {free / 2**30:.1f} GiB free"
    return (
        Check("cache folder", OK, text)
        if free >= _LEAST_FREE
        else Check("cache folder", WARN, text, advice)
    )


def _graphviz() -> Check:
    from syno.report.drawing import INSTALL_HINT, graphviz

    program = graphviz()
    if program is None:
        return Check("graphviz", WARN, "not installed", INSTALL_HINT)
    return Check("graphviz", OK, program)


def _store(url: str) -> Check:
    from syno._util.errors import UserError
    from syno.store import Store
    from syno.store.database import parse_address

    try:
        address = parse_address(url)
        path = address.path
        if path is not None and not path.exists():
            folder = path.absolute().parent
            if os.access(folder, os.W_OK | os.X_OK):
                return Check("store", OK, f"{address.name} does not exist yet and can be created")
            return Check(
                "store", FAIL, f"{address.name} cannot be created", f"{folder} is read-only"
            )
        with Store.open(url, read_only=True) as store:
            text = f"{store.name}, version {store.version()}, {len(store.studies())} studies"
    except UserError as error:
        found, _, advice = str(error).partition("\n")
        return Check("store", FAIL, found, advice.strip())
    if path is not None and not os.access(path, os.W_OK):
        return Check("store", WARN, f"{text}, read-only", f"`chmod u+w {path}` to search with it")
    return Check("store", OK, text)


def _nearest_existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
