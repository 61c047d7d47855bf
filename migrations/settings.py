"""How a catalog file is written, whoever writes it; cheap to import.

SQLite keeps its rollback journal in every version of the library. A write-ahead log would need files
beside the catalog even for reading, so a home on a read-only disk could not be opened, and libraries
before 3.51.3 can lose committed rows of it; EXTRA makes the deletion of the journal, which is the
commit, durable as well (sqlite.org/pragma.html#pragma_synchronous).
"""

from __future__ import annotations

PRAGMAS = (
    "PRAGMA journal_mode=DELETE",
    "PRAGMA synchronous=EXTRA",
    "PRAGMA recursive_triggers=ON",
    # A transaction larger than the cache would lock readers out before its commit.
    "PRAGMA cache_spill=OFF",
)
BEGIN = "BEGIN IMMEDIATE"  # holds the write lock from the start, where a plain BEGIN would wait for a write
