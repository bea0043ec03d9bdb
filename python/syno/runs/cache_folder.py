"""Where Syno keeps what it can make again. Nobody else may write there (private_files.py)."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs.unix import Unix

from syno._util.errors import UserError
from syno.runs.files import PRIVATE, replacing
from syno.runs.helper_process import search_path
from syno.runs.private_files import check_folder, make_private_folder


def cache_folder() -> Path:
    """SYNO_CACHE, else XDG_CACHE_HOME/syno, else ~/.cache/syno."""
    if own := os.environ.get("SYNO_CACHE"):
        return Path(own).expanduser()
    # On macOS, too, where platformdirs would choose another folder than the one that is documented.
    return Unix("syno", appauthor=False).user_cache_path


def private_cache(name: str, what: str) -> Path:
    """A folder of the cache, made where it is not there. what: is kept there, for messages.

    UserError where somebody else could have put files into it, or where it cannot be made.
    """
    folder = cache_folder() / name
    try:
        return make_private_folder(folder)
    except OSError as error:
        raise not_written(what, folder, error) from error


def write_cached(path: Path, text: str, what: str) -> None:
    """Write a file of the cache in one step: readers see a whole file, the last one written.

    Args:
        path: the file; its folder is made where it is not there.
        text: the content.
        what: is written, for messages.

    Raises:
        UserError: the file cannot be written, or somebody else could have put files into its
            folder.
    """
    try:
        make_private_folder(path.parent)
        with replacing(path, mode=PRIVATE) as to:
            to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise not_written(what, path.parent, error) from error


def not_written(what: str, folder: Path, error: OSError) -> UserError:
    """The error for what cannot be written to a folder of the cache."""
    return UserError(
        f"cannot write {what} to '{folder}': {error.strerror or error}\n"
        "  what to do: set SYNO_CACHE to a writable folder with enough space"
    )


def use_private_compiler_caches() -> None:
    """Gives torch's compiler, and Triton under it, a cache folder that nobody else may write.

    Torch keeps code that it runs in a folder of the system's temporary one, under a name that
    anybody can guess and make first. Call it before torch compiles anything. Folders that the user
    named, in TORCHINDUCTOR_CACHE_DIR or TRITON_CACHE_DIR, stay, and are checked.
    """
    for variable in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        named = os.environ.get(variable)
        if named and os.path.lexists(named):
            check_folder(Path(os.path.abspath(named)))
    if not os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(
            private_cache("inductor", "what torch compiles")
        )
    # Its processes take their modules from here, not from wherever the current folder is by then.
    os.environ.setdefault("TORCH_CUSTOM_PYTHONPATH", os.pathsep.join(search_path()))
