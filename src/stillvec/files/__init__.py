"""Reading and writing files: atomic writes, compression, lines of text, digests and the cache folder."""

from stillvec.files.atomic import atomic_file, atomic_folder, check_replaceable, create_part_folder
from stillvec.files.binary_check import check_is_text
from stillvec.files.compression import (
    create_bytes,
    create_local,
    inner_name,
    inner_suffix,
    is_compressed,
    open_bytes,
    open_local,
    read_head,
    unreadable,
)
from stillvec.files.digests import digest, file_digest
from stillvec.files.text_lines import detect_encoding, read_lines
from stillvec.files.user_cache import cache_folder

__all__ = [
    "atomic_file",
    "atomic_folder",
    "cache_folder",
    "check_is_text",
    "check_replaceable",
    "create_bytes",
    "create_local",
    "create_part_folder",
    "detect_encoding",
    "digest",
    "file_digest",
    "inner_name",
    "inner_suffix",
    "is_compressed",
    "open_bytes",
    "open_local",
    "read_head",
    "read_lines",
    "unreadable",
]
