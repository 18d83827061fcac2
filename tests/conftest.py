"""Databases for tests.

A test that takes ``store`` or ``database`` runs three times: in memory, on an SQLite file and on PostgreSQL. The server
is the one that ``IKIGAI_TEST_DATABASE_URL`` names, else one that a wheel carries; when neither works the tests fail,
they never skip.
"""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings

from ikigai_actors import ActorSystem, OfflineProvider
from ikigai_actors.actors.threads import SYSTEM_THREADS, current_threads
from ikigai_actors.providers.base import Provider
from ikigai_actors.store import Store, open_store
from ikigai_actors.store.memory import open_with_tables
from ikigai_actors.store.migrations import ensure_schema
from tests.kit.databases import Admin, SchemaPool, postgres_database, postgres_server
from tests.kit.sessions import OpenSession, Session

pytest_plugins = ["tests.kit.tiers", "tests.kit.workers"]

settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suite")
"""No timing fails a test, and each run tries the same examples; IKIGAI_PROFILE=thorough looks for others."""

NewDatabase = Callable[[], str]
"""Gives the URL of a fresh, empty database."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of our own."""
    parser.addoption("--new-screens", action="store_true", help="keep what the screens look like now as what is right")


def pytest_configure(config: pytest.Config) -> None:
    """Tests interrupt themselves and their programs. A shell has what it starts in the background ignore that."""
    config.addinivalue_line("markers", "empty: its databases have no tables yet")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where programs keep their files: one that is not there yet for each test."""
    folder = tmp_path_factory.mktemp("homes")
    return (folder / str(number) for number in count(1))


@pytest.fixture(autouse=True)
def alone(request: pytest.FixtureRequest, homes: Iterator[Path]) -> Iterator[None]:
    """Nothing of the person who runs a test, and nothing of the test before it. One fixture, since each costs time.

    To make ``tmp_path`` takes a third of an empty test. A program in this process takes signals, and the next test may
    interrupt itself. A simulation that is not ended would run the systems of later tests, on threads of its own.
    """
    uses_it = "tmp_path" in request.fixturenames
    home = request.getfixturevalue("tmp_path") / "home" if uses_it else next(homes)
    before = {name: os.environ.get(name) for name in ("IKIGAI_DATABASE_URL", "IKIGAI_HOME")}
    os.environ.pop("IKIGAI_DATABASE_URL", None)
    os.environ["IKIGAI_HOME"] = str(home)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    assert current_threads() is SYSTEM_THREADS


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage is collected: Python loses an interrupt that comes in a callback of that, and Hypothesis has one."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server whose user may do everything."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_admin(postgres_url: str) -> Iterator[Admin]:
    """A connection beside those of the test, in autocommit: to look at the server and to be rude to it."""
    with psycopg.connect(postgres_url, autocommit=True, application_name="tests") as connection:
        yield connection


@pytest.fixture(scope="session")
def postgres_pool(postgres_url: str, postgres_admin: Admin) -> Iterator[SchemaPool]:
    """PostgreSQL databases with the runtime's tables."""
    with closing(SchemaPool(postgres_url, postgres_admin)) as pool:
        yield pool


@pytest.fixture
def new_postgres(request: pytest.FixtureRequest, postgres_url: str, postgres_admin: Admin) -> Iterator[NewDatabase]:
    """PostgreSQL databases that have the runtime's tables, and nothing in them."""
    empty = request.node.get_closest_marker("empty")
    pool: SchemaPool | None = None if empty else request.getfixturevalue("postgres_pool")
    with ExitStack() as made:
        yield lambda: made.enter_context(pool.lend() if pool else postgres_database(postgres_url, postgres_admin))


@pytest.fixture(scope="session")
def made_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the runtime's tables: to copy it takes a tenth of the time that it takes to make them."""
    path = tmp_path_factory.mktemp("sqlite") / "made.db"
    with closing(open_store(path)) as store:
        ensure_schema(store)
    return path


@pytest.fixture
def new_sqlite(tmp_path: Path, made_sqlite: Path, request: pytest.FixtureRequest) -> NewDatabase:
    """SQLite files that have the runtime's tables, and nothing in them."""
    numbers, empty = count(1), request.node.get_closest_marker("empty")

    def new() -> str:
        path = tmp_path / f"{next(numbers)}.db"
        if not empty:
            path.touch(0o600)
            path.write_bytes(made_sqlite.read_bytes())
        return f"sqlite:///{path}"

    return new


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> NewDatabase:
    """Databases of each kind, without agents."""
    return _factory(request)


@pytest.fixture(params=["sqlite", "postgres"])
def durable_url(request: pytest.FixtureRequest) -> NewDatabase:
    """Databases of each kind, without agents, that can be opened twice."""
    return _factory(request)


def _factory(request: pytest.FixtureRequest) -> NewDatabase:
    if request.param == "memory":
        return lambda: "sqlite:///:memory:"
    factory: NewDatabase = request.getfixturevalue(f"new_{request.param}")
    return factory


@pytest.fixture
def database(database_url: NewDatabase) -> str:
    """The URL of a database without agents."""
    return database_url()


@pytest.fixture
def durable(durable_url: NewDatabase) -> str:
    """The URL of a database without agents that can be opened twice."""
    return durable_url()


@pytest.fixture
def store(database: str, request: pytest.FixtureRequest) -> Iterator[Store]:
    """A fresh database with the schema, open."""
    opened = open_with_tables(database)
    try:
        if request.node.get_closest_marker("empty"):
            ensure_schema(opened)
        yield opened
    finally:
        opened.close()


@pytest.fixture
def session_url() -> NewDatabase:
    """Databases of sessions: in memory, since a session shows what a person reads."""
    return lambda: "sqlite:///:memory:"


@pytest.fixture
def open_session(session_url: NewDatabase, capsys: pytest.CaptureFixture[str]) -> Iterator[OpenSession]:
    """Opens sessions, each with its provider on a database of its own."""
    systems: list[ActorSystem] = []

    def open_one(provider: Provider) -> Session:
        systems.append(ActorSystem.open(session_url(), provider))
        return Session(systems[-1], capsys)

    yield open_one
    for system in systems:
        system.close()


@pytest.fixture
def session(open_session: OpenSession) -> Session:
    """A session whose agents tell what they remember."""
    return open_session(OfflineProvider())
