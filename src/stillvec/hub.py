"""Files on the Hugging Face Hub: addresses, downloads into its cache, uploads; each failure is one of our errors.

A repository is looked up once and without retries, so a typo costs one request. If the hub cannot be reached, only
what is in the cache is used.
"""

import glob
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from stillvec.errors import FormatError, MissingExtra, StillvecError, UsageError
from stillvec.registry import require

_ADDRESS = re.compile(r"hf:/{1,2}(?P<name>[^/@]+/[^/@]+)(?:@(?P<revision>[^/]+))?(?:/(?P<place>.+?))?/?")
_NAME = re.compile(r"(?!.*(--|\.\.))[\w.-]{1,96}(/[\w.-]{1,96})?", re.ASCII)
_TIMEOUT = 10.0  # seconds until the hub answers
_TOKEN = "set HF_TOKEN or run: hf auth login"

logger = logging.getLogger(__name__)
Choice = Callable[[Iterable[str]], Iterable[str]]


@dataclass(frozen=True)
class HubAddress:
    """`hf://OWNER/NAME[@REVISION][/FOLDER_OR_FILE]`; a slash in a revision is written as %2F."""

    name: str
    revision: str | None = None
    place: str = ""

    def __str__(self) -> str:
        revision = f"@{quote(self.revision, safe='')}" if self.revision else ""
        return f"hf://{self.name}{revision}{'/' * bool(self.place)}{self.place}"


def is_address(path: object) -> bool:
    """Whether a path is an address on the hub, also after `Path` took one of its slashes away."""
    return isinstance(path, str | os.PathLike) and os.fspath(path).startswith("hf:/")


def parse_address(path: str | os.PathLike[str]) -> HubAddress:
    text = os.fspath(path)
    match = _ADDRESS.fullmatch(text)
    if match is None or not _NAME.fullmatch(match["name"]) or not _is_inside(match["place"] or ""):
        raise UsageError.expected("hf://OWNER/NAME[@REVISION][/FOLDER]", repr(text), code="bad-address")
    revision = match["revision"]
    return HubAddress(match["name"], unquote(revision) if revision else None, match["place"] or "")


def download(address: HubAddress, choose: Choice, *, error: type[StillvecError] = FormatError) -> Path:
    """Download the files that `choose` selects from the names in the repository; return the folder of all of them.

    If the hub cannot be reached, the folder is the last one downloaded at this revision.
    """
    hub = _import_hub(f"Reading {address}")
    with _translate(address, error), _quiet():
        info = _look_up(address)
        if info is None:
            options = {"revision": address.revision, "local_files_only": True}
            return Path(hub.snapshot_download(address.name, allow_patterns=[], **options))
        names = [file.rfilename for file in info.siblings or ()]
        outside = next((name for name in names if not _is_inside(name)), None)
        if outside is not None:
            raise error.expected("files inside the repository", repr(outside), where=str(address), code="outside")
        chosen = [*choose(names)]
        if not chosen:
            cure = "a contextual model is a teacher: stillvec distill --teacher"
            raise error.expected("vectors", "no files of any", where=str(address), cure=cure, code="not-found")
        patterns = [*map(glob.escape, chosen)]  # exact names
        return Path(hub.snapshot_download(address.name, revision=address.revision, allow_patterns=patterns))


def is_reachable(name: str, error: type[StillvecError]) -> bool:
    """Whether the hub answers; raise an error if it does not have the model `name`.

    Libraries that download by themselves retry for most of a minute: ask this first.
    """
    if not _NAME.fullmatch(name):
        raise error.expected("a folder, or OWNER/NAME on the Hugging Face Hub", repr(name), code="not-found")
    with _translate(name, error), _quiet():
        return _look_up(HubAddress(name)) is not None


def upload(
    folder: Path,
    name: str,
    *,
    private: bool | None = None,
    token: str | None = None,
    commit_message: str | None = None,
    revision: str | None = None,
) -> str:
    """Upload the files of a folder in one commit, to a repository that is created if need be; return its address."""
    check_name(name)
    hub = _import_hub(f"Uploading to {name}")
    address = HubAddress(name, revision)
    with _translate(address, FormatError), _quiet():
        api = hub.HfApi(library_name="stillvec", token=token)
        if hub.get_token() is None and token is None:
            raise FormatError(f"{address}: uploading needs a token; {_TOKEN}.", code="no-access")
        api.whoami()  # fails at once where there is no network or a bad token
        api.create_repo(name, private=private, exist_ok=True)
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        api.upload_folder(repo_id=name, folder_path=folder, revision=revision, commit_message=commit_message)
    return str(address)


def check_name(name: str) -> None:
    """Refuse a name that the hub would refuse, before any work."""
    if "/" not in name or not _NAME.fullmatch(name):
        raise UsageError.expected("OWNER/NAME", repr(name), where="name on the hub", code="bad-address")


def check_card(text: str) -> Mapping[str, Any]:
    """The metadata of a model card, read as the hub reads it."""
    hub = _import_hub("Uploading a model card")
    try:
        metadata: Mapping[str, Any] = hub.ModelCard(text, ignore_metadata_errors=False).data.to_dict()
    except (ValueError, TypeError, KeyError) as problem:
        raise FormatError.expected("the metadata of a model card", str(problem), where="README.md") from None
    return metadata


def _look_up(address: HubAddress) -> Any:
    """What the hub says about a repository; None if it cannot be reached."""
    hub = _import_hub(f"Reading {address}")
    try:
        return hub.HfApi(library_name="stillvec").model_info(address.name, revision=address.revision, timeout=_TIMEOUT)
    except Exception as problem:
        if not _is_network_failure(problem):
            raise
        logger.info("The Hugging Face Hub cannot be reached (%s); using the cache.", problem)
        return None


def _import_hub(purpose: str) -> Any:
    return require("huggingface_hub", "hub", purpose)


def _is_inside(name: str) -> bool:
    """Whether a name from outside stays inside its folder, on every system."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and not re.search(r"[\\:\x00-\x1f]", name)


def _is_network_failure(problem: BaseException) -> bool:
    """No connection, no answer in time, or offline by request; a server's error is an answer."""
    if isinstance(problem, ConnectionError | TimeoutError):
        return True
    kinds = {kind.__name__ for kind in type(problem).__mro__}
    return bool(kinds & {"TransportError", "OfflineModeIsEnabled", "ConnectTimeout", "ReadTimeout"})


@contextmanager
def _translate(place: HubAddress | str, error: type[StillvecError]) -> Iterator[None]:
    """Raise failures of `huggingface_hub` as one sentence."""
    errors = require("huggingface_hub.errors", "hub", f"Reading {place}")
    try:
        yield
    except (StillvecError, MissingExtra, MemoryError):
        raise
    except Exception as problem:
        code, sentence = _explain(problem, errors)
        raise error(f"{place}: {sentence}.", code=code, path=str(place)) from problem


def _explain(problem: Exception, errors: Any) -> tuple[str, str]:
    response = getattr(problem, "response", None)
    status = getattr(response, "status_code", None)
    if isinstance(problem, errors.GatedRepoError) or status == 403:
        return "no-access", f"your account has no access to it on the Hugging Face Hub; ask its owner, or {_TOKEN}"
    if isinstance(problem, errors.RevisionNotFoundError):
        return "not-found", "the Hugging Face Hub has no such revision of it"
    if isinstance(problem, errors.RepositoryNotFoundError):
        return "not-found", f"not on the Hugging Face Hub, or private; check the name, or {_TOKEN}"
    if status == 401:
        return "no-access", f"the Hugging Face Hub does not accept the token; {_TOKEN}"
    if isinstance(problem, errors.LocalEntryNotFoundError) or _is_network_failure(problem):
        return "no-network", "the Hugging Face Hub cannot be reached, and it is not in the cache"
    if isinstance(problem, OSError) and problem.errno is not None and status is None:
        return "hub", f"could not be written to the cache: {problem.strerror}"
    first = " ".join(str(problem).split())[:200] or type(problem).__name__
    answer = f"the Hugging Face Hub answered {status}" if status else f"{type(problem).__name__}: {first}"
    return "hub", answer


@contextmanager
def _quiet() -> Iterator[None]:
    """No log lines of `huggingface_hub`, and no progress bars unless a person looks."""
    tools = require("huggingface_hub.utils", "hub", "The Hugging Face Hub")
    loud = logging.getLogger("huggingface_hub")
    level, bars = loud.level, not tools.are_progress_bars_disabled()
    loud.setLevel(logging.ERROR)
    hide = bars and not (sys.stderr is not None and sys.stderr.isatty())
    if hide:
        tools.disable_progress_bars()
    try:
        yield
    finally:
        loud.setLevel(level)
        if hide:
            tools.enable_progress_bars()
