"""The adapter with an agent that finds our library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rdma_core_rig import Open, fake_library

from verbs_adapters import registry
from verbs_adapters.remote.client import RemoteBackend


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_library(tmp_path_factory.mktemp("fake"))


@pytest.fixture
def fake(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Make the adapter; its agent finds the fake library."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library))
    made = []

    def open_(**options: str) -> RemoteBackend:
        backend = registry.create("rdma-core", {"deadline": "60"} | options)
        assert isinstance(backend, RemoteBackend)
        made.append(backend)
        return backend

    yield open_
    for backend in made:
        backend.close()
