"""A new ledger of two channels, and transport audits of it with few resamples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from audits.transport import TransportResult, transport
from tests.audits.cohorts import Ledger, new_ledger

FEW = 200  # resamples, where intervals are not the point


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path)


def run(ledger: Ledger, **options: Any) -> TransportResult:
    options.setdefault("resamples", FEW)
    return transport(ledger.snapshot(), "direct", "generated", **options)


def result(ledger: Ledger, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run(ledger, **options).audit.result_bytes)
    return found
