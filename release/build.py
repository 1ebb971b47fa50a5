"""Wheels and source archives of the three distributions, built twice to the same bytes.

    python release/build.py [FOLDER]
    python release/build.py --check v0.3.0

What is built stands in FOLDER (dist), with SHA256SUMS and a conda recipe. Files carry the time of the last commit, or
SOURCE_DATE_EPOCH. A second build in another folder, and one of the wheel from the source archive, must give the same
bytes; else nothing is left in FOLDER.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("surepick", "surepick-server", "surepick-bench")
BESIDE = ("SHA256SUMS", "recipe.yaml")
RECIPE = Path(__file__).with_name("recipe.yaml")


def run(*words: str, cwd: Path = ROOT, **environment: str) -> str:
    """What a program prints; what it complains of, if it fails."""
    done = subprocess.run(words, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def version() -> str:
    """The version, which is the same in all three."""
    found = set()
    for name in NAMES:
        module = ROOT / "packages" / name / "src" / name.replace("-", "_") / "__init__.py"
        (line,) = (line for line in module.read_text(encoding="utf-8").splitlines() if line.startswith("__version__"))
        found.add(line.split('"')[1])
    if len(found) > 1:
        sys.exit(f"the distributions have several versions: {', '.join(sorted(found))}. They are released together.")
    return found.pop()


def source_time() -> str:
    """Seconds since 1970 that all files carry."""
    return os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct").strip()


def files_of(name: str) -> Iterator[tuple[Path, Path]]:
    """(file, its path in the distribution): those that git knows, or would take."""
    folder = ROOT / "packages" / name
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=folder)
    for path in sorted(set(filter(None, listed.split("\0")))):
        if (folder / path).is_file():
            yield folder / path, Path(path)


def built(name: str, out: Path, time: str) -> None:
    """Build the source archive and the wheel of a distribution into a folder.

    From a copy, in which the licence and the README are files: a link to them leads nowhere in a source archive.
    """
    with tempfile.TemporaryDirectory() as folder:
        for file, path in files_of(name):
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        hatch(Path(folder), out, time)


def hatch(source: Path, out: Path, time: str, *options: str) -> None:
    """Build what is in a folder."""
    run(sys.executable, "-m", "hatchling", "build", *options, "-d", str(out), cwd=source, SOURCE_DATE_EPOCH=time)


def from_archive(archive: Path, out: Path, time: str) -> None:
    """Build the wheel of a source archive, as whoever has no other file does."""
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
        (source,) = Path(folder).iterdir()
        hatch(source, out, time, "-t", "wheel")


def digests(folder: Path, pattern: str = "surepick*") -> dict[str, str]:
    """File -> its SHA-256."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob(pattern))}


def build_all(out: Path) -> dict[str, str]:
    """Build all into a folder, twice; file -> its SHA-256. The program ends where the bytes differ."""
    time = source_time()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for name in NAMES:
            built(name, Path(first), time)
            built(name, Path(second), time)
        found = digests(Path(first))
        check_same(found, digests(Path(second)), "a second build")
        with tempfile.TemporaryDirectory() as third:
            for archive in Path(first).glob("*.tar.gz"):
                from_archive(archive, Path(third), time)
            check_same(digests(Path(first), "*.whl"), digests(Path(third)), "the wheel of the source archive")
        out.mkdir(parents=True, exist_ok=True)
        for name in found:
            shutil.copyfile(Path(first, name), out / name)
    return found


def check_same(one: dict[str, str], other: dict[str, str], what: str) -> None:
    """End the program where two builds differ."""
    different = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    if different:
        sys.exit(f"{what} differs: {', '.join(different)}. Nothing was left in the folder.")


def filled_recipe(found: dict[str, str]) -> str:
    """The conda recipe with the version and the digests of the source archives."""
    text = RECIPE.read_text(encoding="utf-8").replace("VERSION", version())
    for name in NAMES:
        archive = f"{name.replace('-', '_')}-{version()}.tar.gz"
        text = text.replace(f"SHA256:{name}\n", f"{found[archive]}\n")
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--check", metavar="TAG", help="only say whether the version is that of this tag")
    given = parser.parse_args()
    if given.check is not None:
        wanted = f"v{version()}"
        sys.exit(0 if given.check == wanted else f"the version needs the tag {wanted}, and this is {given.check}.")
    for old in (*given.folder.glob("surepick*"), *(given.folder / name for name in BESIDE)):
        old.unlink(missing_ok=True)
    found = build_all(given.folder)
    (given.folder / BESIDE[0]).write_text("".join(f"{sha}  {name}\n" for name, sha in found.items()), "utf-8")
    (given.folder / BESIDE[1]).write_text(filled_recipe(found), encoding="utf-8")
    print("".join(f"{sha}  {name}\n" for name, sha in found.items()), end="")
    print(f"{len(found)} files in {given.folder}, built twice to the same bytes.")


if __name__ == "__main__":
    main()
