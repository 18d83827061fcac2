"""Finds the place of a database from the path or URL that a person wrote.

    None                            $IKIGAI_DATABASE_URL, else the default file
    notes.db, ~/notes/team.db       a file
    sqlite:///notes.db              a file, relative to the working directory
    sqlite:////var/lib/notes.db     a file
    :memory:, sqlite:///:memory:    a database in memory, which ends when its store is closed
    postgresql://user@host/name     a PostgreSQL server (also postgres://)

The default file is ``ikigai.db`` in ``$IKIGAI_HOME``, else in the user's data directory. No password is ever shown.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from ikigai_actors.errors import BadInput, StoreUnusable
from ikigai_actors.text import check_text

MEMORY = ":memory:"
KNOWN = "a path, sqlite:///path, sqlite:///:memory: or postgresql://user@host/name"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_CONNINFO = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service)\s*=")
_SECRET_SETTING = re.compile(r"(?<=[?&])(password|sslpassword)=([^&]*)", re.IGNORECASE)
_SECRET_USERINFO = re.compile(r"(://[^:@]*):(.+)@", re.DOTALL)
_NEARLY_URL = re.compile(
    r"\s*(postgres(ql)?|sqlite)\s*(:|//)"  # the colon or the slashes are missing
    r"|([^/@]*//+)?[^/@]+:[^@]*@"  # a user and a password without a scheme
    r"|.*[?&](ssl)?password=",
    re.IGNORECASE | re.DOTALL,
)


class Location(NamedTuple):
    """The place of a database: either ``path`` or ``url`` is set; neither for a database in memory."""

    shown: str
    """For people: a path, ``:memory:``, or the URL without its password."""
    path: Path | None = None
    """The SQLite file, absolute, links resolved."""
    url: str | None = None
    """The PostgreSQL URL, with its password."""

    def __repr__(self) -> str:
        return f"Location({self.shown!r})"


def user_home() -> Path:
    """Return the user's data directory for ikigai, as is usual on this operating system."""
    import platformdirs  # only needed when nothing says where the database is

    return Path(platformdirs.user_data_dir("ikigai", appauthor=False))


def locate(
    database: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] = os.environ,
    default_home: Callable[[], Path] = user_home,
) -> Location:
    """Return the place of the database that an argument or the environment names.

    Nothing on the disk is changed, except that the directory of the default file is made.

    Args:
        database: as in this module's table.
        environ: holds ``IKIGAI_DATABASE_URL`` and ``IKIGAI_HOME``, if they are set.
        default_home: gives the directory of the default file when ``IKIGAI_HOME`` is not set.

    Raises:
        BadInput: ``database`` names no place.
        StoreUnusable: the directory of the default file cannot be made.
    """
    if database is None:
        database = environ.get("IKIGAI_DATABASE_URL") or None
    if database is None:
        return _file(_made(home(environ, default_home)) / "ikigai.db")
    if not isinstance(database, str):
        if not isinstance(database, os.PathLike):
            raise BadInput(f"Expected {KNOWN}, got {database!r}.")
        return _file(Path(database))
    scheme = _SCHEME.match(database)
    if scheme is None:
        return _plain(database)
    if scheme[1] == "sqlite":
        return _sqlite(database)
    if scheme[1] in ("postgresql", "postgres"):
        return _postgres(database)
    raise BadInput(f"Expected {KNOWN}, got {mask(database)!r}: there is no {scheme[1]!r}.")


def home(environ: Mapping[str, str] = os.environ, default_home: Callable[[], Path] = user_home) -> Path:
    """Return the directory of the default database file and of the user's other files. It may be missing."""
    return Path(environ.get("IKIGAI_HOME") or default_home()).expanduser()


def mask(url: str) -> str:
    """Return the URL with ``***`` in place of its password, which may be before the host or in the query string."""
    return _SECRET_SETTING.sub(r"\1=***", _SECRET_USERINFO.sub(r"\1:***@", url))


def secrets(url: str) -> frozenset[str]:
    """Return every password in the URL, both as written and decoded."""
    matches = [match[2] for match in (*_SECRET_USERINFO.finditer(url), *_SECRET_SETTING.finditer(url)) if match[2]]
    return frozenset([*matches, *map(unquote, matches)])


def _plain(database: str) -> Location:
    if database == MEMORY:
        return Location(MEMORY)
    if not database.strip() or "\0" in database:
        raise BadInput(f"Expected {KNOWN}, got {database!r}.")
    if _NEARLY_URL.match(database):  # not shown: it may hold a password
        raise BadInput(
            f"Expected {KNOWN}; what came looks like a URL, but does not begin with a scheme and ://. It is not shown, "
            "since it may hold a password. If it is a file, write ./ before its name."
        )
    if _CONNINFO.match(database):
        raise BadInput("Settings like 'host=… dbname=…' are not understood; write postgresql://user@host/name.")
    return _file(Path(database))


def _sqlite(url: str) -> Location:
    place = unquote(url.removeprefix("sqlite://"))
    if not place.startswith("/") or place == "/" or "?" in url:
        raise BadInput(f"Expected sqlite:///path, sqlite:////absolute/path or sqlite:///:memory:, got {mask(url)!r}.")
    return _plain(place[1:])


def _postgres(url: str) -> Location:
    """Refuse a URL that PostgreSQL's client would read differently, and so show a password by accident."""
    check_text(url, "database's URL")
    try:
        unquote(url, errors="strict")
    except UnicodeDecodeError:
        raise BadInput(f"In {mask(url)!r}, the bytes written with % are not UTF-8. Write each byte as %XX.") from None
    user, at, rest = url.partition("://")[2].partition("@")
    if "@" in rest or (at and re.search("[/?]", user)):
        raise BadInput(f"In {mask(url)!r}, write @ as %40, / as %2F and ? as %3F in names and passwords.")
    return Location(mask(url), url=url)


def _file(path: Path) -> Location:
    try:
        path = path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a user without home; no file's name
        raise BadInput(f"Expected {KNOWN}, got {str(path)!r}: {error}.") from error
    return Location(str(path), path=path)


def _made(home: Path) -> Path:
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(
            f"Cannot make the directory {home}: {error.strerror}. Set IKIGAI_HOME to another."
        ) from error
    return home
