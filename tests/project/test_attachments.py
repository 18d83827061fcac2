"""What may be attached: types and sizes, judged by the bytes."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import BadInput, attachment
from ikigai_actors.attachments import LARGEST, attachments, media_of, name_and_size, size_of
from tests.kit import pictures

EACH = [(media, data) for media, listed in pictures.BY_TYPE.items() for data in listed]


@pytest.mark.parametrize(("media", "data"), EACH)
def test_the_type_is_told_by_the_bytes_whatever_the_name(media: str, data: bytes) -> None:
    assert media_of(data) == media
    made = attachment(data, "notes.txt")
    assert (made.media, made.name, len(made.sha256)) == (media, "notes.txt", 64)
    assert name_and_size(made.stored()) == f"notes.txt, {media}, {len(data)} bytes"


@pytest.mark.parametrize(
    ("data", "size"),
    [(pictures.PNG, (640, 480)), (pictures.GIF, (320, 200)), (pictures.JPEG, (300, 100)), (pictures.WEBP, (640, 480)),
     (pictures.WEBP_LOSSY, (640, 480)), (pictures.WEBP_PLAIN, (640, 480)), (pictures.PDF, None), (b"GIF89a", None)],
)  # fmt: skip
def test_the_size_of_a_picture_is_read_from_its_head(data: bytes, size: tuple[int, int] | None) -> None:
    assert size_of(data) == size


@given(st.sampled_from(EACH), st.integers(0, 40), st.binary(max_size=20))
def test_whatever_bytes_there_are_looking_at_them_raises_nothing(one: tuple[str, bytes], cut: int, more: bytes) -> None:
    data = one[1][:cut] + more
    media_of(data)
    size_of(data)


HUGE = pictures.PNG[:16] + (8_001).to_bytes(4, "big") + pictures.PNG[20:]


@pytest.mark.parametrize(
    ("source", "why"),
    [(b"", "of a type that models take"), (b"text", "of a type that models take"), (HUGE, "8,000 pixels"),
     (pictures.PNG + b"x" * LARGEST, "20 MB at most"), (5, "path of a file, or as bytes"),
     ("no.png", "No such file"), (".", "Is a directory"), ("a\0b", "null byte"), (None, "path of a file, or as bytes")],
)  # fmt: skip
def test_what_no_model_would_take_is_refused_with_the_reason(source: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        attachment(source)


def test_a_file_is_named_without_its_directory(tmp_path: Path) -> None:
    (tmp_path / "plan\n.png").write_bytes(pictures.PNG)
    made = attachment(tmp_path / "plan\n.png")
    assert (made.name, made.data) == ("plan_.png", pictures.PNG)
    assert attachments([str(tmp_path / "plan\n.png"), made]) == (made, made)


@pytest.mark.parametrize(
    "attach", ["plan.png", b"x", None, 5, [pictures.PNG] * 101, [pictures.PNG + b"x" * (LARGEST // 2)] * 2]
)
def test_attach_is_a_list_of_what_fits_into_one_request(attach: Any) -> None:
    with pytest.raises(BadInput, match=r"[Aa]ttach"):
        attachments(attach)
