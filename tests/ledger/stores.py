"""Object stores of both forms for tests, and bytes in them that nobody put there properly."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import obstore

from ledger.bucket_requests import memory
from ledger.objects import Staging, Store
from ledger.objects_bucket import Bucket
from ledger.objects_folder import Folder

FORMS = ("folder", "memory")


def new_store(form: str, place: Path) -> Store:
    """An empty store; what it stages goes below `place` in either form."""
    if form == "folder":
        return Folder(place)
    return replace(Bucket.new_memory(), beside=Staging(place / "staging"))


def overwrite(store: Store, name: str, data: bytes) -> None:
    """Bytes under any name, as somebody with a shell puts them there."""
    if isinstance(store, Folder):
        path = store.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    else:
        assert isinstance(store, Bucket)
        obstore.put(memory(store.url), name, data)
