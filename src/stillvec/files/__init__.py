"""Reading and writing files: atomic writes, compression, lines of text, digests and the cache folder."""

from stillvec.files.atomic import atomic_file, atomic_folder, create_part_folder, early_folder, sync_path
from stillvec.files.binary_check import check_is_text
from stillvec.files.compression import (
    copy_temporary,
    create_bytes,
    create_local,
    find_parquet_chunks,
    inner_name,
    inner_suffix,
    is_compressed,
    open_bytes,
    open_local,
    read_head,
    unreadable,
)
from stillvec.files.csv_records import read_records
from stillvec.files.digests import ParallelDigest, digest, digest_arrays, file_digest
from stillvec.files.folder_layout import (
    FolderLayout,
    check_not_input,
    check_place,
    check_replaceable,
    exists_error,
    place_beside,
    read_object,
)
from stillvec.files.output_lock import lock_outputs, reserve_output
from stillvec.files.temporary_names import remove_abandoned, scratch_folder
from stillvec.files.text_lines import decode_lines, detect_encoding, read_lines
from stillvec.files.user_cache import cache_folder

__all__ = [
    "FolderLayout",
    "ParallelDigest",
    "atomic_file",
    "atomic_folder",
    "cache_folder",
    "check_is_text",
    "check_not_input",
    "check_place",
    "check_replaceable",
    "copy_temporary",
    "create_bytes",
    "create_local",
    "create_part_folder",
    "decode_lines",
    "detect_encoding",
    "digest",
    "digest_arrays",
    "early_folder",
    "exists_error",
    "file_digest",
    "find_parquet_chunks",
    "inner_name",
    "inner_suffix",
    "is_compressed",
    "lock_outputs",
    "open_bytes",
    "open_local",
    "place_beside",
    "read_head",
    "read_lines",
    "read_object",
    "read_records",
    "remove_abandoned",
    "reserve_output",
    "scratch_folder",
    "sync_path",
    "unreadable",
]
