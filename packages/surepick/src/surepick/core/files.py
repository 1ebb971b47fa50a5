"""Files on a disk: read if they have an end, written whole or not at all (beside the target, then renamed over it)."""

import contextlib
import errno
import os
import secrets
import stat
import sys
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.text import printable, quoted

MOST_LINKS = 40  # as Linux follows
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
LONGEST = 200  # characters of a name in a message


def as_path(path: object, *, meaning: str) -> Path:
    """A path from what a caller gave for one."""
    if isinstance(path, str | os.PathLike):
        try:
            return Path(path)
        except Exception:  # a path of bytes, or a stranger's class
            pass
    raise InvalidInput(f"the path is {quoted(path)}, a {type(path).__name__}; give the path of a file: {meaning}")


def is_file(path: str | Path) -> bool:
    """Whether there is a file; False too where no file can be: a name of 300 characters, one with a zero byte."""
    return os.path.isfile(path)  # noqa: PTH113 (Path.is_file raises there)


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder; False too where none can be."""
    return os.path.isdir(path)  # noqa: PTH112 (Path.is_dir raises there)


def check_regular(path: Path) -> os.stat_result:
    """What the disk says of a regular file; we would wait forever for the end of a device or a pipe."""
    try:
        found = path.stat()
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}; check the path (it is relative to {Path.cwd()}).") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(found.st_mode):
        raise InvalidInput(f"{path} is a folder; give a file.")
    if not stat.S_ISREG(found.st_mode):
        raise InvalidInput(f"{path} is not a regular file (it is a device, a pipe or a socket); give a file on a disk.")
    return found


def read_regular(path: Path, most: int | None = None) -> bytes:
    """All of a regular file."""
    size = check_regular(path).st_size
    if most is not None and size > most:
        raise InvalidInput(f"{path} has {size:,} bytes; we read at most {most:,}.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError | ValueError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def write_whole(path: str | Path, content: bytes, *, what: str = "") -> None:
    """Write a file; anyone who looks at any moment finds the old content or the new one. A new file in the same folder,
    with the permissions of the old one, is renamed when all is on the disk; a symbolic link stays. Devices and pipes
    are written to. A killed process can leave `.surepick-*.part`; nothing reads it."""
    try:
        target = _followed(Path(path))
        if _is_stream(target):
            _write_directly(target, content)
        else:
            _replace(target, content)
    except (OSError, ValueError) as error:
        name = printable(str(path))
        short = name if len(name) <= LONGEST else f"{name[: LONGEST // 4]}...{name[-LONGEST // 2 :]}"
        wrong = f"{what} cannot be written to {short}" if what else f"{short} cannot be written"
        raise InvalidInput(f"{wrong}: {_reason(error, Path(path))}.") from error


def _reason(error: OSError | ValueError, path: Path) -> str:
    said = getattr(error, "strerror", None) or str(error)
    with contextlib.suppress(OSError, ValueError):
        folder = printable(str(path.parent))
        if isinstance(error, FileNotFoundError) and not path.parent.exists():
            return f"there is no folder {folder}; make the folder first"
        if isinstance(error, PermissionError) and not os.access(path.parent, os.W_OK):
            return f"{said}; we write a new file in {folder} first and rename it, so you need the right to write there"
        if path.is_file():
            return f"{said}; the file that was there is unchanged"
    return said


def _followed(path: Path) -> Path:
    """The path with all links followed, as far as files go: what a link of /dev or /proc names may have no path."""
    for _ in range(MOST_LINKS):
        path = Path(os.path.realpath(path.parent)) / path.name
        if _of_system(path) or not path.is_symlink():
            break
        path = path.parent / path.readlink()
    return path


def _of_system(path: Path) -> bool:
    return str(path.parent) == "/dev" or path.parts[:2] == ("/", "proc")


def _is_stream(path: Path) -> bool:
    """Whether it can only be written to: a device or a pipe."""
    if _of_system(path):
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "Is a directory")
    return not stat.S_ISREG(mode)


def _replace(target: Path, content: bytes) -> None:
    there = target.stat() if target.exists() else None
    if there is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "Permission denied")  # renaming over it would not ask
    part = target.with_name(f".surepick-{secrets.token_hex(8)}.part")  # short, whatever the name of the target
    mode = 0o666 if there is None else 0o600  # closed until it has the modes of the old one
    try:
        with os.fdopen(os.open(part, NEW, mode), "wb") as file:
            if there is not None:
                _keep_permissions(part, there)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
    with contextlib.suppress(OSError):  # put the new name on the disk too, where folders can be synchronised
        descriptor = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _keep_permissions(part: Path, there: os.stat_result) -> None:
    """Owner, group and mode of the file that is replaced, as far as this user may give them."""
    mine = part.stat()
    for owner, group in ((-1, there.st_gid), (there.st_uid, -1)):
        if hasattr(os, "chown") and (owner, group) not in ((mine.st_uid, -1), (-1, mine.st_gid)):
            with contextlib.suppress(OSError):
                os.chown(part, owner, group)
    with contextlib.suppress(OSError):  # some file systems have no modes
        part.chmod(there.st_mode & 0o777)


def _write_directly(path: Path, content: bytes) -> None:
    """To a device or a pipe. Of our own descriptors we use a copy, so that later output goes after it."""
    end = path.parent / path.readlink() if str(path.parent) == "/dev" and path.is_symlink() else path
    if end.name.isdigit() and os.path.realpath(end.parent) == f"/proc/{os.getpid()}/fd":
        sys.stdout.flush()
        with os.fdopen(os.dup(int(end.name)), "wb") as file:
            file.write(content)
        return
    with path.open("ab") as file:
        file.write(content)
