"""Where the file ``ikigai.toml`` is, for programs and for the shell.

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
from ikigai_actors.store.location import user_home

FILE = "ikigai.toml"
CONFIG_VARIABLE = "IKIGAI_CONFIG"


def configuration(
    config: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ
) -> Configuration:
    """Read the file that counts.

    Args:
        config: as in this module's table.
        environ: the variables of the environment.

    Raises:
        BadInput: the file is missing, or no such file.
    """
    if config is not None and not isinstance(config, str | os.PathLike):
        raise BadInput(f"Expected config to be a path, or None; got {shown(config)}.")
    named = environ.get(CONFIG_VARIABLE) if config is None else os.fspath(config)
    if named is not None:
        return read_configuration(Path(named).expanduser(), environ) if named else Configuration()
    home = Path(environ["IKIGAI_HOME"]).expanduser() if environ.get("IKIGAI_HOME") else user_home()
    found = next((path for path in (Path(FILE), home / FILE) if path.is_file()), None)
    return Configuration() if found is None else read_configuration(found, environ)
