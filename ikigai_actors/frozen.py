"""Frozen dataclasses with slots that are made, and changed, as fast as tuples.

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int

    new_point = maker(Point)
    new_point(1, 2) == Point(1, 2)

A frozen dataclass sets each field by a call of ``object.__setattr__``, so it takes four times as long to make as a
named tuple. That matters where millions of rows become records; other code calls the class itself.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

NO_DATA: Mapping[str, Any] = {}
"""An empty mapping that nobody changes."""

if TYPE_CHECKING:
    from dataclasses import replace as replace  # the type checker knows which arguments it takes
else:

    def replace(record: Any, /, **changes: Any) -> Any:
        """A record with other values in some fields, as `dataclasses.replace` makes it, in a third of the time."""
        kind = type(record)
        if (copy := _copiers.get(kind)) is None:
            copy = _copiers[kind] = _copier(kind)
        return copy(record, **changes)


T = TypeVar("T")


def maker(record: type[T]) -> Callable[..., T]:
    """Make a fast constructor for a dataclass.

    The constructor sets the fields on an object of a twin class, which has the same slots and is not frozen, and then
    gives that object the record's class. It does not call ``__post_init__`` of the record.

    Args:
        record: a frozen dataclass with slots.

    Returns:
        A function that takes the same arguments as the class itself, and returns a record.
    """
    known: tuple[Field[Any], ...] = fields(record)  # type: ignore[arg-type]  # any dataclass; its protocol is not public

    def become_the_record(made: Any) -> None:
        made.__class__ = record

    return make_dataclass(
        f"_Loose{record.__name__}",
        [(one.name, Any, _default(one)) for one in known],
        namespace={"__post_init__": become_the_record},
        eq=False,
        repr=False,
        slots=True,
    )


def _default(of: Field[Any]) -> Any:
    if of.default_factory is not MISSING:
        return field(default_factory=of.default_factory)
    return field() if of.default is MISSING else field(default=of.default)


_copiers: dict[type, Callable[..., Any]] = {}


def _copier(record: type) -> Callable[..., Any]:
    """The function that `replace` calls for a record of this class; its code names each field once."""
    if hasattr(record, "__post_init__") or not all(one.init for one in fields(record)):
        return dataclasses.replace
    names = [one.name for one in fields(record)]
    taken = ", ".join(f"{name}=_same" for name in names)
    given = ", ".join(f"{name}=_record.{name} if {name} is _same else {name}" for name in names)
    code = f"lambda _record, /, *, {taken}: _new({given})" if names else "lambda _record, /: _new()"
    alone = record.__bases__ == (object,) and "__slots__" in vars(
        record
    )  # else its objects are laid out in another way
    needed = any(one.kw_only and one.default is one.default_factory is MISSING for one in fields(record))
    new = maker(record) if alone and not needed else record
    made: Callable[..., Any] = eval(code, {"_same": object(), "_new": new})  # it holds names of fields alone
    return made


def as_dict(record: Any) -> dict[str, Any]:
    """The fields of a record by name. The values are not copied, unlike by `dataclasses.asdict`, which takes longer."""
    return {one.name: getattr(record, one.name) for one in fields(record)}
