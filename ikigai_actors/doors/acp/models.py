"""Messages of ACP by the models of its package: parameters are checked, and models become objects of JSON."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ikigai_actors.errors import BadInput
from ikigai_actors.text import unfit_fields

AcpModel = TypeVar("AcpModel", bound=BaseModel)


def checked(model: type[AcpModel], params: Mapping[str, Any]) -> AcpModel:
    """Return the parameters of a method as its model. Raises `BadInput`, which names each wrong field."""
    try:
        return model.model_validate(params)
    except ValidationError as error:
        raise BadInput(f"Expected a {model.__name__}. {unfit_fields(error)}") from error


def dumped(model: BaseModel) -> dict[str, Any]:
    """Return a model as a JSON object, with only the fields that are set."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
