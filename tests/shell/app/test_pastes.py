"""A paste among keys, as the characters of a terminal bring them, in whatever pieces."""

import pytest

from ikigai_actors.shell.app.pastes import END, END_LOST, START, Pastes


@pytest.mark.parametrize("key", ["a", "\r", "\x03", "\x1b[A", "茶"])
def test_a_key_long_after_a_paste_whose_end_is_lost_is_a_key(key: str) -> None:
    pastes = Pastes()
    assert pastes.feed(f"{START}one\n") == f"{START}one\n"
    assert pastes.feed(key, END_LOST - 0.1) == (key if key[0] != "\x1b" else f"\\x1b{key[1:]}")  # a slow connection
    assert pastes.feed(key, END_LOST) == END + key
    assert pastes.feed(key) == key
    assert pastes.feed(END) == END  # it comes after all
    assert pastes.feed(f"{START}two{END}{key}", END_LOST) == f"{START}two{END}{key}"


@pytest.mark.parametrize("rest", ["more of it\r", END, END[:3], "\x1b", f"{END}a"])
def test_the_rest_of_a_paste_is_no_key_however_late_it_comes(rest: str) -> None:
    pastes = Pastes()
    pastes.feed(f"{START}one")
    said = pastes.feed(rest, END_LOST * 2)
    said += pastes.feed("" if END in rest else f"|{END}" if rest not in END else END[len(rest) :])
    assert said.count(END) == 1
    assert said.endswith("a" if rest.endswith("a") else END)


def test_the_second_half_of_an_end_mark_is_no_key() -> None:
    pastes = Pastes()
    assert pastes.feed(f"{START}one{END[:-1]}") == f"{START}one"
    assert pastes.feed(END[-1], END_LOST) == END
