"""Reads the text of a document from a file."""

from typing import BinaryIO

from ikigai_actors.errors import BadInput
from ikigai_actors.records.documents import DOCUMENT_LIMIT


def decoded(file: BinaryIO) -> str:
    """Return the text of a file. Raises `BadInput` if the text is too long, not UTF-8, or cannot be read."""
    try:
        data = file.read(DOCUMENT_LIMIT + 1)
        if len(data) > DOCUMENT_LIMIT:
            raise BadInput(f"{file.name} has more than {DOCUMENT_LIMIT:,} bytes. Cut it into several documents.")
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(
            f"{file.name} is not UTF-8 (byte {data[error.start]:#04x} at {error.start + 1}). Convert it first."
        ) from error
    except OSError as error:
        raise BadInput(f"{file.name} cannot be read: {error.strerror}.") from error
