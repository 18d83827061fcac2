"""Finds the file ``ikigai.toml``, for programs and for the shell.

| `config` of `ActorSystem.open` | what is read |
|---|---|
| a path | that file, which must be there |
| None | the file that ``$IKIGAI_CONFIG`` names, else ``ikigai.toml`` here, else the user's, if any |
| ``""``, or an empty ``$IKIGAI_CONFIG`` | none |
"""

import os
from collections.abc import Mapping
from pathlib import Path

from ikigai_actors.arguments import shown
from ikigai_actors.errors import BadInput
from ikigai_actors.providers.configuration import Configuration, read_configuration
from ikigai_actors.store.location import home, locate
from ikigai_actors.store.sqlite.file import BESIDE
from ikigai_actors.tools.base import HostPaths

FILE = "ikigai.toml"
CONFIG_VARIABLE = "IKIGAI_CONFIG"


def configuration(
    config: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Configuration:
    """Read the file ``ikigai.toml`` that applies.

    Args:
        config: as in the table of this module.
        environ: the environment variables.

    Raises:
        BadInput: the file is missing, or has faults.
    """
    file = configuration_file(config, environ)
    return Configuration() if file is None else read_configuration(file, environ)


def configuration_file(
    config: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Path | None:
    """Find the file ``ikigai.toml`` that applies; None if there is none.

    Raises `BadInput` when ``config`` names no file.
    """
    if config is not None and not isinstance(config, str | os.PathLike):
        raise BadInput(f"Expected config to be a path, or None; got {shown(config)}.")
    named = environ.get(CONFIG_VARIABLE) if config is None else os.fspath(config)
    if named is not None:
        return Path(named).expanduser() if named else None
    return next((path for path in (Path(FILE), home(environ) / FILE) if path.is_file()), None)


def host_paths(database: str | os.PathLike[str] | None, config: str | os.PathLike[str] | None) -> HostPaths:
    """Return the paths of a host's files that tools must not disclose. Arguments as for `ActorSystem.open`."""
    secrets, file, config_file = list[Path](), locate(database).path, configuration_file(config)
    if file is not None:
        secrets += [file, *(file.with_name(file.name + end) for end in BESIDE)]
    return HostPaths(home(), (*secrets, *(() if config_file is None else (config_file.absolute(),))))
