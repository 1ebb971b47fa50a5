"""Every fenced block of the README and the documents is what it says: code runs, data parse, the rest is called text.

A page is carried out from top to bottom in an empty folder: programs share their names, commands find what earlier ones
left. Blocks that another test runs are left to it, if that test's own reading of the page finds them. What cannot be
done as written (too long, another machine) stands in INSTEAD with what is done in its place and why.
"""

import contextlib
import csv
import io
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import test_add_a_policy
import test_examples
import test_gallery
import test_recipes
import test_study_documents
import typer
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fresh_modules import FreshModules
from typer.testing import CliRunner

from surepick.cli.app import app, loaded
from surepick.linalg.blas_threads import one_thread

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
COMMANDS: Any = typer.main.get_command(app)

FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")
NEW_FILE = re.compile(r"`([\w-]+\.(?:csv|json|py|toml))`:$")  # the words before a block that is a file of the page
PRINTS = re.compile(r"It prints:$")  # before what the program above prints
LANGUAGES = ("python", "sh", "csv", "json", "toml", "text")


class Escaped(AssertionError):
    """A block that no rule covers."""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it says that it is, and what is in it."""

    page: str
    line: int
    language: str
    text: str
    before: str = ""  # the last line before it

    @property
    def file(self) -> str | None:
        """The name that the page gives it, if it is a file to be written."""
        named = NEW_FILE.search(self.before)
        return named[1] if named else None

    @property
    def where(self) -> str:
        return f"{self.page}, line {self.line}"

    @property
    def commands(self) -> list[tuple[str, str | None]]:
        """(command, what it prints) of a shell block or of a session; None where nothing is shown."""
        if self.language == "sh":
            lines = self.text.replace("\\\n", " ").splitlines()
            return [(line.strip(), None) for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if self.language != "text":
            return []
        found = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)(?=^\$ |\Z)", self.text, re.MULTILINE | re.DOTALL)
        return [(command.replace("\\\n", " "), shown) for command, shown in found]


def blocks(page: str, text: str | None = None) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    before, opened = "", None
    for number, line in enumerate((text or (ROOT / page).read_text(encoding="utf-8")).splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = (number, *fence.groups(), before)
            inside: list[str] = []
        elif opened is not None and fence and line.strip() == opened[2]:
            body = "".join(f"{inner[len(opened[1]) :]}\n" for inner in inside)
            yield Block(page, opened[0], opened[3].strip(), body, opened[4])
            before, opened = "", None
        elif opened is not None:
            inside.append(line)
        if opened is None and line.strip() and not fence:
            before = line.strip()
    if opened is not None:
        raise Escaped(f"{page}, line {opened[0]}: this block never ends")


# --- what other tests run


def elsewhere(page: str) -> set[str]:
    """The blocks and commands of a page that another test runs, as that test reads them."""
    text = (ROOT / page).read_text(encoding="utf-8")
    run: set[str] = set()
    if page in (*test_examples.DOCUMENTS, *test_examples.SLOW_DOCUMENTS):
        run |= {example.command.replace("\\\n", " ") for example in test_examples.examples((page,))}
    if page == "README.md":  # test_readme
        run |= {*re.findall(r"```python\n(.*?)```", text, re.DOTALL)}
    if page == "docs/concepts.md":
        run |= {part for example in test_examples.PROGRAM.findall(text) for part in example}
    if page == "docs/studies.md":
        run |= {command for command, _ in test_study_documents.sessions()}
        run |= {*re.findall(r"^```sh\n(surepick run-study sqlite[^\n]*\n)```$", text, re.MULTILINE)}
        run |= {*re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)}
    if page == "docs/examples/add_a_policy.md":
        run |= {file for _, file in test_add_a_policy.NEW_FILE.findall(text)}
        run |= {entry for _, _, entry in test_add_a_policy.ENTRY.findall(text)}
        run |= {*test_add_a_policy.COMMANDS.findall(text)}
    if page == "docs/environments.md":
        run |= {recipe.code for recipe in test_recipes.recipes()}
    if page == "docs/neural-guarantee.md":
        run |= {*re.findall(r"```python\n(.*?)```\s*```text\n", text, re.DOTALL)}
    return {without_surepick(found) for found in run}


def without_surepick(command: str) -> str:
    """The words of a session, which some tests read without the name of the program."""
    return command.removeprefix("surepick ")


def is_run_elsewhere(block: Block) -> bool:
    done = elsewhere(block.page)
    commands = [without_surepick(command) for command, _ in block.commands]
    return without_surepick(block.text) in done or (bool(commands) and set(commands) <= done)


# --- what is done in place of what is written

ON_A_SERVER = (
    "surepick create postgresql+psycopg://ann@dbhost/studies headlines --arms headlines.csv --id sku --noise bernoulli"
)
HEADLINES = "surepick create sqlite:///lab.db headlines --arms headlines.csv --id sku --noise bernoulli --epsilon 0.2"
SMALL_BENCH = "surepick bench run high-dimensional --policies rage --runs 1 --jobs 1 --out "
LONG_BENCH = "surepick bench run {} --runs 1 --jobs 2 --data DATA --out {}"


@dataclass(frozen=True)
class Instead:
    """What is done in place of a command; `slow`: by `make prove`, None for the same."""

    why: str
    quick: tuple[str, ...] = ()
    slow: tuple[str, ...] | None = None


INSTEAD = {
    "surepick bench run paper --runs 50 --out paper.parquet": Instead(
        "a quarter of an hour", (f"{SMALL_BENCH}paper.parquet",), (LONG_BENCH.format("paper", "paper.parquet"),)
    ),
    "surepick bench figures paper.parquet --out figures": Instead(
        "seconds; test_add_a_policy draws some", (), ("surepick bench figures paper.parquet --out figures",)
    ),
    "surepick bench run peers --runs 5 --out peers.parquet": Instead(
        "minutes", (), (LONG_BENCH.format("peers", "peers.parquet"),)
    ),
    "surepick bench run error-rate --runs 200 --out errors.parquet": Instead(
        "minutes", (), (LONG_BENCH.format("error-rate", "errors.parquet"),)
    ),
    "python benchmarks/reproduction.py paper.parquet peers.parquet errors.parquet": Instead(
        "it would write into the page",
        ("python benchmarks/reproduction.py paper.parquet peers.parquet errors.parquet --document page.md",),
    ),
    "surepick run-study URL NAME --measure 'python measure.py {id} {pulls}' --workers 4 --timeout 10m --retries 3": (
        Instead(
            "URL and NAME stand for those of a study",
            (
                HEADLINES,
                "surepick run-study sqlite:///lab.db headlines --measure 'python measure.py {id} {pulls}' "
                "--workers 4 --timeout 10m --retries 3",
            ),
        )
    ),
    "surepick run-study URL NAME --measure-batch 'python measure_batch.py' --batch 1000": (
        Instead(
            "URL and NAME stand for those of a study",
            (
                HEADLINES.replace(" headlines ", " batches "),
                "surepick run-study sqlite:///lab.db batches --measure-batch 'python measure_batch.py' --batch 1000",
            ),
        )
    ),
    "createdb studies": Instead("needs a server: test_the_lines_for_a_server"),
    ON_A_SERVER: Instead("needs a server: test_the_lines_for_a_server"),
    "pg_dump --format=custom studies > studies.dump": Instead("needs a server: test_the_lines_for_a_server"),
    """sqlite3 lab.db "VACUUM INTO 'backup/lab-2026-11-22.db'\"""": Instead(
        "and the copy is looked at",
        (
            """sqlite3 lab.db "VACUUM INTO 'backup/lab-2026-11-22.db'\"""",
            "surepick certificate sqlite:///backup/lab-2026-11-22.db headlines",
        ),
    ),
}

PAINT = "sku,red,blue,gloss\n" + "".join(
    f"p{number},{number % 4 / 3:.4f},{number // 4 / 4:.2f},{1 + number % 4 * 0.3 + number // 4 * 0.1 + shift:.2f}\n"
    for number in range(20)
    for shift in (-0.2, 0.0, 0.2)
)
FILES = {  # what a page supposes that the reader has
    "docs/tuning.md": {"paint.csv": PAINT},
    "docs/reproduction.md": {"page.md": (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")},
    "docs/studies.md": {
        "measure.py": test_study_documents.CLICK,
        "measure_batch.py": "import sys\nfor line in sys.stdin:\n    print(int(line.strip() == 'B'))\n",
        "backup/here.txt": "",
    },
}
NAMES = {  # what the programs of a page suppose: made by this program
    "docs/tuning.md": """
import numpy as np
import surepick as sp
rng = np.random.default_rng(0)
arms, noise = sp.Arms(rng.uniform(size=(30, 2))), sp.SubGaussian(0.3)
counts = np.full(30, 4)
sums = counts * np.sin(3 * arms.features[:, 0]) + rng.normal(0.0, 0.6, size=30)
""",
}


# --- a page is carried out


@dataclass
class Reader:
    """Somebody who follows a page, in a folder of their own."""

    page: str
    folder: Path
    slow: bool = False
    names: dict[str, Any] = field(default_factory=dict)
    printed: str | None = None  # by the last program
    modules: FreshModules = field(default_factory=FreshModules)

    def follow(self) -> None:
        for name, text in FILES.get(self.page, {}).items():
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        self.program(NAMES.get(self.page, ""))
        for block in blocks(self.page):
            self.take(block)

    def take(self, block: Block) -> None:
        """Do what a block says, unless another test does."""
        if block.file:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
        if is_run_elsewhere(block):
            self.printed = None
            return
        if block.language == "python" and not block.file:
            self.printed = self.program("\n" * block.line + block.text)
        elif PRINTS.match(block.before):
            if self.printed is None:
                raise Escaped(f"{block.where}: there is no program before it that prints this")
            assert self.printed.splitlines() == block.text.splitlines(), block.where
        for command, shown in block.commands:
            self.command(command, shown, block.where)

    def program(self, text: str) -> str:
        """Run a program as if the page's programs were a process of their own; what it prints."""
        program = compile(text, self.page, "exec")
        with self.modules.entered(), contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(program, self.names)
        return printed.getvalue()

    def command(self, line: str, shown: str | None, where: str) -> None:
        """Do what a line says, or what stands in its place."""
        instead = INSTEAD.get(without_comment(line))
        if instead is None:
            lines: tuple[str, ...] = (line,)
        else:
            lines = instead.slow if self.slow and instead.slow is not None else instead.quick
        for each in lines:
            words = shlex.split(each, comments=True)
            if words[0] not in RULES:
                raise Escaped(f"{where}: no rule says how to try {each!r}")
            printed = RULES[words[0]](self, words[1:], each)
            if shown and shown.strip():
                assert comparable(printed) == comparable(shown), where

    def surepick(self, words: list[str], _: str) -> str:
        words = [re.sub(r"^python ", f"{sys.executable} ", word) for word in words]
        words = [str(test_examples.SHARED_DATA) if word == "DATA" else word for word in words]
        terminal = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"})
        result = terminal.invoke(app, words, catch_exceptions=False)
        assert result.exit_code in (0, 3), result.output  # 3: not certified
        return result.stdout

    def make(self, words: list[str], _: str) -> str:
        done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return ""

    def pip(self, words: list[str], line: str) -> str:
        """Nothing is installed; the extras that the line names, also behind its #, exist."""
        assert words[0] == "install"
        named = {extra for listed in re.findall(r"(?:\.|surepick)\[([\w,]+)\]", line) for extra in listed.split(",")}
        assert named <= set(PROJECT["optional-dependencies"]), line
        rest = [word for word in words[1:] if not re.fullmatch(r"(?:\.|surepick)(?:\[[\w,]+\])?", word)]
        pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
        assert all(word in ("-c", "constraints.txt", "-e") or f"\n{word.lower()}==" in pinned for word in rest), line
        return ""

    def python(self, words: list[str], line: str) -> str:
        script = words[0]
        if (self.folder / script).is_file():
            return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True).stdout
        assert (ROOT / script).is_file(), line
        if script.startswith("docs/examples/"):
            assert Path(script).name in test_gallery.SCRIPTS, f"{line}: test_gallery does not run it"
            return ""
        if self.slow:
            return subprocess.run([sys.executable, ROOT / script, *words[1:]], text=True, check=True).stdout or ""
        done = subprocess.run(
            [sys.executable, ROOT / script, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert all(f"{word} " in done.stdout for word in words if word.startswith("--")), line
        return ""

    def openssl(self, words: list[str], line: str) -> str:
        """Make keys, where the program is there; else what it would have made."""
        if shutil.which("openssl"):
            return subprocess.run(["openssl", *words], check=True, capture_output=True, text=True).stdout
        key = Ed25519PrivateKey.generate()
        if words[0] == "genpkey":
            hidden = serialization.NoEncryption()
            made = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)
        else:
            key = serialization.load_pem_private_key((self.folder / words[2]).read_bytes(), None)
            form = serialization.PublicFormat.SubjectPublicKeyInfo
            made = key.public_key().public_bytes(serialization.Encoding.PEM, form)
        (self.folder / words[-1]).write_bytes(made)
        return ""

    def sqlite3(self, words: list[str], _: str) -> str:
        file, statement = words
        with contextlib.closing(sqlite3.connect(self.folder / file)) as connection:
            connection.execute(statement)
        return ""


RULES: dict[str, Callable[[Reader, list[str], str], str]] = {
    "surepick": Reader.surepick,
    "make": Reader.make,
    "pip": Reader.pip,
    "python": Reader.python,
    "sqlite3": Reader.sqlite3,
    "openssl": Reader.openssl,
}


HASH = re.compile(r"\b[0-9a-f]{16,64}\b")  # of a file that says which version and which arithmetic made it


def comparable(text: str) -> list[str]:
    """What a command prints, without what differs from day to day and from machine to machine."""
    return test_study_documents.without_times(HASH.sub("HASH", text))


def without_comment(line: str) -> str:
    """A command without what stands behind its #."""
    return re.sub(r"\s+#.*$", "", line).strip()


def has_work(page: str) -> bool:
    return any((block.language == "python" or block.commands) and not is_run_elsewhere(block) for block in blocks(page))


def is_long(page: str) -> bool:
    lines = [without_comment(line) for block in blocks(page) for line, _ in block.commands]
    return any(line in INSTEAD and INSTEAD[line].slow is not None for line in lines)


@pytest.mark.parametrize("page", [page for page in PAGES if has_work(page)])
@pytest.mark.usefixtures("sqlite_url")  # closes what is opened
def test_a_page_can_be_followed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with one_thread():  # as the commands compute: a program of a page and the command after it must round alike
        Reader(page, tmp_path).follow()


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if is_long(page)])
@pytest.mark.usefixtures("shared_data", "sqlite_url")
def test_the_long_commands_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Reader(page, tmp_path, slow=True).follow()


def test_the_lines_for_a_server(postgres_url, tmp_path, monkeypatch):
    """createdb is the fixture's; the rest is done on its database."""
    lines = [line for block in blocks("docs/studies.md") for line, _ in block.commands]
    (dump,) = (without_comment(line) for line in lines if line.startswith("pg_dump"))
    assert {"createdb studies", ON_A_SERVER} <= set(lines)
    monkeypatch.chdir(tmp_path)
    reader = Reader("docs/studies.md", tmp_path)
    (tmp_path / "headlines.csv").write_text(test_study_documents.tables()[0])
    create = ON_A_SERVER.replace("postgresql+psycopg://ann@dbhost/studies", postgres_url)
    reader.command(create, None, "docs/studies.md")
    if shutil.which("pg_dump"):
        address = postgres_url.replace("+psycopg", "")
        subprocess.run(dump.replace(" studies ", f" '{address}' "), shell=True, check=True)
        assert (tmp_path / "studies.dump").stat().st_size > 1000


# --- no block escapes


def check_language(block: Block) -> None:
    """Refuse what has no language, or one that nothing is known of."""
    if block.language not in LANGUAGES:
        raise Escaped(f"{block.where}: the language {block.language!r} is none of {', '.join(LANGUAGES)}")


def check_data(block: Block) -> None:
    """Refuse data that cannot be read."""
    if block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "csv":
        rows = list(csv.reader(block.text.splitlines(), strict=True))
        if len({len(row) for row in rows}) != 1:
            raise Escaped(f"{block.where}: the rows have different numbers of columns")
    elif block.language == "python":
        compile(block.text if not block.text.startswith(" ") else f"{{\n{block.text}}}", block.where, "exec")


def command_named(group: Any, name: str) -> Any:
    """The command of this name with its options, or None; the outermost group loads a command only to run it."""
    found = group.get_command(None, name)
    return loaded(name) if group is COMMANDS and found is not None else found


def subcommands(command: Any) -> dict[str, Any]:
    """The commands of a group; none of a single command."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    return {name: command_named(command, name) for name in names}


def parse(words: list[str]) -> None:
    """Let the command line read a command, without doing it: unknown commands, options and values are refused."""
    command, path = COMMANDS, "surepick"
    if words in (["--help"], ["--version"]):
        return
    while hasattr(command, "get_command"):
        name, *words = words
        found = command_named(command, name)
        if found is None:
            raise Escaped(f"{path} has no command {name!r}")
        command, path = found, f"{path} {name}"
    if "--help" not in words:
        command.make_context(path, list(words))


def synopsis(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(commands, options) of each line of a list of commands: "surepick ask | tell URL [--worker W]   what it does"."""
    for line in text.splitlines():
        if line.startswith("surepick "):
            alternatives = re.split(r"\s{2,}", line)[0].removeprefix("surepick ").split(" | ")
            yield [alternative.split()[0] for alternative in alternatives], re.findall(r"--[\w-]+", line)


def check_synopsis(block: Block) -> None:
    """Refuse a list of commands that names what is not there."""
    if block.language != "text":
        return
    for names, wanted in synopsis(block.text):
        known: set[str] = set()
        for name in names:
            found = command_named(COMMANDS, name)
            if found is None:
                raise Escaped(f"{block.where}: there is no command {name!r}")
            for command in (found, *subcommands(found).values()):
                known |= {option for parameter in command.params for option in parameter.opts}
        if not set(wanted) <= known:
            raise Escaped(f"{block.where}: {', '.join(names)} knows no {set(wanted) - known}")


def examine(block: Block) -> None:
    """Refuse a block that is not what it says, without running it."""
    check_language(block)
    check_data(block)
    check_synopsis(block)
    for line, _ in block.commands:
        words = shlex.split(line, comments=True)
        if words[0] == "surepick":
            parse(words[1:])


def examine_and_follow(text: str, folder: Path) -> None:
    """All that is done with a page, for blocks that no page has."""
    for block in blocks("README.md", text):
        examine(block)
        Reader("README.md", folder).take(block)


@pytest.mark.parametrize("page", PAGES)
def test_no_block_escapes(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(blocks(page))
    assert 2 * len(found) == len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE))
    for block in found:
        examine(block)
        if block.file and block.file.endswith(".py"):  # it runs where a later command names it
            later = [line for other in found for line, _ in other.commands if other.line > block.line]
            assert any(block.file in line for line in later), f"{block.where}: nothing runs {block.file}"
        lines = [line for line in block.text.splitlines() if line.startswith("$ ")]
        assert not lines or (block.language == "text" and len(lines) == len(block.commands)), block.where


def test_nothing_stands_in_place_of_what_is_gone():
    lines = {without_comment(line) for page in PAGES for block in blocks(page) for line, _ in block.commands}
    assert set(INSTEAD) <= lines
    assert {*FILES, *NAMES} <= set(PAGES)
    assert all(instead.why for instead in INSTEAD.values())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```\n1 + 1\n```\n", "the language '' is none of"),
        ("```ruby\nputs 1\n```\n", "the language 'ruby' is none of"),
        ("```text\nnever closed\n", "this block never ends"),
        ("```csv\na,b\n1\n```\n", "different numbers of columns"),
        ("```text\nsurepick guess\n```\n", "there is no command 'guess'"),
        ("```text\nsurepick ask | tell URL [--wroker W]   measure\n```\n", "ask, tell knows no {'--wroker'}"),
        ("```sh\nsurepick guess\n```\n", "no command 'guess'"),
        ("```sh\nsurepick demo | grep certified\n```\n", "unexpected extra argument"),
        ("```sh\nsurepick ask URL NAME --wroker ann\n```\n", "--wroker"),
        ("```sh\nfrobnicate --all\n```\n", "no rule says how to try 'frobnicate --all'"),
        ("```text\n$ frobnicate\ndone\n```\n", "no rule says how to try 'frobnicate'"),
        ("```sh\nmake no-such-target\n```\n", "No rule to make target"),
        ("```sh\npip install '.[no-such]'\n```\n", "no-such"),
        ("```python\nraise ValueError('it was run')\n```\n", "it was run"),
        ("```python\nx = (\n```\n", "never closed"),
        ("```python\nimport surepick as sp\nsp.studies.sql_log\n```\n", "no surepick attribute studies"),
        ("```python\nprint(1)\n```\n\nIt prints:\n\n```text\n2\n```\n", "README.md, line 7"),
        ("It prints:\n\n```text\n2\n```\n", "no program before it"),
        ("```text\n$ surepick tell --help\nnothing at all\n```\n", "nothing at all"),
    ],
)
def test_a_bad_block_is_found(text, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception) as caught:  # noqa: PT011 (of each kind)
        examine_and_follow(text, tmp_path)
    assert reason.lower() in str(getattr(caught.value, "message", "") or caught.value).lower()
