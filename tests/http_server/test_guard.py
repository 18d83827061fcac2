"""Who may come in, by Host, Origin and secret: the same rules before every door."""

import stat
from pathlib import Path
from urllib.parse import parse_qsl

import pytest

from ikigai_actors.errors import BadInput
from ikigai_actors.http_server.guard import OWN_FILES_POLICY, Guard, PageGuard, RequestHead, same_secret
from ikigai_actors.http_server.requests import AsgiScope
from ikigai_actors.http_server.server import guarded_head
from ikigai_actors.http_server.token_file import token_in

TOKEN = "t" * 43
PLACE = "127.0.0.1:8000"
BEARER = {"Authorization": f"Bearer {TOKEN}"}

PROGRAMS = Guard(PLACE, "localhost:8000", token=TOKEN)
PAGES = PageGuard(PLACE, OWN_FILES_POLICY, TOKEN)
DOORS = pytest.mark.parametrize("guard", [PROGRAMS, PAGES], ids=["programs", "pages"])


def asked(path: str = "/mcp", **headers: str) -> RequestHead:
    place, _, query = path.partition("?")
    fields = {name.lower(): value for name, value in {"Host": PLACE, **headers}.items()}
    return RequestHead("GET", place, fields, dict(parse_qsl(query)))


def status(guard: Guard, head: RequestHead) -> int | None:
    refusal = guard.refusal(head)
    return None if refusal is None else refusal.status


@DOORS
@pytest.mark.parametrize(
    "headers",
    [{}, {"Origin": f"http://{PLACE}"}, {"Authorization": f"bearer {TOKEN}"}, {"Authorization": f"Bearer  {TOKEN} "}],
)
def test_a_program_with_the_token_comes_in(guard: Guard, headers: dict[str, str]) -> None:
    assert status(guard, asked(**{**BEARER, **headers})) is None


@DOORS
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:8000"},
        {"Host": "127.0.0.1:8001"},
        {"Host": "127.0.0.1"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "https://127.0.0.1:8000"},
        {"Origin": "http://127.0.0.1:8001"},
        {"Origin": "null"},
        {"Origin": ""},
    ],
)
def test_another_name_or_a_page_from_elsewhere_is_refused_though_it_has_the_token(
    guard: Guard, headers: dict[str, str]
) -> None:
    assert status(guard, asked(**{**BEARER, **headers})) == 403


@DOORS
def test_a_name_that_is_given_twice_is_none(guard: Guard) -> None:
    scope: AsgiScope = {
        "method": "GET",
        "path": "/mcp",
        "headers": [(b"host", PLACE.encode()), (b"Host", PLACE.encode())],
    }
    head = guarded_head(scope)
    assert status(guard, head._replace(headers={**head.headers, "authorization": f"Bearer {TOKEN}"})) == 403


@DOORS
def test_a_guest_is_admitted_once_all_else_is_in_order(guard: Guard) -> None:
    admitted: list[str] = []

    def admit() -> bool:
        admitted.append("guest")
        return len(admitted) == 1

    assert guard.answer(asked(), admit) is not None
    assert admitted == []
    assert guard.answer(asked(**BEARER), admit) is None
    full = guard.answer(asked(**BEARER), admit)
    assert full is not None
    assert full.status == 503


@DOORS
@pytest.mark.parametrize(
    "header", ["", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN[1:]}", f"Bearer {TOKEN}x", "Bearer ", "Bearer é"]
)
def test_nobody_comes_in_without_the_token(guard: Guard, header: str) -> None:
    assert status(guard, asked(Authorization=header)) == 401
    assert status(guard, asked()) == 401


def test_programs_may_say_localhost_and_learn_how_they_come_in() -> None:
    local = {**BEARER, "Host": "localhost:8000"}
    assert status(PROGRAMS, asked(**local, Origin="http://localhost:8000")) is None
    assert status(PROGRAMS, asked(**local, Origin=f"http://{PLACE}")) == 403
    assert status(PAGES, asked(**local)) == 403
    refusal = PROGRAMS.refusal(asked())
    assert refusal is not None
    assert refusal.headers["WWW-Authenticate"] == "Bearer"


@DOORS
def test_a_websocket_names_its_origin(guard: Guard) -> None:
    assert status(guard, asked("/ws", **BEARER)) == 403
    assert status(guard, asked("/ws", **BEARER, Origin=f"http://{PLACE}")) is None


def test_the_link_is_for_pages_and_for_their_first_request_alone() -> None:
    link = f"/?token={TOKEN}"
    assert PAGES.link == f"http://{PLACE}{link}"
    assert status(PAGES, asked(link)) is None
    assert status(PROGRAMS, asked(link)) == 401
    for other in ("/", "/?token=", f"/?token={TOKEN}x", "/?token=%ff%ed%a0%80", f"/api/tree?token={TOKEN}"):
        assert status(PAGES, asked(other)) == 401, other
    assert status(PAGES, asked(link, Origin="http://evil.example")) == 403


@pytest.mark.parametrize("cookie", ["ikigai_8000=", f"ikigai_8000={TOKEN}", f"token={TOKEN}", "ikigai_8000=é"])
def test_the_token_is_no_cookie(cookie: str) -> None:
    assert status(PAGES, asked("/", Cookie=cookie)) == 401


def test_bytes_that_are_no_text_are_no_secret() -> None:
    assert not same_secret("\udcff", TOKEN)


def test_the_token_is_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / "home" / "door-token"
    token = token_in(file)
    assert (token_in(file), len(token) >= 43, stat.S_IMODE(file.stat().st_mode)) == (token, True, 0o600)
    file.chmod(0o644)
    with pytest.raises(BadInput, match="others may read it"):
        token_in(file)
    file.unlink()
    file.write_text("short")
    file.chmod(0o600)
    with pytest.raises(BadInput, match="too short"):
        token_in(file)
