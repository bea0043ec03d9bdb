"""Files that only their user can have written: the folders of caches, and what is loaded from them.

What a stranger can put into a cache is run or believed by whoever reads it. A file or a folder is
trusted when it belongs to the user of this process or to root, and nobody else may write it; a
folder also needs that of the folders above it, up to one that belongs to root or is sticky, as
/tmp is: there nobody can put another in its place.

A group that holds the user alone, as many systems make one for each user, is nobody else.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from syno._util.errors import UserError

_ROOT = 0
_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0)


def make_private_folder(folder: Path) -> Path:
    """Makes the folder, and what lacks above it, for this user alone (mode 0700).

    UserError where one that is there is not to be trusted; OSError where it cannot be made.
    """
    folder = Path(os.path.abspath(folder))
    lacking = []
    while not os.path.lexists(folder):
        lacking.append(folder)
        folder = folder.parent
    for each in reversed(lacking):
        with contextlib.suppress(FileExistsError):  # another process makes it, too
            each.mkdir(mode=0o700)
        folder = each
    check_folder(folder)
    return folder


def check_folder(folder: Path) -> None:
    """UserError where somebody else could have put files into the folder, or another in its place.

    OSError where it is not there.
    """
    folder = Path(os.path.abspath(folder))
    real = Path(os.path.realpath(folder))
    if real != folder:
        _check_links(folder)
    _check(real, os.stat(real), folder, {_user(), _ROOT})
    system = _system_users()
    for above in real.parents:
        found = os.stat(above)
        sticky = bool(found.st_mode & stat.S_ISVTX) and found.st_uid in {_user(), *system}
        if sticky or (found.st_uid in system and not found.st_mode & stat.S_IWOTH):
            return
        _check(above, found, folder, {_user(), *system})


@contextlib.contextmanager
def opened_folder(folder: Path) -> Iterator[int]:
    """A descriptor of a folder that was checked: what is opened below it lies in that folder until
    the end of the block, whatever takes its name."""
    descriptor = os.open(folder, _FOLDER_FLAGS)
    try:
        _check(folder, os.fstat(descriptor), folder, {_user(), _ROOT})
        yield descriptor
    finally:
        os.close(descriptor)


def read_private(path: Path, folder: int | None = None) -> bytes:
    """What is in a file, which is checked when it is open; no link is followed.

    folder: a descriptor of its folder. UserError where somebody else could have written it.
    """
    name = path if folder is None else path.name
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=folder)
    with open(descriptor, "rb") as file:
        check_open_file(path, descriptor)
        return file.read()


def check_open_file(path: Path, descriptor: int) -> None:
    """UserError where somebody else could have written the file that is open."""
    _check(path, os.fstat(descriptor), path, {_user(), _ROOT})


def private_opener(path: str, flags: int) -> int:
    """For `open`: a file that it makes may be read and written by this user alone."""
    return os.open(path, flags, 0o600)


def _user() -> int:
    return os.geteuid()


def _system_users() -> set[int]:
    """Root, and who owns the topmost folder: in some containers root goes by another number."""
    return {_ROOT, os.stat(os.sep).st_uid}


def _check_links(folder: Path) -> None:
    """A symbolic link on the way leads wherever its owner wants."""
    for each in (folder, *folder.parents):
        if each.is_symlink() and os.lstat(each).st_uid not in {_user(), *_system_users()}:
            raise _refused(each, os.lstat(each), folder, "is a link that belongs to")


def _check(path: Path, found: os.stat_result, asked: Path, owners: set[int]) -> None:
    if found.st_uid not in owners:
        raise _refused(path, found, asked, "belongs to")
    if found.st_mode & stat.S_IWOTH:
        raise _refused(path, found, asked, "may be written by every user; it belongs to")
    if found.st_mode & stat.S_IWGRP and not _is_own_group(found):
        raise _refused(
            path, found, asked, f"may be written by the group {_group(found.st_gid)}; it belongs to"
        )


def _is_own_group(found: os.stat_result) -> bool:
    """Whether the group of a file is that of its owner alone, by its name and its members."""
    import grp
    import pwd

    try:
        group, owner = grp.getgrgid(found.st_gid), pwd.getpwuid(found.st_uid)
    except KeyError:
        return False
    alone = set(group.gr_mem) <= {owner.pw_name}
    return alone and group.gr_name == owner.pw_name and found.st_gid == owner.pw_gid


def _refused(path: Path, found: os.stat_result, asked: Path, what: str) -> UserError:
    is_folder = stat.S_ISDIR(found.st_mode)
    kind = "folder" if is_folder else "link" if stat.S_ISLNK(found.st_mode) else "file"
    on_the_way = f"\n  on the way to '{asked}'" if path != asked else ""
    mine = found.st_uid == _user()
    option = "-R " if is_folder and path == asked else "-h " if kind == "link" else ""
    change = f"chmod {option}go-w" if mine else f"chown {option}{_user()}"
    return UserError(
        f"the {kind} '{path}' {what} {_name(found.st_uid)}{on_the_way}\n"
        f"  expected: a {kind} of {_name(_user())} that nobody else may write, since what lies in "
        f"a cache is run      got: mode {stat.S_IMODE(found.st_mode):04o}\n"
        "  what to do: set SYNO_CACHE to a folder of your own; or, if you trust what is in it,\n"
        f"              {change} {shlex.quote(str(path))}"
    )


def _name(user: int) -> str:
    import pwd

    try:
        return f"user '{pwd.getpwuid(user).pw_name}' ({user})"
    except KeyError:
        return f"user {user}"


def _group(group: int) -> str:
    import grp

    try:
        return f"'{grp.getgrgid(group).gr_name}'"
    except KeyError:
        return str(group)
