"""Share vectors on the Hugging Face Hub."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stillvec.formats import local_path, open_vectors, read_manifest, save
from stillvec.formats.model_card import CARD, card
from stillvec.formats.stillvec_folder import LAYOUT, STATISTICS
from stillvec.hub import HubAddress, check_card, check_name, upload
from stillvec.input_checks import check_arguments
from stillvec.vectors import WordVectors


def push_to_hub(
    vectors: WordVectors | str | os.PathLike[str],
    name: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str | None = None,
    revision: str | None = None,
    license: str | None = None,
    language: str | Sequence[str] | None = None,
    datasets: Sequence[str] = (),
    scores: Sequence[Mapping[str, Any]] = (),
    statistics: bool = False,
) -> str:
    """Upload vectors as a stillvec folder with its model card; return the address that `load` reads them from.

    Parameters
    ----------
    vectors: the vectors, or the path of a folder or file. The model card of a folder is uploaded as it is, unless
        something for the card is given.
    name: OWNER/NAME; the repository is created if it does not exist.
    private: create a private repository (default: as the owner's settings say).
    token: of an account that may write there (default: HF_TOKEN, or that of `hf auth login`).
    commit_message: of the one commit (default: the hub's).
    revision: the branch to write to; it is created if it does not exist (default: main).
    license: for the card, as the hub abbreviates it, such as "apache-2.0" (default: none).
    language: for the card, codes such as "en" (default: none).
    datasets: for the card, names on the hub of the texts the vectors were made from (default: none).
    scores: for the card, as `report.to_json()["scores"]` has them (default: none).
    statistics: also upload what is needed to merge and to add text. It is large, and may contain the words of each
        sentence (default: False).
    """
    check_arguments(push_to_hub, locals())
    check_name(name)
    facts = {"license": license, "language": language, "datasets": [*datasets]}
    metadata = {key: value for key, value in facts.items() if value}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "vectors"
        source = None if isinstance(vectors, WordVectors) else local_path(vectors, statistics=statistics)
        if source is not None and (source / "manifest.json").is_file():
            open_vectors(source)  # nothing damaged is uploaded
            folder.mkdir()
            for file in LAYOUT.names:
                if (source / file).is_file() and (statistics or file != STATISTICS):
                    shutil.copy(source / file, folder / file)
        else:
            save(vectors if isinstance(vectors, WordVectors) else open_vectors(vectors), folder, format="stillvec")
        place = folder / CARD
        if metadata or scores or isinstance(vectors, WordVectors) or not place.is_file():
            text = card(read_manifest(folder), scores, metadata)
            usage = f'stillvec.load("{HubAddress(name, revision)}")'
            place.write_text(re.sub(r'stillvec\.load\("FOLDER"\).*', usage, text), encoding="utf-8")
        check_card(place.read_text(encoding="utf-8"))
        return upload(folder, name, private=private, token=token, commit_message=commit_message, revision=revision)
