"""The revisions of the catalog this version knows, oldest first; cheap to import for readers."""

from __future__ import annotations

REVISIONS = ("0001", "0002")
LATEST = REVISIONS[-1]
