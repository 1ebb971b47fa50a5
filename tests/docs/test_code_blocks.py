"""A page is carried out from top to bottom in an empty folder: its programs and commands do what it says."""

import shutil
import subprocess

import pytest
import test_study_documents
from page_blocks import PAGES, blocks
from page_reader import Reader, has_work, is_long, without_comment
from page_substitutes import ON_A_SERVER

from surepick.linalg.rows import one_thread


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
