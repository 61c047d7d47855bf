"""Which audits hang on a channel, an acquisition, refused sides or what was attested of them.

An audit counts when the thing was in its scope: as entries it read, or as refused sides its flow counts.
Better one audit too many than one too few: whether a number would move is known only by computing it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.attestations import ACQUISITION, MODEL
from ledger.audit_scope import all_audits, audits_over, design_of, head_size
from ledger.checkpoints import CheckpointFound, known
from ledger.design_scope import asks, chosen
from ledger.index_rows import AttestationRow
from ledger.reading import Reading
from ledger.refusals import RefusedRow
from ledger.show import Record


def in_order(audits: Iterable[Record]) -> list[Record]:
    """Audits each once, in the order of the log."""
    once = {record.row.event: record for record in audits}
    return [once[event] for event in sorted(once)]


def of_channel(reading: Reading, fingerprint: str) -> Iterator[Record]:
    """The audits that ask about a channel, where there is any of it."""
    segments = reading.index.segments(reading.size, channels=[fingerprint])
    for record in audits_over(reading, segments):
        if asks(design_of(record), fingerprint):
            yield record
    yield from of_refused(reading, [side for side in refused(reading) if side.channel == fingerprint])


def of_acquisition(reading: Reading, acquisition: str) -> Iterator[Record]:
    """The audits whose scope lets in an acquisition, where there is any of it."""
    segments = reading.index.segments(reading.size, acquisitions=[acquisition])
    channels = {p.channel for s in segments for p in s.scope if p.acquisition == acquisition}
    for record in audits_over(reading, segments):
        design = design_of(record)
        if any(asks(design, channel) and chosen(design, channel, acquisition) for channel in channels):
            yield record
    yield from of_refused(reading, [side for side in refused(reading) if side.acquisition_id == acquisition])


def of_checkpoint(reading: Reading, found: CheckpointFound) -> Iterator[Record]:
    """The audits that ask about a channel which names a checkpoint."""
    for fingerprint in dict.fromkeys(row.channel.fingerprint for row in found.channels):
        yield from of_channel(reading, fingerprint)


def of_attestation(reading: Reading, row: AttestationRow) -> Iterator[Record]:
    """The audits that came after an attestation and read what it is about: their levels count it.

    None for a claim about a hosted model, which gives no level.
    """
    audits: Iterable[Record] = ()
    if row.kind == ACQUISITION:
        audits = of_acquisition(reading, row.subject)
    elif (found := attested(reading, row)) is not None:
        audits = of_checkpoint(reading, found)
    return (record for record in audits if head_size(record.statement) > row.event)


def attested(reading: Reading, row: AttestationRow) -> CheckpointFound | None:
    """The checkpoint that an attestation is about, None where it is about none."""
    if row.kind != MODEL:
        return None
    found = known(reading.index, reading.objects, reading.size)
    return next((one for one in found if row in one.rows), None)


def refused(reading: Reading) -> tuple[RefusedRow, ...]:
    """Every refused side in view."""
    return reading.index.refused_sides(reading.size)


def of_refused(reading: Reading, sides: Iterable[RefusedRow]) -> Iterator[Record]:
    """The audits whose flow counts a refused side: it was there, and its channel and acquisition in scope."""
    places = {(side.event, side.channel, side.acquisition_id) for side in sides}
    for record in all_audits(reading) if places else ():
        design, at = design_of(record), head_size(record.statement)
        if any(
            event < at and asks(design, channel) and chosen(design, channel, acquisition)
            for event, channel, acquisition in places
        ):
            yield record
