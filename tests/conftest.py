"""What every test may ask for."""

import gc
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# The last bits of a matrix product depend on the processor, and where designs tie they decide which arm is measured.
# The figures in the documents are those of these kernels; set before numpy is loaded, it makes all machines agree.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import hypothesis
import pytest

# Assertions of helpers say what was compared, as those of tests do.
pytest.register_assert_rewrite(*(file.stem for file in (Path(__file__).parent / "helpers").glob("*.py")))

hypothesis.settings.register_profile("surepick", deadline=None)  # no test asserts on a clock
hypothesis.settings.load_profile("surepick")

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option for another order of the tests."""
    parser.addoption("--shuffled", type=int, metavar="SEED", help="files, and the tests in each, in a random order")


def pytest_configure(config: pytest.Config) -> None:
    """Processor time is measured; where all examples are tried, no test has a budget of it."""
    from budgets import ALL
    from processor_time import ProcessorTime

    config.pluginmanager.register(ProcessorTime(budgeted=not os.environ.get(ALL)), "processor time")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays to the end, so nobody looks for garbage in it: a quarter of the time of collecting."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of a test marked `cases`, some of the cases stay. With --shuffled, files and their tests are in random order."""
    from budgets import some_cases

    items[:], left_out = some_cases(items)
    config.hook.pytest_deselected(items=left_out)
    seed = config.option.shuffled
    if seed is not None:
        files = {item.path: f"{seed}{item.path.name}" for item in items}
        place = {path: number for number, path in enumerate(sorted(files, key=lambda path: _mixed(files[path])))}
        items.sort(key=lambda item: (place[item.path], _mixed(f"{seed}{item.nodeid}")))


def _mixed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """A test fails that leaves a thread at work: a server, a client, a watcher."""
    from leftovers import nothing_left

    with nothing_left():
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets beside the repository; skips without it, fails where it is required."""
    if not SHARED_DATA.is_dir():
        message = f"the data sets are not at {SHARED_DATA}"
        if os.environ.get("SUREPICK_REQUIRE_SHARED_DATA"):
            pytest.fail(f"{message}, and SUREPICK_REQUIRE_SHARED_DATA is set")
        pytest.skip(message)
    return SHARED_DATA


@pytest.fixture(scope="session")
def world(shared_data: Path) -> Path:
    """The folder of small files as the world writes them, each with what is expected of it in its README.md."""
    return shared_data.parent / "world"


@pytest.fixture(scope="session")
def mnist_directory(shared_data: Path) -> Path:
    """The folder of MNIST's original files."""
    return shared_data / "mnist"


@contextmanager
def connections_closed() -> Iterator[None]:
    """What studies of this process open inside is closed at the end, whoever still holds it."""
    import sqlalchemy as sa

    opened: list[Any] = []

    def remember(connection: Any, _: Any) -> None:
        opened.append(connection)

    sa.event.listen(sa.pool.Pool, "connect", remember)
    try:
        yield
    finally:
        sa.event.remove(sa.pool.Pool, "connect", remember)
        for connection in opened:
            connection.close()


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The address of a fresh database on the PostgreSQL server of the tests, dropped afterwards; skips without one."""
    server = os.environ.get("SUREPICK_TEST_POSTGRES_URL")
    if not server:
        pytest.skip(
            "no PostgreSQL server: SUREPICK_TEST_POSTGRES_URL is not set (postgresql+psycopg://USER@HOST/DATABASE)"
        )
    import psycopg
    from sqlalchemy.engine import make_url

    address = make_url(server)
    plain = address.set(drivername="postgresql").render_as_string(hide_password=False)
    name = f"surepick_test_{secrets.token_hex(6)}"
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    try:
        with connections_closed():
            yield address.set(drivername="postgresql+psycopg", database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def sqlite_url(tmp_path: Path) -> Iterator[str]:
    """The address of a SQLite database that is not there yet."""
    with connections_closed():
        yield f"sqlite:///{tmp_path / 'studies.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database, of each kind that studies can live in."""
    kind = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(kind))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def stored_at(request: pytest.FixtureRequest) -> str:
    """As `database_url`, where no statement is tried that is not tried on both: PostgreSQL in the proofs only."""
    kind = "sqlite_url" if request.param == "sqlite" else "postgres_url"
    return str(request.getfixturevalue(kind))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a file in the folder of the test: (content, name) -> its path."""

    def write(content: str | bytes, name: str = "arms.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After the long proofs, the seconds that each file took."""
    if not config.option.markexpr.startswith("slow"):
        return
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] = seconds.get(file, 0.0) + report.duration
    terminalreporter.section("seconds per file")
    for file, total in sorted(seconds.items()):
        terminalreporter.write_line(f"{total:8.1f}  {file}")


@pytest.fixture(scope="session", autouse=True)
def of_this_process() -> Iterator[None]:
    """What tests need hundreds of times, and is always the same, is made once; and every certificate is checked.

    One fixture, since a test pays for each that it has.
    """
    from made_once import usual_things

    with usual_things(), every_certificate_is_of_the_published_form():
        yield


@contextmanager
def every_certificate_is_of_the_published_form() -> Iterator[None]:
    """Certificates that tests of this process make are compared with the published JSON Schema: each form once.

    A form is the fields, with the kinds of their values, and the words that stand in them. Where all examples are
    tried, each certificate is compared.
    """
    import json

    import jsonschema
    from budgets import ALL
    from json_forms import form_of

    from surepick.certificates import document as certificate

    schema = json.loads(certificate.SCHEMA.read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    made = certificate.document_of
    seen: set[object] = set()

    def checked(facts: Any, **options: Any) -> dict[str, Any]:
        document = made(facts, **options)
        form = form_of(document)
        if form not in seen or os.environ.get(ALL):
            validator.validate(json.loads(json.dumps(document)))
        seen.add(form)
        return document

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "document_of", checked)
        yield
