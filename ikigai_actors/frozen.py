"""Frozen dataclasses with slots that are made, and changed, as fast as tuples.

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int

    new_point = maker(Point)
    new_point(1, 2) == Point(1, 2)

A frozen dataclass sets each field by a call of ``object.__setattr__``, so it takes four times as long to make as a
named tuple. The difference matters where millions of rows become records; other code calls the class itself.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import TYPE_CHECKING, Any, TypeVar

NO_DATA: Mapping[str, Any] = {}
"""An empty mapping, shared by all records. Nobody changes it."""

if TYPE_CHECKING:
    from dataclasses import replace as replace  # the type checker knows which arguments it takes
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """Return a copy of a record with some fields changed, as `dataclasses.replace`, in a third of the time."""
        kind = type(record)
        if (copy := _copiers.get(kind)) is None:
            copy = _copiers[kind] = _copier(kind)
        return copy(record, **changes)


T = TypeVar("T")

_MISSING = object()
"""A field that a caller does not give."""


def maker(record: type[T]) -> Callable[..., T]:
    """Make a fast constructor for a dataclass.

    The constructor sets the fields on an object of a twin class, which has the same slots and is not frozen, and then
    gives that object the record's class. The constructor does not call ``__post_init__`` of the record.

    Args:
        record: a frozen dataclass with slots, and without a base.

    Returns:
        A function that takes the same arguments as the class itself, and returns a record.
    """
    known: tuple[Field[Any], ...] = fields(record)  # type: ignore[arg-type]  # any dataclass; its protocol is not public
    by_place, by_name = [field for field in known if not field.kw_only], [field for field in known if field.kw_only]
    taken = ", ".join([*map(_parameter, by_place), *(["*"] if by_name else []), *map(_parameter, by_name)])
    made = {field.name: field.name for field in known}
    made |= {
        field.name: f"_new_{field.name}() if {field.name} is _missing else {field.name}"
        for field in known
        if _is_made(field)
    }
    defaults = {f"_default_{field.name}": field.default for field in known}
    return _function(record, taken, made, defaults | {f"_new_{field.name}": field.default_factory for field in known})


def _is_made(of: Field[Any]) -> bool:
    return of.default_factory is not MISSING


def _parameter(of: Field[Any]) -> str:
    if _is_made(of):
        return f"{of.name}=_missing"
    return of.name if of.default is MISSING else f"{of.name}=_default_{of.name}"


_copiers: dict[type, Callable[..., Any]] = {}


def _copier(record: type) -> Callable[..., Any]:
    """Return the function that `replace` calls for a record of this class.

    The code of the function names each field once.
    """
    alone = record.__bases__ == (object,) and "__slots__" in vars(record)  # else its objects have another layout
    if not alone or hasattr(record, "__post_init__") or not all(field.init for field in fields(record)):
        return dataclasses.replace
    names = [field.name for field in fields(record)]
    taken = ", ".join(["_record", "/", *(["*"] if names else []), *(f"{name}=_missing" for name in names)])
    return _function(record, taken, {name: f"_record.{name} if {name} is _missing else {name}" for name in names}, {})


def _function(record: type, parameters: str, values: Mapping[str, str], names: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function, generated from text, that makes a record faster than the dataclass's own ``__init__``.

    Args:
        record: the dataclass.
        parameters: the text of the function's parameters.
        values: the text of the value of each field.
        names: the objects to which these texts refer.
    """
    lines = [f"def make({parameters}):", " _made = _new(_twin)"]
    lines += [f" _made.{name} = {value}" for name, value in values.items()]
    lines += [" _made.__class__ = _class", " return _made"]
    twin = type(f"_Loose{record.__name__}", (), {"__slots__": vars(record)["__slots__"]})
    known = {**names, "_new": object.__new__, "_twin": twin, "_class": record, "_missing": _MISSING}
    exec("\n".join(lines), known)  # it holds names of fields alone
    made: Callable[..., Any] = known["make"]
    return made


def as_dict(record: Any) -> dict[str, Any]:
    """Return the fields of a record, a dataclass or a named tuple, by name.

    The values are not copied, unlike by `dataclasses.asdict`, which takes longer.
    """
    if isinstance(record, tuple):
        named: dict[str, Any] = record._asdict()  # type: ignore[attr-defined]
        return named
    return {field.name: getattr(record, field.name) for field in fields(record)}
