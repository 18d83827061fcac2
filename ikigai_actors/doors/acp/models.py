"""Messages of ACP by the models of its package: parameters are checked, and models become objects of JSON."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ikigai_actors.errors import BadInput
from ikigai_actors.text import unfit_fields

AcpModel = TypeVar("AcpModel", bound=BaseModel)


def checked(model: type[AcpModel], params: Mapping[str, Any]) -> AcpModel:
    """The parameters of a method as its model. Raises `BadInput`, with each field that does not fit."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise BadInput(f"Expected a {model.__name__}. {unfit_fields(error)}") from error


def dumped(model: BaseModel) -> dict[str, Any]:
    """The object of JSON that a model is, with the fields that were given."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
