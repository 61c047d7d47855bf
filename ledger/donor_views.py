"""Reading the views that donors were shown themselves, to hold the views of their receivers against."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.digest import pack
from ledger.coded import coded
from ledger.donors import NO_DONORS, SCHEMA, DonorViews
from ledger.index_rows import SegmentRow
from ledger.matching import Mask, spread
from ledger.objects import Objects
from ledger.scope import DONOR, OWN, Scope
from ledger.segment_rows import SegmentRows

COLUMNS = ("trajectory_id", "step", "endpoint", "view_source", "channel", "acquisition_id", "view_hash")


def collect(
    objects: Objects,
    segments: Sequence[SegmentRow],
    scope: Scope,
    view_sources: Collection[str],
    revoked: Collection[str],
) -> DonorViews:
    """The own views of the donors that `view_sources` name, in the channels of the scope that show views.

    A donor may lie outside everything else the scope says; only revoked acquisitions are left out.
    """
    named = {match["trajectory"] for source in view_sources if (match := DONOR.fullmatch(source))}
    viewed = {arm.channel.fingerprint for arm in scope.arms if arm.channel.needs_view}
    if not named or not viewed:
        return NO_DONORS
    donors = sorted(named, key=str.encode)
    found = [SCHEMA.empty_table()]
    for segment in segments:
        if not viewed.isdisjoint(segment.channels):
            rows = SegmentRows(objects, segment, (donors[0], donors[-1]))
            for _, table in rows.tables(COLUMNS):
                found += _own_views(table.filter(pa.array(_spoken(table, named, revoked))), scope, viewed)
    return DonorViews(pa.concat_tables(found))


def _spoken(table: pa.Table, donors: Collection[str], revoked: Collection[str]) -> Mask:
    """The rows in which a donor says which view it was shown itself."""
    spoken: Mask = (
        spread(coded(table["trajectory_id"]), donors.__contains__)
        & spread(coded(table["view_source"]), OWN.__eq__)
        & ~spread(coded(table["acquisition_id"]), revoked.__contains__)
        & pc.is_valid(table["view_hash"]).to_numpy()
    )
    return spoken


def _own_views(rows: pa.Table, scope: Scope, viewed: Collection[str]) -> list[pa.Table]:
    """The distinct views of some rows, for each channel of the scope that shows views."""
    fingerprints = [arm.channel.fingerprint for arm in scope.arms]
    channel = coded(rows["channel"])
    found = []
    for fingerprint in sorted(viewed):
        of_channel = rows.filter(pa.array(spread(channel, pack(fingerprint).__eq__)))
        endpoint = np.asarray(pc.equal(of_channel["endpoint"], "after").to_numpy(), np.int8)
        number = np.full(len(endpoint), fingerprints.index(fingerprint), np.int8)
        views = pa.table(
            [
                of_channel["trajectory_id"].cast(pa.string()), of_channel["step"], pa.array(endpoint),
                pa.array(number), of_channel["view_hash"],
            ],
            schema=SCHEMA,
        )  # fmt: skip
        found.append(views.group_by(SCHEMA.names).aggregate([]))
    return found
