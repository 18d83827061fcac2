"""Frozen dataclasses with slots that are made as fast as tuples.

    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        y: int

    new_point = maker(Point)
    new_point(1, 2) == Point(1, 2)

A frozen dataclass sets each field by a call of ``object.__setattr__``, which takes four times as long as a named tuple
does. Where millions of rows become records that counts; elsewhere the class itself is called.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, field, fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def maker(record: type[T]) -> Callable[..., T]:
    """What makes records of a frozen dataclass with slots, given the fields as the class itself takes them.

    The fields are set on an object of a twin class, which has the same slots and is not frozen; then it becomes one of
    the record's class. ``__post_init__`` of the record is not called.
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
    """The fields of a record by name. The values are its own: `dataclasses.asdict` copies them, and takes longer."""
    return {one.name: getattr(record, one.name) for one in fields(record)}
