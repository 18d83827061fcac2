"""Frozen dataclasses with slots that are made as fast as tuples.

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int

    new_point = maker(Point)
    new_point(1, 2) == Point(1, 2)

A frozen dataclass sets each field by a call of ``object.__setattr__``, so it takes four times as long to make as a
named tuple. That matters where millions of rows become records; other code calls the class itself.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, TypeVar

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


def as_dict(record: Any) -> dict[str, Any]:
    """The fields of a record by name. The values are not copied, unlike by `dataclasses.asdict`, which takes longer."""
    return {one.name: getattr(record, one.name) for one in fields(record)}
