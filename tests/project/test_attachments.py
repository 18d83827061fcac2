"""What may be attached: types and sizes, judged by the bytes."""

from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ikigai_actors import BadInput, attachment
from ikigai_actors.attachments import LARGEST, attachments, media_of, name_and_size, size_of
from ikigai_actors.whole_pictures import fault_of
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
def test_whatever_bytes_there_are_looking_at_them_raises_nothing(
    media_and_data: tuple[str, bytes], cut: int, more: bytes
) -> None:
    data = media_and_data[1][:cut] + more
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


def drawn() -> dict[str, tuple[str, bytes]]:
    """Pictures of each type and way of storing that Pillow writes, by name, each with its type."""
    image = pytest.importorskip("PIL.Image", reason="Pillow, the oracle, is not installed")
    noise = image.effect_noise((96, 64), 60).convert("RGB")
    more = {"save_all": True, "append_images": [noise.rotate(9), noise.rotate(30)]}
    marks = {"exif": b"Exif\0\0" + b"\xff\xd9" * 9}
    ways: dict[str, tuple[str, Any, dict[str, Any]]] = {
        "png": ("png", noise, {}), "of a palette": ("png", noise.convert("P"), {}), "that moves": ("png", noise, more),
        "jpeg": ("jpeg", noise, {}), "in turns": ("jpeg", noise, {"progressive": True}),
        "grey": ("jpeg", noise.convert("L"), {}), "with ends in it": ("jpeg", noise, marks), "gif": ("gif", noise, {}),
        "gif that moves": ("gif", noise, more), "with words": ("gif", noise, {"comment": b"words"}),
        "webp": ("webp", noise, {}), "exact": ("webp", noise, {"lossless": True}),
        "webp that moves": ("webp", noise, more), "webp with marks": ("webp", noise, marks),
    }  # fmt: skip
    made = {}
    for name, (kind, picture, how) in ways.items():
        picture.save(file := BytesIO(), kind, **how)
        made[name] = f"image/{kind}", file.getvalue()
    return made


def can_be_decoded(data: bytes) -> bool:
    image = pytest.importorskip("PIL.Image")
    try:
        with image.open(BytesIO(data)) as opened:
            for frame in range(getattr(opened, "n_frames", 1)):
                opened.seek(frame)
                opened.load()
    except (OSError, ValueError, SyntaxError, EOFError, IndexError):
        return False
    return True


def test_a_whole_picture_is_taken_with_whatever_follows_it() -> None:
    for name, (media, data) in drawn().items():
        for whole in (data, data + b"more"):
            assert (name, fault_of(whole, media)) == (name, "")
            assert attachment(whole).data == whole


def test_a_picture_of_which_a_part_is_missing_is_refused_wherever_it_was_cut_off() -> None:
    chance = Random(3)
    for name, (media, data) in drawn().items():
        for at in sorted(chance.sample(range(len(data) // 2, len(data) - 12), 12)):
            cut = data[:at]
            assert (name, at, bool(fault_of(cut, media))) == (name, at, not can_be_decoded(cut))
            with pytest.raises(BadInput, match=r"to be a whole picture, but .*: make it again"):
                attachment(cut)


def test_a_picture_with_a_good_head_and_a_broken_body_is_refused() -> None:
    chance = Random(4)
    for name, (media, data) in drawn().items():
        broken = data[:40] + chance.randbytes(len(data) - 40)
        assert fault_of(broken, media) or media == "image/webp", name  # there any bytes are pixels
    for media, data, head in (
        ("image/png", pictures.PNG, 33), ("image/gif", pictures.GIF, 13), ("image/jpeg", pictures.JPEG, 8),
        ("image/webp", pictures.WEBP, 30), ("image/webp", pictures.WEBP_LOSSY, 20),
    ):  # fmt: skip
        assert fault_of(data[:head], media)


@given(st.sampled_from(EACH), st.integers(0, 60), st.binary(max_size=40))
def test_looking_for_faults_ends_and_raises_nothing(media_and_data: tuple[str, bytes], cut: int, more: bytes) -> None:
    fault_of(media_and_data[1][:cut] + more, media_and_data[0])


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
