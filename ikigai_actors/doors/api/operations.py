"""The operations: each verb of the table that protocols may call, as a path.

    POST /v1/agents/{agent}/kill        calls a verb about an agent
    POST /v1/doc/write                  calls any other verb
    GET  the same                       calls a verb that changes nothing, with arguments in the query

The arguments of an operation are the arguments of the verb's tool, without the agent that the path names. So a new verb
needs no change here.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ikigai_actors.doors.api.problems import ApiProblem
from ikigai_actors.doors.api.requests import check_storable, number_in
from ikigai_actors.verbs import table
from ikigai_actors.verbs.rights import Callers, Right
from ikigai_actors.verbs.tools import tool_of
from ikigai_actors.verbs.verb import Verb, VerbGroup

_AGENT = "agent"


class Operation(NamedTuple):
    """A verb as an operation of the API, at a path."""

    words: str
    """The words of the verb, separated by slashes: ``doc/write``."""
    verb: Verb
    schema: Mapping[str, Any]
    """The JSON schema of the arguments, without the agent that the path names."""
    of_agent: bool
    """Whether the path names an agent."""
    needs: Right
    """The right that a principal needs to change something with the operation."""

    @property
    def path(self) -> str:
        """Return the path of the operation, in OpenAPI's form."""
        return f"/v1/agents/{{agent}}/{self.words}" if self.of_agent else f"/v1/{self.words}"

    @property
    def id(self) -> str:
        """Return the name of the operation in generated clients."""
        return self.words.replace("/", "_").replace("-", "_")

    def parsed(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments in the query of a GET, by their types. Raises `ApiProblem`."""
        return {name: self._parsed(name, text) for name, text in query.items()}

    def _parsed(self, name: str, text: str) -> Any:
        check_storable(text)
        match self.schema["properties"].get(name, {}).get("type"):
            case "integer":
                return number_in(text, name)
            case "number":
                try:
                    return float(text)
                except ValueError:
                    raise ApiProblem("bad-input", f"Expected {name} to be a number; got {text[:80]!r}.") from None
            case "boolean":
                return text in ("", "1", "true")
            case "array":
                return text.split(",")
        return text


@lru_cache(maxsize=1)
def operations() -> Mapping[str, Operation]:
    """Return every operation, by its words. Imports every verb."""
    return {operation.words: operation for operation in _operations()}


def _operations() -> Iterator[Operation]:
    for name in table.names(Callers.PROTOCOLS):
        loaded = table.load(name)
        for verb in loaded.verbs if isinstance(loaded, VerbGroup) else (loaded,):
            if not verb.callers & Callers.PROTOCOLS:
                continue
            schema = dict(tool_of(verb)["input_schema"])
            of_agent = _AGENT in schema["required"]
            if of_agent:
                schema["properties"] = {
                    key: parameter for key, parameter in schema["properties"].items() if key != _AGENT
                }
                schema["required"] = [key for key in schema["required"] if key != _AGENT]
            yield Operation(
                f"{name}/{verb.name}" if isinstance(loaded, VerbGroup) else name,
                verb,
                schema,
                of_agent,
                table.TABLE[name].needs,
            )
