"""A small HTTP server with the part of the Hugging Face Hub's API that `huggingface_hub` uses for models."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

TOKEN = "hf_" + "x" * 34


def _digest(content: bytes) -> str:
    return hashlib.sha1(content).hexdigest()


@dataclass
class Repository:
    private: bool = False
    gated: bool = False
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)

    def commit(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        sha = _digest(repr((branch, sorted(files.items()), len(self.commits))).encode())
        self.commits[sha], self.branches[branch] = dict(files), sha
        return sha

    def find(self, revision: str) -> str | None:
        return revision if revision in self.commits else self.branches.get(revision)


class FakeHub:
    """Repositories by name, and what was requested."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[str] = []
        self.uploads: dict[str, bytes] = {}  # of large files, by SHA-256
        self.broken: dict[str, int] = {}  # status by part of the path
        self.cut: set[str] = set()  # files whose download ends halfway
        self.connections: list[socket.socket] = []
        hub = self

        class Handler(_Handler):
            fake = hub

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def add(self, name: str, files: Mapping[str, bytes], **options: bool) -> Repository:
        repository = self.repositories[name] = Repository(**options)
        repository.commit(files)
        return repository

    @contextmanager
    def serve(self) -> Iterator[FakeHub]:
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.stop()
            thread.join()

    def stop(self) -> None:
        """Refuse connections from now on, and end those that are open."""
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeHub
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.fake.connections.append(self.connection)

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._handle()

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = urlsplit(self.path).path
        self.fake.requests.append(f"{self.command} {path}")
        for part, status in self.fake.broken.items():
            if part in path:
                return self._answer({"error": "broken"}, status)
        routes = {
            r"GET /api/whoami-v2": self._name_user,
            r"POST /api/repos/create": self._create,
            r"POST /api/validate-yaml": self._validate,
            r"(?:GET|HEAD) /api/models/([^/]+(?:/[^/]+)?)(?:/revision/([^/]+))?": self._describe,
            r"GET /api/models/(.+)/tree/([^/]+)": self._list,
            r"(?:GET|HEAD) /(.+)/resolve/([^/]+)/(.+)": self._send_file,
            r"POST /api/models/(.+)/branch/([^/]+)": self._create_branch,
            r"POST /api/models/(.+)/preupload/([^/]+)": self._plan_upload,
            r"POST /(.+)\.git/info/lfs/objects/batch": self._plan_large,
            r"PUT /large/(\w+)": self._receive_large,
            r"POST /api/models/(.+)/commit/([^/]+)": self._commit,
        }
        for pattern, answer in routes.items():
            if match := re.fullmatch(pattern, f"{self.command} {path}"):
                answer(body, *(unquote(group) if group else group for group in match.groups()))
                return None
        return self._answer({"error": "no such route"}, 404)

    def _answer(self, content: object, status: int = 200, **headers: str) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        for name, value in {"Content-Length": str(len(raw)), "Content-Type": "application/json", **given}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    @property
    def _has_token(self) -> bool:
        return self.headers.get("Authorization") == f"Bearer {TOKEN}"

    def _open(self, name: str, *, write: bool = False) -> Repository | None:
        repository = self.fake.repositories.get(name)
        if repository is None or (repository.private and not self._has_token):
            status = 404 if self._has_token else 401
            self._answer({"error": "Repository not found"}, status, X_Error_Code="RepoNotFound")
            return None
        if repository.gated and not self._has_token:
            self._answer({"error": "gated"}, 401, X_Error_Code="GatedRepo")
            return None
        if write and not self._has_token:
            self._answer({"error": "Invalid username or password."}, 401)
            return None
        return repository

    def _files(self, name: str, revision: str) -> tuple[str, dict[str, bytes]] | None:
        repository = self._open(name)
        sha = repository.find(revision) if repository else None
        if repository is not None and sha is None:
            self._answer({"error": "Invalid rev id"}, 404, X_Error_Code="RevisionNotFound")
        return None if repository is None or sha is None else (sha, repository.commits[sha])

    def _name_user(self, body: bytes) -> None:
        answer: tuple[dict[str, Any], int] = ({"type": "user", "name": "ada", "orgs": [], "auth": {}}, 200)
        self._answer(*(answer if self._has_token else ({"error": "Invalid credentials"}, 401)))

    def _validate(self, body: bytes) -> None:
        self._answer({"errors": [], "warnings": []})

    def _describe(self, body: bytes, name: str, revision: str | None) -> None:
        if (found := self._files(name, revision or "main")) is not None:
            sha, files = found
            siblings = [{"rfilename": file} for file in files]
            self._answer({"id": name, "modelId": name, "sha": sha, "siblings": siblings, "private": False, "tags": []})

    def _list(self, body: bytes, name: str, revision: str) -> None:
        if (found := self._files(name, revision)) is not None:
            self._answer(
                [
                    {"type": "file", "path": path, "size": len(content), "oid": _digest(content)}
                    for path, content in found[1].items()
                ]
            )

    def _send_file(self, body: bytes, name: str, revision: str, file: str) -> None:
        if (found := self._files(name, revision)) is None:
            return
        sha, files = found
        if file not in files:
            self._answer({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=sha)
            return
        content = files[file]
        facts = {"ETag": f'"{_digest(content)}"', "X_Repo_Commit": sha, "Accept_Ranges": "bytes"}
        if file in self.fake.cut and self.command == "GET":
            self.send_response(200)
            for header, value in facts.items():
                self.send_header(header.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
            return
        self._answer(content, **facts, Content_Type="application/octet-stream")

    def _create(self, body: bytes) -> None:
        facts = json.loads(body)
        name = f"{facts.get('organization') or 'ada'}/{facts['name']}"
        if not self._has_token:
            self._answer({"error": "Invalid username or password."}, 401)
        elif not name.startswith("ada/"):
            self._answer({"error": "no rights"}, 403, X_Error_Message="no rights")
        elif name in self.fake.repositories:
            self._answer({"error": "You already created this model repo"}, 409)
        else:
            private = bool(facts.get("private") or facts.get("visibility") == "private")
            self.fake.add(name, {".gitattributes": b"*.safetensors filter=lfs\n"}, private=private)
            self._answer({"url": f"{self.fake.address}/{name}", "name": name})

    def _create_branch(self, body: bytes, name: str, branch: str) -> None:
        if (repository := self._open(name, write=True)) is not None:
            existed = branch in repository.branches
            repository.branches.setdefault(branch, repository.branches["main"])
            self._answer({}, 409 if existed else 200)

    def _plan_upload(self, body: bytes, name: str, revision: str) -> None:
        if self._open(name, write=True) is not None:
            paths = [file["path"] for file in json.loads(body)["files"]]
            modes = ["lfs" if path.endswith(".safetensors") else "regular" for path in paths]
            files = [
                {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": None}
                for path, mode in zip(paths, modes, strict=True)
            ]
            self._answer({"files": files})

    def _plan_large(self, body: bytes, name: str) -> None:
        if self._open(name, write=True) is not None:
            objects = [
                {**item, "actions": {"upload": {"href": f"{self.fake.address}/large/{item['oid']}", "header": {}}}}
                for item in json.loads(body)["objects"]
            ]
            self._answer({"transfer": "basic", "objects": objects})

    def _receive_large(self, body: bytes, oid: str) -> None:
        self.fake.uploads[oid] = body
        self._answer({}, 200 if hashlib.sha256(body).hexdigest() == oid else 400)

    def _commit(self, body: bytes, name: str, revision: str) -> None:
        if (repository := self._open(name, write=True)) is None:
            return
        files = dict(repository.commits[repository.branches[revision]])
        for line in body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                repository.messages.append(value["summary"])
            elif item["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif item["key"] == "lfsFile":
                files[value["path"]] = self.fake.uploads[value["oid"]]
        sha = repository.commit(files, revision)
        url = f"{self.fake.address}/{name}/commit/{sha}"
        self._answer({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})
