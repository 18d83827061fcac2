"""Decides which files and networks a program in the fence may reach. Pure.

The policy is a list of paths that may be read or written, because Landlock has no exceptions from a permission. So
secrets are kept out of the list, by `check_reach` and `without`.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath

from ikigai_actors.arguments import check_choice, shown
from ikigai_actors.errors import BadInput
from ikigai_actors.tools.trees.tree import GIT_FILE, WORKTREE_AT

FENCE_MODES = ("auto", "required", "landlock", "none")

PROTECTED = (
    ".git/hooks",
    ".git/config",
    ".git/config.worktree",
    ".git/info/attributes",
    ".gitmodules",
    ".envrc",
    ".vscode",
    ".idea",
    ".mcp.json",
    ".claude",
    ".husky",
)
"""Names in a directory of files that a person's programs execute without asking. They are read-only if they exist."""

SECRETS = (
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".vault-token",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/op",
    ".local/share/keyrings",
)
"""Names in a person's home of files and directories with keys and passwords."""

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/gnu/store")
"""The directories of the system's programs."""

OF_ETC = (
    "alternatives",
    "bash.bashrc",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "debian_version",
    "default/locale",
    "fonts",
    "gai.conf",
    "gitconfig",
    "group",
    "host.conf",
    "hostname",
    "hosts",
    "inputrc",
    "java",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "ld.so.preload",
    "locale.alias",
    "locale.conf",
    "localtime",
    "magic",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "perl",
    "pki/ca-trust",
    "pki/tls/certs",
    "profile",
    "protocols",
    "python3",
    "resolv.conf",
    "services",
    "shells",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "terminfo",
    "timezone",
)
"""Names in ``/etc`` that programs may read: resolver, users, certificates, linker, locale."""

TOOLCHAINS = {
    ".asdf": "ASDF_DATA_DIR",
    ".bun": "",
    ".cargo": "",
    ".deno": "",
    ".nodenv": "NODENV_ROOT",
    ".nvm": "NVM_DIR",
    ".pyenv": "PYENV_ROOT",
    ".rbenv": "RBENV_ROOT",
    ".rustup": "RUSTUP_HOME",
    ".sdkman": "SDKMAN_DIR",
    ".volta": "VOLTA_HOME",
}
"""Names in a person's home of compilers and interpreters, with the environment variable that names each; empty for
none. A directory may be read completely if ``PATH`` leads into it.
"""

SHARED_WITH_OTHERS = ("/tmp", "/run", "/dev", "/proc", "/sys")
"""Directories with sockets, devices and files of other programs. A path that contains one of them must not be
listed.
"""

LARGEST_REACH = 64 * 1024
"""The most bytes of a policy."""

NETWORKS = 'Expected network to be "all", "none", a list of ports such as [443, 5432], or "proxy:PORT"'


def is_beneath(path: str, above: str) -> bool:
    """Return whether a path is equal to another one or lies beneath it."""
    return path == above or path.startswith(above.rstrip("/") + "/")


@dataclass(frozen=True, slots=True)
class Network:
    """The network access of a program."""

    kind: str = "all"
    """The kind of access: ``all``, ``none``, ``ports`` or ``proxy``."""
    ports: tuple[int, ...] = ()
    """For ``ports``, the ports to which it may connect by TCP; for ``proxy``, the port of the proxy on this machine."""

    def __str__(self) -> str:
        match self.kind:
            case "ports":
                return "TCP to ports " + ", ".join(map(str, self.ports))
            case "proxy":
                return f"a proxy at 127.0.0.1:{self.ports[0]}"
        return self.kind


def parse_network(value: object) -> Network:
    """Parse the argument ``network``: ``all``, ``none``, ports, or ``proxy:PORT``. Raises `BadInput`."""
    if isinstance(value, str) and value in ("all", "none"):
        return Network(value)
    if isinstance(value, str) and value.startswith("proxy:"):
        return Network("proxy", (_port(value.removeprefix("proxy:"), value),))
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | Mapping):
        raise BadInput(f"{NETWORKS}; got {shown(value)}.")
    ports = tuple(dict.fromkeys(_port(each, value) for each in texts))
    if not ports:
        raise BadInput(f'{NETWORKS}; got {shown(value)}. For no network say "none".')
    return Network("ports", ports)


def _port(value: object, of: object) -> int:
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 65535:
        raise BadInput(f"{NETWORKS}, each port from 1 to 65535; got {shown(of)}.")
    return value


@dataclass(frozen=True, slots=True)
class Fence:
    """The rights that a person gives the programs of agents."""

    write: Sequence[str | os.PathLike[str]] = ()
    """Further directories and files that programs may write, besides the workspace."""
    read: Sequence[str | os.PathLike[str]] = ()
    """Further directories and files that programs may read, besides the system's programs."""
    network: str | Sequence[int] = "all"
    """The network that programs may reach: ``all``, ``none``, a list of ports, or ``proxy:PORT``."""
    protect: Sequence[str] = PROTECTED
    """Names beneath the workspace and the paths of ``write`` that programs must not change."""
    mode: str = "auto"
    """``auto``: the strongest fence that the machine has; ``required``: the full fence, or an error; ``landlock``: at
    least Landlock; ``none``: no fence.
    """

    def __post_init__(self) -> None:
        check_choice(self.mode, "fence", FENCE_MODES)
        reaches = parse_network(self.network)
        object.__setattr__(self, "network", reaches.ports if reaches.kind == "ports" else self.network)
        for name in ("write", "read"):
            object.__setattr__(self, name, _paths(getattr(self, name), name))
        object.__setattr__(self, "protect", tuple(_protected(each) for each in _listed(self.protect, "protect")))


def _listed(value: object, what: str) -> tuple[object, ...]:
    if isinstance(value, str | bytes | os.PathLike) or not isinstance(value, Iterable):
        raise BadInput(f"Expected {what} to be a list; got {shown(value)}. For one: {what}=[{shown(value)}]")
    return tuple(value)


def _paths(value: object, what: str) -> tuple[str, ...]:
    paths = []
    for each in _listed(value, what):
        if not isinstance(each, str | os.PathLike) or not os.fspath(each) or "\0" in os.fspath(each):
            raise BadInput(f"Expected {what} to list paths; got {shown(each)}.")
        paths.append(str(Path(each).expanduser().absolute()))
    return tuple(paths)


def _protected(value: object) -> str:
    parts = value.split("/") if isinstance(value, str) else []
    if not parts or not all(parts) or ".." in parts or "." in parts or "\0" in str(value):
        raise BadInput(f"Expected protect to list names beneath the workspace, such as .git/hooks; got {shown(value)}.")
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Grounds:
    """The paths on the machine that the policy needs.

    All are absolute and without links, except the first of each pair of `system`.
    """

    home: str = ""
    """The home of the person."""
    state: str = ""
    """The directory in which the host keeps its files."""
    secrets: tuple[str, ...] = ()
    """Files and directories that no program may reach: the database, the configuration, keys."""
    system: tuple[tuple[str, str], ...] = ()
    """The directories of the system that exist, each with its path after links are resolved."""
    programs: tuple[str, ...] = ()
    """Directories of further programs: those of ``PATH`` and of Python."""
    repository: str | None = None
    """The common directory of the repository of which the workspace is a worktree; None if it is no worktree."""
    own_code: tuple[str, ...] = ()
    """The directories from which this program imports."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The files and networks that a program may reach, in the form that the launcher needs."""

    directory: str
    """The directory in which the program starts."""
    links: tuple[tuple[str, str], ...] = ()
    """The symbolic links to create: path and target of each."""
    mounts: tuple[tuple[str, str, bool], ...] = ()
    """The mounts: source, target in the program's view, and whether it is writable, outer ones first."""
    protect: tuple[tuple[str, str], ...] = ()
    """Pairs of a directory and a name beneath it that the program must not write."""
    network: Network = Network()
    missing: tuple[str, ...] = field(default=(), compare=False)
    """The paths that should be readable and do not exist."""

    @property
    def writable(self) -> tuple[str, ...]:
        """The paths that the program may write, besides its temporary files."""
        return tuple(target for _, target, writable in self.mounts if writable)


REPOSITORY = "/repository"
"""The directory at which programs in an agent's worktree see the common directory of its repository."""

OF_AN_AGENT = "@"
"""The beginning of a source that is relative to the agent's directory, which is known when a program starts."""


def within_worktree(reach: Reach) -> Reach:
    """Return the rights of programs in a worktree of the workspace's repository.

    The programs see the worktree in the workspace's place.
    """
    base, mounts = reach.directory, list[tuple[str, str, bool]]()
    for mount in reach.mounts:
        if mount[1] != base:
            mounts.append(mount)
            continue
        mounts.append((f"{OF_AN_AGENT}/{WORKTREE_AT}", base, True))
        mounts.append((f"{OF_AN_AGENT}/{GIT_FILE}", f"{base}/.git", False))
    protect = [
        (REPOSITORY, name.removeprefix(".git/")) if above == base and name.startswith(".git/") else (above, name)
        for above, name in reach.protect
    ]
    return replace(reach, mounts=(*mounts, (f"{base}/.git", REPOSITORY, True)), protect=tuple(protect))


def check_reach(path: str, what: str, grounds: Grounds, workspace: bool = False) -> None:
    """Raise `BadInput` if a path leads to a secret, or to a directory that other programs use.

    Args:
        path: the path, absolute and without links.
        what: the name of the argument, for the error.
        grounds: has the secrets.
        workspace: whether the path is the workspace, which may lie within the host's directory.

    Raises:
        BadInput: the path leads there.
    """
    for secret in grounds.secrets:
        if is_beneath(secret, path):
            raise BadInput(
                f"{what} {path} holds {secret}, which nothing that an agent runs may reach. Move one of them"
                f"{', or name a directory beneath it' if workspace else ', or list what is beside it'}."
            )
        if is_beneath(path, secret) and not (workspace and secret == grounds.state):
            raise BadInput(f"{what} {path} lies in {secret}, which nothing that an agent runs may reach.")
    for shared in SHARED_WITH_OTHERS:
        if is_beneath(shared, path) or (shared in ("/proc", "/sys") and is_beneath(path, shared)):
            raise BadInput(f"{what} {path} holds the files or sockets of other programs. Name a directory beneath it.")


def without(path: str, secrets: Iterable[str], names: Callable[[str], Iterable[str]]) -> list[str]:
    """Return the paths to allow so that ``path`` can be reached without its secrets.

    These are the path itself if no secret is beneath it, else the entries beside the secrets.

    Args:
        path: the path that may be reached.
        secrets: the paths that must not be reached.
        names: returns the names in a directory.
    """
    kept = [secret for secret in secrets if is_beneath(secret, path) or is_beneath(path, secret)]
    if not kept:
        return [path]
    if any(is_beneath(path, secret) for secret in kept):
        return []
    return [inner for name in sorted(names(path)) for inner in without(f"{path.rstrip('/')}/{name}", kept, names)]


def reach_of(
    fence: Fence, workspace: str | None, grounds: Grounds, real: Callable[[str], str | None],
    names: Callable[[str], Iterable[str]],
) -> Reach:  # fmt: skip
    """Return the files and networks that programs may reach.

    Args:
        fence: the rights that a person gives programs.
        workspace: the directory in which programs start; None for a server, which starts in its home.
        grounds: the facts about the machine.
        real: resolves the links of a path; None when the path does not exist.
        names: returns the names in a directory.

    Raises:
        BadInput: a path leads to a secret, or a path that should be writable does not exist.
    """
    writable: dict[str, str] = {}
    if workspace is not None:
        check_reach(workspace, "The workspace", grounds, workspace=True)
        writable[workspace] = workspace
    for entry in fence.write:
        place = real(os.fspath(entry))
        if place is None:
            raise BadInput(f"write: there is no {entry}. Create it, or leave it out.")
        check_reach(place, "write:", grounds)
        writable[place] = place
    if grounds.repository is not None:
        check_reach(grounds.repository, "The repository of the workspace", grounds)
        writable[grounds.repository] = grounds.repository
    readable, missing = dict(grounds.system), []
    for entry in fence.read:
        place = real(os.fspath(entry))
        if place is None:
            missing.append(os.fspath(entry))
            continue
        check_reach(place, "read:", grounds)
        readable[place] = place
    for place in grounds.programs:
        readable.setdefault(place, place)
    return replace(
        _laid_out(workspace or "", readable, writable, grounds, names),
        protect=_protect(fence.protect, writable, workspace, grounds),
        network=parse_network(fence.network),
        missing=tuple(missing),
    )


def _laid_out(
    directory: str, readable: Mapping[str, str], writable: Mapping[str, str], grounds: Grounds,
    names: Callable[[str], Iterable[str]],
) -> Reach:  # fmt: skip
    """Return the mounts and links of a program, outer ones first, without mounts that lie in an equal one."""
    links, mounts = [], dict[str, tuple[str, bool]]()
    for target, source in readable.items():
        if target != source and any(is_beneath(source, other) for other in readable if other != target):
            links.append((target, os.path.relpath(source, PurePath(target).parent)))
            continue
        for part in without(source, grounds.secrets, names):
            place = target + part[len(source) :]
            if not any(is_beneath(part, other) for other in writable):
                mounts[place] = (part, False)
    mounts |= {place: (place, True) for place in writable}
    same = {place for place, (source, _) in mounts.items() if place == source}

    def within_another(target: str, source: str, write: bool) -> bool:
        above = [other for other in same if other != target and is_beneath(target, other)]
        return target == source and target != directory and bool(above) and mounts[max(above, key=len)][1] == write

    kept = [
        (source, target, write)
        for target, (source, write) in sorted(mounts.items(), key=lambda item: (item[0].count("/"), item[0]))
        if not within_another(target, source, write)
    ]
    return Reach(directory, tuple(links), tuple(kept))


def _protect(
    names: Sequence[str], writable: Iterable[str], workspace: str | None, grounds: Grounds
) -> tuple[tuple[str, str], ...]:
    """Return the paths that a fenced program may not write, although it may write the directories around them.

    A person names some of them. The others are the code of this program: Python imports it outside of the fence.

    Args:
        names: the names that a person protects in each writable directory.
        writable: the directories that may be written. The repository of a worktree is among them.
        workspace: the directory in which programs start.
        grounds: the facts about the machine.

    Returns:
        Pairs of a writable directory and a path relative to it.
    """
    made = list[tuple[str, str]]()
    of_git = [name.removeprefix(".git/") for name in names if name.startswith(".git/")]
    for place in writable:
        if place == grounds.repository:
            made += [(place, name) for name in of_git]
        elif place == workspace and grounds.repository is not None:  # a worktree: .git says where that is
            made += [(place, name) for name in names if not name.startswith(".git/")]
            made += [(place, ".git")] if of_git else []
        else:
            made += [(place, name) for name in names]
        code = (path for path in grounds.own_code if path != place and is_beneath(path, place))
        made += [(place, os.path.relpath(path, place)) for path in code]
    return tuple(made)
