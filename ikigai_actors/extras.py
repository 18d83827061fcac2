"""The extras of the package: a block that imports what an extra brings, and says how to install it where it is missing.

with NeedsExtra("mcp", "ikigai mcp"):
    from mcp.server import Server
"""

from types import TracebackType

from ikigai_actors.errors import BadInput


class NeedsExtra:
    """Turns the error of a missing package into a `BadInput` that names the extra."""

    def __init__(self, extra: str, user: str) -> None:
        """Name the extra, and the part that needs it."""
        self._extra, self._user = extra, user

    def __enter__(self) -> None:
        """Import within the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ImportError):
            broken = "" if isinstance(error, ModuleNotFoundError) else f" ({error})"
            raise BadInput(
                f"{self._user} needs the extra {self._extra}: pip install 'ikigai-actors[{self._extra}]'{broken}"
            ) from error
