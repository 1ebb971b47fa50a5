"""Somebody who follows a page, in an empty folder.

Programs share their names, commands find what earlier ones left. Blocks that another test runs are left to it, if that
test's own reading of the page finds them. What cannot be done as written stands in INSTEAD with what is done in its
place and why.
"""

import contextlib
import io
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import test_add_a_policy
import test_add_a_question
import test_examples
import test_gallery
import test_recipes
import test_study_documents
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fresh_modules import FreshModules
from page_blocks import PRINTS, PROJECTS, ROOT, Block, Escaped, blocks
from page_substitutes import FILES, INSTEAD, NAMES
from typer.testing import CliRunner

from surepick.cli.app import app

SERVER = "http://127.0.0.1:8421"  # as pages write its address


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
        run |= {*re.findall(r"^```sh\n(surepick create [^`]*--judge as-they-come\n[^`]*)^```$", text, re.MULTILINE)}
        console = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        run |= {
            line.removeprefix("$ surepick ") for block in console for line in block.splitlines() if line[:2] == "$ "
        }
        run |= {*re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)}
    if page == "docs/examples/add_a_policy.md":
        run |= {file for _, file in test_add_a_policy.NEW_FILE.findall(text)}
        run |= {entry for _, _, entry in test_add_a_policy.ENTRY.findall(text)}
        run |= {*test_add_a_policy.COMMANDS.findall(text)}
    if page == test_add_a_question.PAGE:
        run |= {command for command, _ in test_add_a_question.COMMANDS}
    if page == "docs/environments.md":
        run |= {recipe.code for recipe in test_recipes.recipes()}
    if page == "docs/neural-guarantee.md":
        run |= {*re.findall(r"```python\n(.*?)```\s*```text\n", text, re.DOTALL)}
    if page == "docs/adapters.md":  # test_ray, where Ray is installed
        run |= {one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "import ray\n" in one}
    return {without_surepick(found) for found in run}


def without_surepick(command: str) -> str:
    """The words of a session, which some tests read without the name of the program."""
    return command.removeprefix("surepick ")


def is_run_elsewhere(block: Block) -> bool:
    done = elsewhere(block.page)
    commands = [without_surepick(command) for command, _ in block.commands]
    return without_surepick(block.text) in done or (bool(commands) and set(commands) <= done)


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
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        self.program(NAMES.get(self.page, ""))
        with self.server() as address:
            for block in blocks(self.page):
                self.take(replace(block, text=block.text.replace(SERVER, address)))

    @contextlib.contextmanager
    def server(self) -> Iterator[str]:
        """The address of the server that the page speaks of, which runs while it is followed."""
        if self.page != "docs/serve.md":
            yield SERVER
            return
        words = [sys.executable, "-m", "surepick", "serve", "sqlite:///lab.db", "--port", "0"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            try:
                yield re.findall(r"http://127.0.0.1:\d+", process.stdout.readline())[0]
            finally:
                process.kill()

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
        """Nothing is installed; the distributions and extras that the line names, also behind its #, exist."""
        assert words[0] in ("install", "wheel")
        pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower()
        paths = {f"./{folder}": project for folder, project in PROJECTS.items()}
        known = paths | {project["name"]: project for project in PROJECTS.values()}
        named = re.findall(r"([\w./-]+)\[([\w,-]+)\]", line)
        for name, extras in named:
            assert set(extras.split(",")) <= set(known[name]["optional-dependencies"]), line
        options = ("-c", "constraints.txt", "-e", "--find-links", "--wheel-dir", "--no-deps", "wheels")
        for word in words[1:]:
            name = word.partition("[")[0]
            assert name in known or word in options or f"\n{word.lower()}==" in pinned, line
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
ITEMS = re.compile(r"^Items: .*", re.MULTILINE)  # those that come first, in an order that each study draws


def comparable(text: str) -> list[str]:
    """What a command prints, without what differs from day to day and from machine to machine."""
    return test_study_documents.without_times(ITEMS.sub("Items: drawn", HASH.sub("HASH", text)))


def without_comment(line: str) -> str:
    """A command without what stands behind its #."""
    return re.sub(r"\s+#.*$", "", line).strip()


def has_work(page: str) -> bool:
    return any((block.language == "python" or block.commands) and not is_run_elsewhere(block) for block in blocks(page))


def is_long(page: str) -> bool:
    lines = [without_comment(line) for block in blocks(page) for line, _ in block.commands]
    return any(line in INSTEAD and INSTEAD[line].slow is not None for line in lines)
