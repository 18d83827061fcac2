"""Where the database is, from what a person wrote."""

from pathlib import Path

import platformdirs
import pytest

from ikigai_actors.errors import BadInput, StoreError, StoreUnusable
from ikigai_actors.store import open_store
from ikigai_actors.store.location import Location, locate, user_home


def test_a_path_and_each_kind_of_sqlite_url_name_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path.resolve() / "my file.db"
    for database in ("my file.db", str(file), file, "sqlite:///my%20file.db", f"sqlite:///{file}"):
        assert locate(database) == Location(str(file), path=file)


def test_memory_has_no_file() -> None:
    assert locate(":memory:") == locate("sqlite:///:memory:") == Location(":memory:")


def test_without_a_name_the_environment_decides_and_then_the_default_file(tmp_path: Path) -> None:
    home = tmp_path.resolve() / "a" / "home"
    assert locate(None, {"IKIGAI_DATABASE_URL": ":memory:"}).shown == ":memory:"
    assert locate(None, {"IKIGAI_DATABASE_URL": "", "IKIGAI_HOME": str(home)}).path == home / "ikigai.db"
    assert locate(None, {}, lambda: home).path == home / "ikigai.db"
    assert home.stat().st_mode & 0o777 == 0o700


def test_what_is_the_users_lies_where_the_operating_system_wants_it() -> None:
    assert user_home() == platformdirs.user_data_path("ikigai", appauthor=False)


def test_a_default_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnusable, match="IKIGAI_HOME"):
        locate(None, {"IKIGAI_HOME": str(tmp_path / "file" / "home")})


@pytest.mark.parametrize("url", ["mysql://bob:secret@host/db", "postgresql+psycopg://bob:secret@host/db", "http://x"])
def test_an_unknown_scheme_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(BadInput, match="postgresql://") as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "database", ["", " ", "sqlite://", "sqlite:///", "sqlite://a.db", "sqlite:///a.db?mode=ro", "a\0b"]
)
def test_what_names_no_place_is_refused(database: str) -> None:
    with pytest.raises(BadInput):
        locate(database)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:secret@127.0.0.1:1/db",
        "postgresql://bob:se%63ret%zz@127.0.0.1:1/db",
        "postgres://bob@127.0.0.1:1/db?password=secret&connect_timeout=3",
        "postgresql://127.0.0.1:1/db?user=bob&sslpassword=secret",
        "postgresql://bob:sec/secret@127.0.0.1:1/db",
        "postgresql://bob:sec@secret@127.0.0.1:1/db",
        "postgresql://bob:sec?secret@127.0.0.1:1/db",
        "postgresql://bob:secret@127.0.0.1:port/db",
        "postgresql://bob:secret@127.0.0.1:1/db?no_such_setting=1",
        "postgresql:///bob:secret@127.0.0.1:1/db",
        "postgresql//bob:secret@127.0.0.1:1/db",
        "postgresql:/bob:secret@127.0.0.1:1/db",
        "postgresql ://bob:secret@127.0.0.1:1/db",
        "postgresql;//bob:secret@127.0.0.1:1/db",
        "PostgreSQL://bob:secret@127.0.0.1:1/db",
        "postgres//bob:se/cret:secret@127.0.0.1:1/db",
        "sqlite://bob:secret@127.0.0.1:1/db",
        "//bob:secret@127.0.0.1:1/db",
        "bob:secret@127.0.0.1:1/db",
        "127.0.0.1/db?user=bob&password=secret",
        "host=127.0.0.1 port=1 password=secret",
    ],
)
def test_no_error_about_a_postgresql_url_tells_its_password(url: str) -> None:
    with pytest.raises((BadInput, StoreError)) as caught:
        open_store(url)
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in repr(error)
        assert "se%63ret" not in repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_a_file_may_have_any_name_behind_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("postgresql/a.db", "sqlite.db", "a:b.db", "a@b.db", "./a:b@c.db", "./postgres:1.db"):
        assert locate(name).path == tmp_path.resolve() / name


def test_a_location_is_shown_without_its_password() -> None:
    location = locate("postgresql://bob:secret@host/name?sslpassword=secret")
    assert location.url is not None
    assert "secret" in location.url
    assert repr(location) == "Location('postgresql://bob:***@host/name?sslpassword=***')"
