"""How one page finds another."""

import stat
from pathlib import Path

from ikigai_actors.http_server.acceptor import listen
from ikigai_actors.sight.served_pages import link_to, published


def test_a_page_is_found_while_it_is_served_by_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    with listen("127.0.0.1", 0) as listening:
        listening.listen()
        link = f"http://127.0.0.1:{listening.getsockname()[1]}/?token=secret"
        with published("serve", "team.db", link, folder):
            assert link_to("serve", "team.db", folder) == link
            assert link_to("observe", "team.db", folder) is None
            assert link_to("serve", "other.db", folder) is None
            (file,) = folder.iterdir()
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert link_to("serve", "team.db", folder) is None
    assert not [*folder.iterdir()]


def test_what_a_killed_program_leaves_is_removed_and_rubbish_is_passed_over(tmp_path: Path) -> None:
    with listen("127.0.0.1", 0) as listening:
        link = f"http://127.0.0.1:{listening.getsockname()[1]}/"
    (tmp_path / "serve-1.json").write_text("{", encoding="utf-8")
    with published("serve", "team.db", link, tmp_path):
        assert link_to("serve", "team.db", tmp_path) is None
        assert [file.name for file in tmp_path.iterdir()] == ["serve-1.json"]


def test_a_database_in_memory_is_not_published(tmp_path: Path) -> None:
    with published("observe", ":memory:", "http://127.0.0.1:1/", tmp_path):
        assert not [*tmp_path.iterdir()]
