"""Recognizes files that are not text, and says what to do about them."""

import codecs

from stillvec.errors import InputError

_KNOWN = (  # first bytes, kind of file, what to do
    (b"%PDF", "a PDF", "convert it to text first (pdftotext)"),
    (b"PK\x03\x04", "a ZIP archive or an office document (docx, xlsx, epub)", "unpack it or save it as plain text"),
    (b"\xd0\xcf\x11\xe0", "an old office document", "save it as plain text"),
    (b"{\\rtf", "an RTF document", "save it as plain text"),
    (b"\x89PNG", "a PNG image", "leave it out"),
    (b"\xff\xd8\xff", "a JPEG image", "leave it out"),
    (b"GIF8", "a GIF image", "leave it out"),
    (b"SQLite format 3", "an SQLite database", "export the texts first"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it"),
    (b"Rar!", "a RAR archive", "unpack it"),
    (b"\x93NUMPY", "a NumPy array", "leave it out"),
    (b"\x7fELF", "a program", "leave it out"),
    *((bytes([0x80, version]), "a pickled Python object", "export the texts first") for version in range(2, 6)),
)
_CONTROLS = bytes([*range(9), *range(14, 27), *range(28, 32)])
_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)
_CONTROL_SHARE = 0.1  # about as many of random bytes are control characters, and half of them are not UTF-8


def check_is_text(head: bytes, name: str, error: type[InputError]) -> None:
    """Raise `error` if the first bytes of a file are not those of a text."""
    kind = next(((what, cure) for magic, what, cure in _KNOWN if head.startswith(magic)), None)
    if head[257:262] == b"ustar":
        kind = "a tar archive", "unpack it (tar xf)"
    if kind is None and _looks_binary(head):
        kind = "binary data (or UTF-16 without a byte order mark)", "leave it out, or save it as UTF-8"
    if kind:
        raise error.expected("text", kind[0], path=name, cure=kind[1], code="not-text")


def _looks_binary(head: bytes) -> bool:
    if head.startswith(_BOMS):
        return False
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls < 4:
        return False
    if controls > _CONTROL_SHARE * len(head):
        return True
    replaced = head.decode("utf-8", "replace").count("\ufffd")
    return controls > 0.02 * len(head) and replaced > 0.1 * len(head)
