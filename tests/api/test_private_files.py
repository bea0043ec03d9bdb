"""Caches: nothing is loaded from where somebody else could have put it."""

from __future__ import annotations

import codecs
import hashlib
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from PIL import Image

from syno import UserError
from syno.codegen import native
from syno.data import load
from syno.measure import choose_plan
from syno.network.models import build
from syno.operators import zoo
from syno.runs.cache_folder import private_cache, use_private_compiler_caches
from syno.runs.private_files import check_folder, make_private_folder, read_private
from syno.train.checkpoint import read_checkpoint, write_checkpoint

OTHER = 12345  # a user without a name
SIZES = {"N": 1, "C_in": 8, "C_out": 8, "H": 6, "g": 2, "s": 2, "k": 3}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("SYNO_CACHE", str(folder))
    return folder


def compiled() -> native.Function:
    return native.compile_operator(zoo.load("operator-1"), SIZES, flags=native.QUICK_FLAGS)


def photos() -> Path:
    """Four images in two classes, beside the cache."""
    folder = Path(os.environ["SYNO_CACHE"]).with_name("photos")
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(2):
            file = folder / name / f"{number}.png"
            if not file.exists():  # a later one would have another cache
                Image.new("RGB", (8, 8), (number, 0, 0)).save(file)
    return folder


def loaded() -> object:
    return load("photos", photos(), size=8, progress=False)


def give(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


def open_to_all(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o022)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- what is made ---------------------------------------------------------------------------------


def test_cache_folders_and_what_lies_in_them_are_for_the_user_alone(cache: Path) -> None:
    before = os.umask(0)  # the most careless one
    try:
        compiled()
        choose_plan(zoo.load("operator-1"), SIZES, limit=1, rounds=20)
        loaded()
        private_cache("checkpoints", "checkpoints")
    finally:
        os.umask(before)
    made = [cache, *cache.rglob("*")]
    assert {path.name for path in made} >= {"native", "plans", "data", "checkpoints"}
    assert all(mode(path) & 0o077 == 0 for path in made), [oct(mode(path)) for path in made]
    assert all(mode(path) == 0o700 for path in made if path.is_dir())
    assert compiled() is not None  # and can be used by whoever made it


def test_torch_compiles_into_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCH_CUSTOM_PYTHONPATH"):
        monkeypatch.setenv(name, "")  # so that it is as before at the end
        monkeypatch.delenv(name)
    use_private_compiler_caches()
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(cache / "inductor")
    assert mode(cache / "inductor") == 0o700
    theirs = cache / "theirs"
    theirs.mkdir(mode=0o700)
    open_to_all(theirs)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(theirs))
    with pytest.raises(UserError, match=r"'.*theirs' may be written by every user"):
        use_private_compiler_caches()


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".so", ".sum"])
@pytest.mark.parametrize("spoil", [pytest.param(give, marks=needs_root), open_to_all])
def test_a_library_that_another_may_have_written_is_not_loaded(
    cache: Path, suffix: str, spoil: Callable[[Path], None]
) -> None:
    compiled()
    (library,) = (cache / "native").glob(f"*{suffix}")
    spoil(library)
    owner = f"user {OTHER}" if spoil is give else "user '.*' "
    with pytest.raises(
        UserError,
        match=rf"the file '{library}' .*belongs to {owner}"
        r"(?s:.*)expected: a file of user '.*' \(\d+\)(?s:.*)set SYNO_CACHE(?s:.*)ch(own|mod) ",
    ):
        compiled()


@needs_root
def test_a_planted_library_is_not_run(tmp_path: Path, cache: Path) -> None:
    """As another user would do it: the key is public, the digest beside it fits."""
    compiled()
    (library,) = (cache / "native").glob("*.so")
    (digest,) = (cache / "native").glob("*.sum")
    witness = tmp_path / "witness"
    source = tmp_path / "planted.cpp"
    source.write_text(
        "#include <cstdio>\n__attribute__((constructor)) static void run() "
        f'{{ std::fopen("{witness}", "w"); }}\n'
    )
    planted = native.find_compiler().path
    subprocess.run([planted, "-shared", "-fPIC", source, "-o", library], check=True)
    digest.write_text(hashlib.sha256(library.read_bytes()).hexdigest())
    for path in (library, digest):
        give(path)
    code = (
        "from syno import zoo\n"
        "from syno.codegen import native\n"
        f"native.compile_operator(zoo.load('operator-1'), {SIZES}, flags=native.QUICK_FLAGS)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"belongs to user {OTHER}" in done.stderr and not witness.exists()
    for path in (library, digest):
        os.chown(path, 0, 0)  # the test is about that file: else it runs
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0 and witness.exists()


USES = {
    "native": compiled,
    "plans": lambda: choose_plan(zoo.load("operator-1"), SIZES, limit=1, rounds=20),
    "data": loaded,
    "checkpoints": lambda: private_cache("checkpoints", "checkpoints"),
    "inductor": use_private_compiler_caches,
}


@pytest.mark.parametrize("name", USES)
@pytest.mark.parametrize("spoil", [pytest.param(give, marks=needs_root), open_to_all])
def test_a_folder_that_another_may_have_filled_is_not_used(
    cache: Path, name: str, spoil: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "")
    monkeypatch.setenv("TORCH_CUSTOM_PYTHONPATH", "")
    folder = cache / name
    folder.mkdir(parents=True)
    cache.chmod(0o700)
    spoil(folder)
    with pytest.raises(UserError, match=f"the folder '{folder}' .*(?s:.*)what to do: set SYNO_C"):
        USES[name]()


def test_a_choice_and_arrays_that_another_may_have_written_are_not_used(cache: Path) -> None:
    USES["plans"]()
    (choice,) = (cache / "plans").glob("*.json")
    open_to_all(choice)
    with pytest.raises(UserError, match=f"the file '{choice}' may be written by every user"):
        USES["plans"]()
    for name in ("train_images.npy", "meta.json"):
        loaded()
        (file,) = (cache / "data").glob(f"*/{name}")
        before = mode(file)
        open_to_all(file)
        with pytest.raises(UserError, match=f"the file '{file}' may be written by every user"):
            loaded()
        file.chmod(before)


# --- the folders above ----------------------------------------------------------------------------


def test_folders_above_count_up_to_a_sticky_one(tmp_path: Path) -> None:
    above = tmp_path / "above"
    folder = make_private_folder(above / "cache")
    assert mode(above) == mode(folder) == 0o700
    above.chmod(0o777)
    with pytest.raises(UserError, match=f"'{above}' may be written by every.*\n  on the way to"):
        check_folder(folder)
    above.chmod(0o1777)  # as the system's folder for temporary files
    check_folder(folder)


@needs_root
def test_folders_above_belong_to_the_user_or_to_root(tmp_path: Path) -> None:
    above = tmp_path / "above"
    folder = make_private_folder(above / "cache")
    give(above)
    with pytest.raises(UserError, match=f"'{above}' belongs to user {OTHER}\n  on the way to"):
        check_folder(folder)
    above.chmod(0o1777)  # whoever owns a sticky folder may rename what lies in it
    with pytest.raises(UserError, match=f"'{above}' belongs to user {OTHER}"):
        check_folder(folder)


@needs_root
def test_a_link_of_another_user_is_not_followed(tmp_path: Path) -> None:
    link, place = tmp_path / "link", tmp_path / "place"
    place.mkdir(mode=0o700)
    link.symlink_to(place)
    check_folder(link)  # one's own may lead anywhere
    os.lchown(link, OTHER, OTHER)
    with pytest.raises(UserError, match=f"the link '{link}' is a link that belongs to user"):
        check_folder(link / "cache")


def test_a_library_is_no_link(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"content")
    file.chmod(0o600)
    link.symlink_to(file)
    assert read_private(file) == b"content"
    with pytest.raises(OSError, match="symbolic links"):
        read_private(link)


@needs_root
def test_an_ordinary_user_has_a_folder_of_their_own_in_a_shared_one() -> None:
    shared = Path(tempfile.mkdtemp())  # where every user may enter
    shared.chmod(0o1777)
    theirs = shared / "theirs"
    theirs.mkdir(mode=0o755)
    os.setegid(OTHER)
    os.seteuid(OTHER)
    try:
        assert make_private_folder(theirs) == theirs  # root may write everywhere anyway
        mine = make_private_folder(shared / "mine" / "native")
        assert (mine.stat().st_uid, mode(mine)) == (OTHER, 0o700)
    finally:
        os.seteuid(0)
        os.setegid(0)
    os.chown(theirs, OTHER + 1, 0)
    os.setegid(OTHER)
    os.seteuid(OTHER)
    try:
        with pytest.raises(UserError, match=rf"belongs to user {OTHER + 1}(?s:.*)chown -R {OTHER}"):
            make_private_folder(theirs)
    finally:
        os.seteuid(0)
        os.setegid(0)
        shutil.rmtree(shared)


# --- files that hold pickles ----------------------------------------------------------------------


class Malice:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, (str(self.witness),)


class Encoded:
    def __init__(self, encoding: str) -> None:
        self.encoding = encoding

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return codecs.encode, ("text", self.encoding)


def test_a_checkpoint_runs_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    write_checkpoint(tmp_path / "state.ckpt", {"x": Malice(witness)})
    with pytest.raises(UserError, match="cannot read the checkpoint"):
        read_checkpoint(tmp_path / "state.ckpt")
    assert not witness.exists()


def test_a_file_of_weights_runs_nothing(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    torch.save({"x": Malice(witness)}, tmp_path / "weights.pt")
    with pytest.raises(UserError, match="holds no state dict"):
        build("resnet-small", weights=tmp_path / "weights.pt")
    assert not witness.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (Malice(Path("witness")), "it calls for (posix|nt).mkdir"),
        (Encoded("hex"), "it calls for the encoding 'hex'"),
    ],
)
def test_a_pickle_of_a_data_set_runs_nothing(
    content: object, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    batch = tmp_path / "cifar10" / "data_batch_1"
    batch.parent.mkdir()
    batch.write_bytes(pickle.dumps({b"data": content, b"labels": [0]}))
    with pytest.raises(UserError, match=said):
        load("cifar10", tmp_path, cache=False)
    assert not Path("witness").exists()
