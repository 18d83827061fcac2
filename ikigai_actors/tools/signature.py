"""Signatures: the schema of a function for a model, and the check of arguments against it.

pydantic makes the schema and checks, docstring_parser reads the docstring. Importing this module imports both, which
takes a quarter of a second.
"""

import inspect
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import docstring_parser
from pydantic import TypeAdapter, ValidationError, validate_call

from ikigai_actors.errors import BadInput
from ikigai_actors.text import unfit_fields
from ikigai_actors.tools.plain_schema import Unsuitable, plain


class WrongArguments(Exception):
    """Raised for arguments that do not fit a signature. The text lists each error."""


class Signature:
    """The signature of a function, from which the schema for a model is made."""

    __slots__ = ("_checked", "_function", "description", "schema")

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read the signature of a function.

        Args:
            function: a function or a method, each of whose parameters has a name.

        Raises:
            BadInput: no schema can be made of the signature.
        """
        _check_parameters(function)
        documented = docstring_parser.parse(function.__doc__ or "")
        self._function = function
        try:
            checked: Any = validate_call(function)
            schema = TypeAdapter(checked).json_schema()
        except Exception as error:  # pydantic's, or of an annotation that does not resolve
            raise BadInput(f"{function.__name__} cannot be a tool: no schema can be made of it. {error}") from error
        self._checked = checked
        self.description = "\n\n".join(filter(None, (documented.short_description, documented.long_description)))
        """The purpose: the docstring without its sections."""
        properties = schema.get("properties", {})
        for parameter in documented.params:
            if parameter.arg_name in properties and parameter.description:
                properties[parameter.arg_name].setdefault("description", parameter.description)
        self.schema: Mapping[str, Any] = _plain(function.__name__, schema)
        """The parameters, as a JSON schema. Annotations describe them, or the docstring."""

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call a plain function.

        Raises:
            WrongArguments: the arguments do not fit; any other exception is the function's.
        """
        try:
            return self._checked(**arguments)
        except ValidationError as error:
            self._reject(error)
            raise

    async def call_async(self, arguments: Mapping[str, Any]) -> Any:
        """Call an ``async`` function and await it; raises the errors of `call`."""
        try:
            return await self._checked(**arguments)
        except ValidationError as error:
            self._reject(error)
            raise

    def _reject(self, error: ValidationError) -> None:
        """Raise `WrongArguments` for an error of the arguments; return if the function itself has raised the error."""
        code = inspect.unwrap(self._function).__code__
        if any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__)):
            return
        raise WrongArguments(unfit_fields(error)) from error


def _plain(function: str, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema in a form that every service takes. Raises `BadInput` if the function must be changed first."""
    try:
        made = plain(schema, checked=True)
    except Unsuitable as error:
        raise BadInput(f"{function} cannot be a tool: {error}.") from error
    if made.names:
        named = ", ".join(map(repr, made.names.values()))
        raise BadInput(
            f"{function} cannot be a tool: services of models take parameters whose names are 1 to 64 of a-z A-Z 0-9 "
            f"_ . -, got {named}. Rename, or annotate with Annotated[..., Field(alias='name')]."
        )
    return made.schema


def _check_parameters(function: Callable[..., Any]) -> None:
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise BadInput(f"Expected a function as a tool, got {function!r}. Write one that calls it.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BadInput(
            f"{function.__name__} cannot be a tool: it yields, and a model reads one result. Return a list of what it "
            "yields."
        )
    kinds = inspect.Parameter
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (kinds.POSITIONAL_ONLY, kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD):
            raise BadInput(
                f"{function.__name__} cannot be a tool: {parameter} has no name that a model could give. "
                "Use named parameters."
            )
