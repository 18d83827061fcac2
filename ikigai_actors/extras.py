"""The extras of the package. Code imports an extra's packages in a block that explains how to install a missing extra.

with NeedsExtra("mcp", "ikigai mcp"):
    from mcp.server import Server
"""

from types import TracebackType

from ikigai_actors.errors import BadInput


class NeedsExtra:
    """Turns the `ImportError` of a missing package into a `BadInput` that names the extra."""

    def __init__(self, extra: str, user: str) -> None:
        self._extra, self._user = extra, user

    def __enter__(self) -> None:
        """Begin the block that imports the packages of the extra."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ImportError):
            broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
            raise BadInput(
                f"{self._user} needs the extra {self._extra}: pip install 'ikigai-actors[{self._extra}]'{broken}"
            ) from error
