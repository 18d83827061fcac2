"""Providers by name: of installed packages, of classes in ikigai.toml, and as MODULE:NAME; and each way to be wrong."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, BadInput, FunctionProvider, ProviderError
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.named import imported, named_provider
from tests.kit.blocking_provider import DEADLINE

MODULE = """
import sys
from ikigai_actors import Reply

class Mine:
    name = "mine"
    model = "small"

    def __init__(self, says="mine"):
        self.says = says

    async def respond(self, request, on_delta):
        return Reply(f"{self.says}: {request.model or self.model}")

    async def close(self):
        self.says = "closed"

class Needy(Mine):
    def __init__(self, key):
        pass

class Raises(Mine):
    def __init__(self):
        raise LookupError("no key\\nin the vault")

class Leaves(Mine):
    def __init__(self):
        sys.exit("not today")

class Shy(Mine):
    @property
    def name(self):
        raise OSError("no name")

def factory():
    return Mine("made")

async def later():
    return Mine()

def nothing():
    return 5

made = Mine("here")
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module of the current directory that has providers."""
    name = f"shop_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE, "utf-8")
    (tmp_path / f"torn_{name}.py").write_text("def (", "utf-8")
    (tmp_path / f"leaving_{name}.py").write_text("import sys; sys.exit(3)", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


@pytest.fixture
def install(shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Installs a package that offers a provider of the module."""

    def add(package: str, entry: str) -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[ikigai_actors.providers]\n{entry}\n")
        monkeypatch.syspath_prepend(str(tmp_path))

    return add


def answer(system: ActorSystem, model: str | None = None) -> str:
    if model is not None:
        system.root.configure(model=model)
    return system.root.prompt("Who?").get(timeout=DEADLINE).text


@pytest.mark.slow("takes a tenth of a second")
def test_a_provider_of_an_installed_package_is_there_under_its_name(
    shop: str, install: Callable[[str, str], None]
) -> None:
    install("acme", f"acme = {shop}:Mine")
    with ActorSystem.open(":memory:", "acme", limits={"acme": Limits(2)}) as system:
        assert answer(system) == "mine: small"
        assert system.root.history()[-1].data["model"] == "acme:small"
    with ActorSystem.open(":memory:", "offline") as system:
        assert answer(system, "acme:large") == "mine: large"
        with pytest.raises(BadInput, match=r"Registered: acme, anthropic, offline, openai\."):
            system._check_model("nobody:m")


def test_a_package_whose_provider_is_broken_or_there_twice_is_named(
    shop: str, install: Callable[[str, str], None]
) -> None:
    install("acme", f"acme = {shop}:Raises\ntwice = {shop}:Mine")
    install("other", f"twice = {shop}:factory")
    with ActorSystem.open(":memory:", "offline") as system:
        message = "Provider 'acme' of package acme .* cannot be made: LookupError: no key in the vault"
        with pytest.raises(BadInput, match=message):
            system._check_model("acme:m")
        with pytest.raises(BadInput, match="Provider 'twice' is offered by acme and other"):
            system._check_model("twice:m")
        assert answer(system).startswith("You said")
    with pytest.raises(BadInput, match=message):
        ActorSystem.open(":memory:", "acme")


@pytest.mark.slow("takes a tenth of a second")
def test_a_package_that_is_gone_is_an_error_of_those_who_ask_it_alone(
    shop: str, install: Callable[[str, str], None], tmp_path: Path
) -> None:
    install("acme", f"acme = {shop}:Mine")
    with ActorSystem.open(tmp_path / "team.db", "offline") as system:
        assert answer(system, "acme:m") == "mine: m"
    (tmp_path / "acme-1.0.dist-info" / "entry_points.txt").write_text("")
    with ActorSystem.open(tmp_path / "team.db", "offline") as system:
        with pytest.raises(ProviderError, match="names provider 'acme', which is not registered"):
            answer(system)
        assert answer(system, "offline").startswith("You said")


def test_a_file_names_a_class_or_what_an_installed_package_needs(
    shop: str, install: Callable[[str, str], None], tmp_path: Path
) -> None:
    install("acme", f"acme = {shop}:Mine")
    (tmp_path / "ikigai.toml").write_text(
        f'model = "own:big"\n[providers.own]\nclass = "{shop}:Mine"\narguments = {{ says = "own" }}\nin_flight = 2\n'
        '[providers.acme]\narguments = { says = "told" }\n'
    )
    with ActorSystem.open(":memory:") as system:
        assert answer(system) == "own: big"
        assert answer(system, "acme:m") == "told: m"


def test_an_object_is_a_class_a_function_or_a_provider(shop: str) -> None:
    says = [getattr(named_provider(f"{shop}:{name}", "--provider"), "says", "") for name in ("Mine", "factory", "made")]
    assert says == ["mine", "made", "here"]


WRONG = [
    ("nowhere:P", "'nowhere:P' cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
    ("{shop}:Missing", "has no attribute 'Missing'"),
    ("torn_{shop}:P", "cannot be imported: SyntaxError"),
    ("leaving_{shop}:P", "cannot be imported: SystemExit: 3"),
    ("{shop}:Raises", "cannot be made: LookupError: no key in the vault"),
    ("{shop}:Leaves", "cannot be made: SystemExit: not today"),
    ("{shop}:Needy", "missing 1 required positional argument: 'key'"),
    ("{shop}:Shy", "cannot be made: OSError: no name"),
    ("{shop}:later", "is an async function"),
    ("{shop}:nothing", "to be a provider, which has a name, respond and close"),
    ("{shop}:MODULE", "has no attribute 'MODULE'"),
    ("{shop}:sys", "to be a provider, which has a name, respond and close"),
    ("{shop}", "MODULE:CLASS, got"),
    (":P", "MODULE:CLASS, got ':P'"),
    ("..:P", "cannot be imported"),
]


@pytest.mark.parametrize(("reference", "message"), WRONG)
def test_what_cannot_be_a_provider_is_one_line_that_names_it(shop: str, reference: str, message: str) -> None:
    named = reference.format(shop=shop)
    with pytest.raises(BadInput) as raised:
        named_provider(named, "--provider")
    assert message in str(raised.value)
    assert "--provider" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('class = "{shop}:Raises"', "providers.own.class in ikigai.toml '{shop}:Raises' cannot be made: LookupError"),
        ('class = "{shop}:made"\narguments = {{ a = 1 }}', "is a provider already, and takes no arguments"),
        ('class = "{shop}:Mine"\nbase_url = "http://a"', "There is no providers.own.base_url"),
        ("class = 5", "Expected providers.own.class in ikigai.toml to be text; got 5"),
        ("arguments = {{ a = 1 }}", "Expected providers.own in ikigai.toml to be a table with a base_url, or a class"),
    ],
)
def test_a_class_in_a_file_that_cannot_be_used_is_one_line(shop: str, tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "ikigai.toml").write_text(f"[providers.own]\n{table.format(shop=shop)}\n")
    with pytest.raises(BadInput) as raised:
        ActorSystem.open(tmp_path / "team.db", "offline")
    assert message.format(shop=shop) in str(raised.value)
    assert not (tmp_path / "team.db").exists()


def test_what_is_imported_may_lie_within_a_class(shop: str) -> None:
    imported_function: Any = imported(f"{shop}:Mine.respond", "--check")
    assert imported_function.__name__ == "respond"


def test_a_provider_of_ones_own_gets_the_options_as_they_are() -> None:
    options = {"top_k": 5, "nested": {"a": [1, None]}}
    with ActorSystem.open(
        ":memory:", FunctionProvider(lambda request: json.dumps(request.settings["options"]))
    ) as system:
        system.root.configure(options=options)
        assert json.loads(answer(system)) == options
