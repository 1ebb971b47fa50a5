"""Each fenced block of the README and the documents is what it says: code runs, data parse, the rest is called text."""

import csv
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_blocks import COMMANDS, LANGUAGES, PAGES, ROOT, Block, Escaped, blocks
from page_reader import Reader, without_comment
from page_substitutes import FILES, INSTEAD, NAMES

from surepick.cli.app import loaded


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
        assert not lines or (block.language in ("text", "console") and len(lines) == len(block.commands)), block.where


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
        ("```sh\npip install './packages/surepick[no-such]'\n```\n", "no-such"),
        ("```sh\npip install .\n```\n", "pip install ."),
        ("```sh\npip install surepick-x\n```\n", "pip install surepick-x"),
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
