"""The named statements of ``queries.sql``, translated for each database.

SQL is written once, in what SQLite and PostgreSQL both understand, with the few differences removed here:

    written            SQLite                                    PostgreSQL
    :name              :name                                     %(name)s
    = ANY(:names)      IN (SELECT value FROM json_each(:names))  = ANY(%(names)s)
    now_ms()           a function that the adapter registers     (extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FOR NO KEY UPDATE  dropped: SQLite has one writer            unchanged
    FOR KEY SHARE      likewise                                  unchanged
    %                  %                                         %%
    {name}             the columns of this name                  the same
    row_key            rowid: the fastest key of a row           uuid, of agents
    json_agg(x)        json_group_array(x)                       unchanged
    json_build_array() json_array()                              unchanged
    about_rows(mail)   the table's largest rowid                 the planner's estimate
    uuid = ANY(:uuids) rowid IN (SELECT rowid FROM agents WHERE  = ANY(%(uuids)s)
                       uuid IN …), of an UPDATE of agents

By the last translation SQLite changes many rows in their order in the file, which takes half the time of the order of
uuids.

Comments are left out; string literals and ``::casts`` are left alone. Each translation is made once.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_NAME = re.compile(r"^-- (name|columns):[ \t]*(\w+)[ \t]*$", re.MULTILINE)
_COLUMNS = re.compile(r"\{(\w+)\}")

_TOKEN = re.compile(
    r"""(?P<text>   '(?:[^']|'')*' | "(?:[^"]|"")*" )   # a literal or a quoted identifier
      | (?P<comment> --[^\n]* | /\*.*?\*/ )
      | (?P<cast>   :: )
      | (?P<any>    =\s*ANY\s*\(\s*:(?P<list>[a-zA-Z_]\w*)\s*\) )
      | (?P<name>   :(?P<parameter>[a-zA-Z_]\w*) )
      | (?P<now>    \bnow_ms\(\) )
      | (?P<key>    \brow_key\b )
      | (?P<list_of> \bjson_agg\b )
      | (?P<array>  \bjson_build_array\b )
      | (?P<about>  \babout_rows\((?P<table>\w+)\) )
      | (?P<lock>   \s*\bFOR\s+(?:NO\s+KEY\s+UPDATE|KEY\s+SHARE)\b (?:\s+OF\s+\w+)? )
      | (?P<end>    ; )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)

_MANY = re.compile(r"^(UPDATE agents\b.*\bWHERE )(uuid = ANY\(:\w+\))$", re.DOTALL)

_GIVES_ROWS = re.compile(r"^(SELECT|WITH)\b|\bRETURNING\b")

_WALKS_DOWN = re.compile(r"^WITH RECURSIVE\b.*\ba\.supervisor_uuid(?: \|\| '')? = \w+\.uuid\b", re.DOTALL)

_POSTGRES_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

_POSTGRES_ABOUT = """(SELECT CAST(GREATEST(c.reltuples, 0) / GREATEST(c.relpages, 1)
               * (pg_relation_size(c.oid) / current_setting('block_size')::bigint) AS BIGINT)
          FROM pg_class c WHERE c.oid = '{}'::regclass)"""
"""The number of rows as the planner estimates it: the rows of a page at the last analysis, times the present number of
pages."""


class Statement(NamedTuple):
    """A statement, translated for one of the databases."""

    sql: str
    lists: frozenset[str]
    """The parameters that are lists."""
    gives_rows: bool
    """Whether the statement returns rows, or may."""
    walks_down: bool
    """Whether the statement walks down the tree of agents, level by level."""


def parse(text: str) -> dict[str, str]:
    """Cut a file of named statements into a dict from name to statement; put named lists of columns in their places.

    Raises `ValueError` when a name comes twice, or without a statement, and `KeyError` for columns that are not named
    before.
    """
    _, *parts = _NAME.split(text)
    columns: dict[str, str] = {}
    statements: dict[str, str] = {}
    for kind, name, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        known = columns if kind == "columns" else statements
        statement = "\n".join(line for line in body.splitlines() if not line.lstrip().startswith("--")).strip()
        if name in known or not statement:
            raise ValueError(f"queries.sql: {name!r} {'comes twice' if name in known else 'has no statement'}.")
        known[name] = _COLUMNS.sub(lambda match: columns[match[1]], statement)
    return statements


@cache
def queries() -> Mapping[str, str]:
    """Return every statement of ``queries.sql`` by name, untranslated. Read once."""
    return parse(Path(__file__).with_name("queries.sql").read_text(encoding="utf-8"))


def query(name: str) -> str:
    """Return the untranslated statement of this name; raises `KeyError`, naming it, if there is none."""
    try:
        return queries()[name]
    except KeyError:
        raise KeyError(f"queries.sql has no statement named {name!r}") from None


@cache
def for_sqlite(name: str) -> Statement:
    """Return the named statement for sqlite3; raises `KeyError` if there is none."""
    return to_sqlite(query(name))


@cache
def for_postgres(name: str) -> Statement:
    """Return the named statement for psycopg; raises `KeyError` if there is none."""
    return to_postgres(query(name))


def to_sqlite(sql: str) -> Statement:
    """Translate a statement for sqlite3, which takes list parameters as JSON."""
    sql = _MANY.sub(r"\1rowid IN (SELECT rowid FROM agents WHERE \2)", sql)

    def token(match: re.Match[str]) -> str:
        if match["any"]:
            return f"IN (SELECT value FROM json_each(:{match['list']}))"
        if match["key"]:
            return "rowid"
        if match["list_of"]:
            return "json_group_array"
        if match["array"]:
            return "json_array"
        if match["about"]:
            return f"(SELECT COALESCE(MAX(rowid), 0) FROM {match['table']})"
        return "" if match["lock"] else match[0]

    return _translate(sql, token, str)


def to_postgres(sql: str) -> Statement:
    """Translate a statement for psycopg. Always pass parameters, even an empty dict: else ``%%`` stays two signs."""

    def token(match: re.Match[str]) -> str:
        if match["any"]:
            return f"= ANY(%({match['list']})s)"
        if match["name"]:
            return f"%({match['parameter']})s"
        if match["key"]:
            return "uuid"
        if match["about"]:
            return _POSTGRES_ABOUT.format(match["table"])
        return _POSTGRES_NOW if match["now"] else _double_percent(match[0])

    return _translate(sql, token, _double_percent)


def as_arrays(statement: Statement, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with lists converted to PostgreSQL array literals: psycopg's own conversion is slower."""
    lists = {name: as_array(parameters[name]) for name in statement.lists if parameters.get(name) is not None}
    return {**parameters, **lists} if lists else parameters


def as_array(values: Iterable[str | int | bytes | None]) -> str:
    """Return the values of one column as a PostgreSQL array literal."""
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: str | int | bytes | None) -> str:
    match value:
        case None:
            return "NULL"
        case int():
            return str(value)
        case bytes():
            return f'"\\\\x{value.hex()}"'
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _double_percent(text: str) -> str:
    return text.replace("%", "%%")


def _translate(sql: str, token: Callable[[re.Match[str]], str], between: Callable[[str], str]) -> Statement:
    """Translate a statement: ``token`` converts each token, ``between`` the text between tokens.

    Comments are dropped.
    """
    parts, position, lists = [], 0, set()
    for match in _TOKEN.finditer(sql):
        parts.append(between(sql[position : match.start()]))
        parts.append("" if match["comment"] else token(match))
        position = match.end()
        if match["list"]:
            lists.add(match["list"])
    parts.append(between(sql[position:]))
    translated = "".join(parts).strip()
    gives_rows, walks_down = (pattern.search(translated) is not None for pattern in (_GIVES_ROWS, _WALKS_DOWN))
    return Statement(translated, frozenset(lists), gives_rows, walks_down)


@cache
def split(script: str) -> tuple[str, ...]:
    """Return the statements of a script, without comments. A semicolon in a comment or a literal ends no statement."""
    statements, parts, position = [], [], 0
    for match in _TOKEN.finditer(script):
        parts.append(script[position : match.start()])
        position = match.end()
        if match["end"]:
            statements.append("".join(parts).strip())
            parts = []
        elif not match["comment"]:
            parts.append(match[0])
    statements.append("".join([*parts, script[position:]]).strip())
    return tuple(statement for statement in statements if statement)
