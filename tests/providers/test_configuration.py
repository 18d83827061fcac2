"""The file ikigai.toml: what it may say, and each way in which it can be wrong."""

from pathlib import Path
from typing import Any

import pytest

from ikigai_actors import ActorSystem, AnthropicProvider, BadInput, OfflineProvider, OpenAIProvider, ProviderError
from ikigai_actors.providers.base import Usage
from ikigai_actors.providers.configuration import Configuration, endpoint, parse_configuration, read_configuration
from ikigai_actors.providers.limits import Limits
from ikigai_actors.providers.prices import Prices
from ikigai_actors.providers.selection import choose_providers
from ikigai_actors.system.configuration import configuration
from tests.kit.blocking_provider import DEADLINE
from tests.kit.messages_server.server import MessagesServer, Says

WHOLE = """
model = "local:qwen3:8b, messages:m"

[providers.local]
base_url = "http://127.0.0.1:1/v1"
api_key_env = "LOCAL_KEY"
model = "qwen3:8b"
in_flight = 4
requests_per_minute = 60

[providers.messages]
base_url = "http://127.0.0.1:1"
max_tokens = 100
timeout = 2.5

[providers.anthropic]
in_flight = 8

[prices."local:qwen3:8b"]
input = 1
output = 2.0

[windows]
"local:qwen3:8b" = 8192
"""


def parsed(text: str, **environ: str) -> Configuration:
    return parse_configuration(text, "ikigai.toml", environ)


def test_a_file_names_providers_models_limits_prices_and_windows() -> None:
    made = parsed(WHOLE, LOCAL_KEY="key")
    assert made.model == "local:qwen3:8b, messages:m"
    kinds = {name: (type(provider), provider.name) for name, provider in made.providers.items()}
    assert kinds == {
        "local": (OpenAIProvider, "local"),
        "messages": (AnthropicProvider, "messages"),
        "anthropic": (AnthropicProvider, "anthropic"),
    }
    assert made.limits == {"local": Limits(4, 60), "anthropic": Limits(8)}
    assert made.windows == {"local:qwen3:8b": 8192}
    assert Prices(made.prices).cost({"qwen3:8b": Usage(1_000_000, 1_000_000)}) == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = ", "Expected ikigai.toml to be TOML: Invalid value"),
        ('[prices.local:a]\ninput = 1\noutput = 1', 'needs quotes, as [prices."local:qwen3:8b"]'),
        ('[prices.llama3.2]\ninput = 1\noutput = 1', 'needs quotes, as [prices."local:qwen3:8b"]'),
        ("a = " + "[" * 9000, "it is nested too deep"),
        ("modle = 'a'", "There is no modle in an ikigai.toml (ikigai.toml); expected model, providers,"),
        ("model = 5", "Expected model in ikigai.toml to be text; got 5"),
        ("providers = 5", "Expected providers in ikigai.toml to be a table; got 5"),
        ("[providers]\nlocal = 'http://a'", "Expected providers.local in ikigai.toml to be a table"),
        ("[providers.local]", "Expected providers.local in ikigai.toml to be a table with a base_url"),
        ("[providers.local]\nurl = 'http://a'", "There is no providers.local.url"),
        ("[providers.local]\nbase_url = 'localhost:8000'", "providers.local.base_url in ikigai.toml to be an address"),
        ("[providers.local]\nbase_url = 'http://a'\nprotocol = 'soap'", "one of messages, chat, responses; got 'soap'"),
        ("[providers.local]\nbase_url = 'http://a'\ntimeout = inf", "providers.local in ikigai.toml: Expected timeout"),
        ("[providers.local]\nbase_url = 'http://a'\ntimeout = 2026-01-01", "timeout in ikigai.toml to be a number"),
        ("[providers.local]\nbase_url = 'http://a'\nin_flight = 0", "Expected in_flight to be"),
        ("[providers.local]\nbase_url = 'http://a'\nin_flight = true", "in_flight in ikigai.toml to be a whole number"),
        ("[providers.'a:b']\nbase_url = 'http://a'", "a name without colons, commas"),
        ("[providers.anthropic]\nprotocol = 'chat'", "left out where there is no base_url"),
        ("[windows]\na = 0", "Expected windows.'a' in ikigai.toml to be a number of tokens"),
        ("[windows]\na = 1.5", "Expected windows.a in ikigai.toml to be a whole number"),
        ("[prices.a]\ninput = nan\noutput = 1", "Expected [prices.'a'] in ikigai.toml to give input and output"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_the_file_and_the_place(text: str, message: str) -> None:
    with pytest.raises(BadInput) as raised:
        parsed(text)
    assert message in str(raised.value)


def test_a_file_in_another_encoding_is_told_and_a_mark_before_it_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "ikigai.toml"
    file.write_bytes('model = "lölä:x"'.encode("latin-1"))
    with pytest.raises(BadInput, match=r"to be UTF-8 text.*Save it as UTF-8"):
        read_configuration(file)
    file.write_bytes(b"\xef\xbb\xbfmodel = 'offline'")
    assert read_configuration(file).model == "offline"


def test_the_file_that_is_named_counts_before_that_of_the_directory_and_that_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    environ = {"IKIGAI_HOME": str(home)}
    assert configuration(None, environ) == Configuration()
    (home / "ikigai.toml").write_text("model = 'home:m'")
    assert configuration(None, environ).model == "home:m"
    (here / "ikigai.toml").write_text("model = 'here:m'")
    assert configuration(None, environ).model == "here:m"
    (tmp_path / "named.toml").write_text("model = 'named:m'")
    environ["IKIGAI_CONFIG"] = str(tmp_path / "named.toml")
    assert configuration(None, environ).model == "named:m"
    assert configuration(here / "ikigai.toml", environ).model == "here:m"
    assert configuration("", environ) == Configuration()
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        configuration(tmp_path / "none.toml", environ)
    wrong: Any = 5
    with pytest.raises(BadInput, match="Expected config to be a path"):
        configuration(wrong, environ)


@pytest.mark.slow("takes a tenth of a second")
def test_a_program_uses_what_the_file_says_and_its_arguments_count_before_it(tmp_path: Path) -> None:
    with MessagesServer(lambda body: Says.text(f"I am {body['model']}.")) as server:
        file = tmp_path / "ikigai.toml"
        file.write_text(
            f'model = "local:small"\n[providers.local]\nbase_url = "{server.url}"\n[windows]\n"local:small" = 4096'
        )
        with ActorSystem.open(":memory:", config=file) as system:
            assert system.root.prompt("Who?").get(timeout=DEADLINE).text == "I am small."
            assert system.root.context().window == 4096
            system.root.configure(model="local:large")
            assert system.root.prompt("Who?").get(timeout=DEADLINE).text == "I am large."
            assert system.root.context().window == 0
            assert [message.data["model"] for message in system.root.history() if message.kind == "assistant"] == [
                "local:small", "local:large",
            ]  # fmt: skip
        with ActorSystem.open(":memory:", "offline", config=file) as system:
            assert system._default_model == "offline"
        with ActorSystem.open(":memory:", providers={"local": OfflineProvider()}, config=file) as system:
            assert system.root.prompt("Who?").get(timeout=DEADLINE).text.startswith("You said")
    assert server.keys == ["none", "none"]


def test_the_limits_of_the_file_hold_but_where_the_program_has_others() -> None:
    made = parsed(WHOLE, LOCAL_KEY="key")
    chosen = choose_providers(None, {}, None, made, {"anthropic": Limits(2)})
    assert chosen.limits == {"local": Limits(4, 60), "anthropic": Limits(2)}


def test_a_provider_whose_key_is_missing_is_an_error_of_those_who_ask_it_alone(tmp_path: Path) -> None:
    file = tmp_path / "ikigai.toml"
    file.write_text('model = "far:m"\n[providers.far]\nbase_url = "http://127.0.0.1:1"\napi_key_env = "NO_SUCH_KEY"')
    with ActorSystem.open(":memory:", config=file) as system:
        with pytest.raises(ProviderError, match="The key of provider far is missing: set NO_SUCH_KEY"):
            system.root.prompt("Who?").get(timeout=DEADLINE)
        system.root.configure(model="far:m, offline")
        assert system.root.prompt("Who?").get(timeout=DEADLINE).text.startswith("You said")


def test_a_model_of_a_provider_that_the_file_does_not_name_is_an_error_at_once(tmp_path: Path) -> None:
    file = tmp_path / "ikigai.toml"
    file.write_text('model = "nobody:m"')
    with pytest.raises(BadInput, match="There is no provider 'nobody'; expected one of anthropic, offline, openai"):
        ActorSystem.open(":memory:", config=file)


@pytest.mark.parametrize(
    ("url", "kind"),
    [("http://a", AnthropicProvider), ("http://a/v1/", OpenAIProvider), ("http://a/v1", OpenAIProvider)],
)
def test_the_address_tells_the_protocol_where_nobody_does(url: str, kind: type) -> None:
    assert type(endpoint("a", url)) is kind
    assert type(endpoint("a", url, "messages")) is AnthropicProvider
