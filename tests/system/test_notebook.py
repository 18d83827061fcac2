"""What a notebook shows of systems and handles."""

from ikigai_actors import ActorSystem, OfflineProvider


def test_a_notebook_shows_the_tree_with_its_states() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        lead = system.root.fork(name="lead")
        kid = lead.fork(name="kid")
        system.root.fork(name="other")
        kid.kill()
        html = system._repr_mimebundle_()["text/html"]
        assert [html.count(name) for name in ("lead", "kid", "other", "× kid", "○ other")] == [1, 1, 1, 1, 1]
        below = lead._repr_mimebundle_()
        assert below["text/plain"] == repr(lead)
        assert ("kid" in below["text/html"], "other" in below["text/html"]) == (True, False)
        assert lead.aio._repr_mimebundle_()["text/html"] == below["text/html"]
    assert [*system._repr_mimebundle_()] == ["text/plain"]
    assert [*lead._repr_mimebundle_()] == ["text/plain"]


def test_a_notebook_shows_two_hundred_rows_and_says_how_many_there_are() -> None:
    with ActorSystem.open(":memory:", OfflineProvider()) as system:
        system.root.fork(count=250)
        html = system._repr_mimebundle_()["text/html"]
        assert html.count("padding-left") == 200
        assert "251 in all" in html
