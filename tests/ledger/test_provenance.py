"""The provenance rules one by one, and all together against a slow reading of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.channel import Channel
from contracts.digest import blake3_digest, pack
from contracts.errors import UsageError
from ledger.donors import NO_DONORS, SCHEMA, DonorViews
from ledger.provenance import MEETS_ALL, NO_LEVEL, RULES, ProvenanceCount, ScopeFacts, apply_rules
from ledger.scope import Arm, Level, Scope, Standing


def channel(name: str, view: str) -> Channel:
    spec = {"view": {"kind": view}, "presentation": {"layouts": 2}, "readout": {"kind": "label"}}
    return Channel(name, 1, spec, blake3_digest(name.encode()))


DIRECT, SHOWN = channel("direct", "none"), channel("shown", "generated")
REF, ALT = Arm(DIRECT), Arm(SHOWN)
DEFAULT = Scope("transport", (REF, ALT))
TEXT = ("trajectory_id", "endpoint", "view_source", "acquisition_id")
DIGESTS = ("state_hash", "candidates_hash", "request_hash", "view_hash")


def digest(text: str | None) -> bytes | None:
    return None if text is None else pack(blake3_digest(text.encode()))


def entry(**given):
    """An entry that meets every rule, with some of its columns given; digests by any text."""
    row = {
        "trajectory_id": "t0", "step": 0, "endpoint": "before", "view_source": "own", "layout": 0,
        "acquisition_id": "main", "arm": 0,
    } | given  # fmt: skip
    corner = f"{row['trajectory_id']}/{row['step']}/{row['endpoint']}"
    cell = f"{corner}/{row['arm']}/{row['view_source']}/{row['layout']}/{row['acquisition_id']}"
    bound = {
        "state_hash": f"state {corner}",
        "candidates_hash": f"candidates {row['trajectory_id']}/{row['step']}",
        "request_hash": f"request {cell}",
        "view_hash": f"view {corner}" if row["arm"] else None,
    }
    return bound | row


def side(**given):
    """Both endpoints and layouts of a side."""
    return [
        entry(**({"endpoint": endpoint, "layout": layout} | given))
        for endpoint in ("before", "after")
        for layout in (0, 1)
    ]


def table(rows) -> pa.Table:
    rows = sorted(rows, key=lambda row: (row["trajectory_id"], row["step"]))
    columns = {name: pa.array([row[name] for row in rows], pa.string()).dictionary_encode() for name in TEXT}
    columns |= {"step": pa.array([row["step"] for row in rows], pa.int32())}
    columns |= {"layout": pa.array([row["layout"] for row in rows], pa.int16())}
    columns |= {"arm": pa.array([row["arm"] for row in rows], pa.int8())}
    for name in DIGESTS:
        columns[name] = pa.array([digest(row[name]) for row in rows], pa.binary(33))
    return pa.table(columns)


def judged(rows, scope: Scope = DEFAULT, **facts):
    """The rule each entry breaks first (None for none), in the order of the rows."""
    found = apply_rules(table(rows), ScopeFacts(scope, **facts))
    return [None if rule == MEETS_ALL else RULES[rule] for rule in found.rule.tolist()]


def broken(rows, scope: Scope = DEFAULT, **facts) -> set[str | None]:
    return set(judged(rows, scope, **facts))


def test_sound_entries_are_bound_and_kept():
    found = apply_rules(table(side() + side(arm=1)), ScopeFacts(DEFAULT))
    assert found.kept.all()
    assert set(found.level.tolist()) == {Level.BOUND.rank}


def test_no_entries_at_all_are_no_trouble():
    assert len(apply_rules(table([]), ScopeFacts(DEFAULT)).rule) == 0


def test_a_state_that_differs_between_arms_breaks_its_endpoint_only():
    rows = side() + [r | {"state_hash": "other"} if r["endpoint"] == "after" else r for r in side(arm=1)]
    found = judged(rows)
    assert [found[i] for i, r in enumerate(rows) if r["endpoint"] == "before"] == [None] * 4
    assert [found[i] for i, r in enumerate(rows) if r["endpoint"] == "after"] == ["state-frozen"] * 4


def test_two_digests_of_candidates_break_the_whole_transition_and_no_other():
    rows = side() + side(arm=1, candidates_hash="more") + side(step=1)
    assert judged(rows) == ["candidates-frozen"] * 8 + [None] * 4


def test_a_view_must_be_one_over_layouts_and_acquisitions():
    rows = side() + side(arm=1)
    rows[5] |= {"view_hash": "another"}
    assert judged(rows) == [None] * 4 + ["view-bound"] * 2 + [None] * 2
    repeated = side(arm=1) + side(arm=1, acquisition_id="again", view_hash="another")
    assert broken(repeated) == {"view-bound"}


def test_a_view_means_nothing_where_the_channel_shows_none():
    assert broken(side(view_hash=None) + side(layout=0, view_hash="x", endpoint="after")[:1]) == {None}


def test_a_frozen_view_is_the_same_at_both_endpoints():
    scope = Scope("transport", (Arm(SHOWN, "before"),))
    assert broken(side(arm=0, view_source="before", view_hash="v"), scope) == {None}
    rows = side(arm=0, view_source="before", view_hash="v")
    rows[3] |= {"view_hash": "w"}
    assert broken(rows, scope) == {"view-bound"}
    moving = [r | {"view_hash": r["endpoint"]} for r in side(arm=0)]
    assert broken(moving, Scope("transport", (Arm(SHOWN),))) == {None}


def test_one_request_in_two_layouts_was_never_rotated():
    rows = side()
    rows[1] |= {"request_hash": rows[0]["request_hash"]}
    assert judged(rows) == ["request-rotated"] * 2 + [None] * 2


def test_a_repeat_may_send_the_same_request_again():
    assert broken(side(request_hash=None, layout=0)[:1]) == {"level"}
    again = [r | {"acquisition_id": "again"} for r in side()]
    assert broken(side() + again) == {None}
    swapped = [r | {"layout": 1 - r["layout"]} for r in again]
    assert broken(side() + swapped) == {None}


def test_one_request_about_two_states_carried_neither():
    rows = side()
    rows[2] |= {"request_hash": rows[0]["request_hash"]}  # before and after, the same layout
    assert judged(rows) == ["request-bound", None, "request-bound", None]
    still = [r | {"state_hash": "the same"} for r in rows]
    assert broken(still) == {None}


def test_one_request_under_two_views_did_not_show_them():
    scope = Scope("transport", (Arm(SHOWN, "before"), Arm(SHOWN, "after")))
    rows = [
        entry(arm=arm, view_source=source, layout=layout, view_hash=source, request_hash=f"r{layout}")
        for arm, source in enumerate(("before", "after"))
        for layout in (0, 1)
    ]
    assert broken(rows, scope) == {"request-bound"}


@pytest.mark.parametrize("column", DIGESTS)
def test_an_absent_digest_makes_an_entry_declared(column):
    rows = side(arm=1, **{column: None})
    assert broken(rows) == {"level"}
    found = apply_rules(table(rows), ScopeFacts(replace(DEFAULT, require=Level.DECLARED)))
    assert found.kept.all()
    assert set(found.level.tolist()) == {Level.DECLARED.rank}
    absent = {name: int(np.count_nonzero(mask)) for name, mask in found.absent.items()}
    assert absent == {name: 4 if name == column else 0 for name in DIGESTS}


def test_an_entry_is_attested_where_its_channel_and_acquisition_are_together():
    rows, wanted = side() + side(arm=1), replace(DEFAULT, require=Level.ATTESTED)
    assert broken(rows, wanted) == {"level"}
    first, second = (arm.channel.fingerprint for arm in DEFAULT.arms)
    acquisition = rows[0]["acquisition_id"]
    one = Standing(attested=frozenset({(first, acquisition), (second, "another")}))
    assert judged(rows, wanted, standing=one) == [None] * 4 + ["level"] * 4
    assert broken(rows, wanted, standing=Standing(attested=one.attested | {(second, acquisition)})) == {None}
    declared = [row | {"request_hash": None} for row in rows]
    assert broken(declared, wanted, standing=one) == {"level"}


def test_entries_of_a_revoked_channel_are_set_aside_too():
    rows = side() + side(arm=1, state_hash="other")
    void = Standing(revoked_channels=frozenset({DEFAULT.arms[1].channel.fingerprint}))
    assert judged(rows, standing=void) == [None] * 4 + ["channel-revoked"] * 4


def test_an_entry_that_breaks_a_rule_has_no_level_whatever_is_required():
    rows = side(request_hash=None) + side(arm=1, state_hash="other")
    found = apply_rules(table(rows), ScopeFacts(replace(DEFAULT, require=Level.DECLARED)))
    assert set(found.level.tolist()) == {NO_LEVEL}


def test_revoked_entries_are_set_aside_before_anything_is_compared():
    rows = side() + side(arm=1) + side(arm=1, acquisition_id="bad", state_hash="other", view_hash="other")
    bad = Standing(revoked=frozenset({"bad"}))
    assert judged(rows, standing=bad) == [None] * 8 + ["acquisition-revoked"] * 4


def test_entries_that_break_several_rules_count_under_the_first():
    rows = side() + side(arm=1, state_hash="other", candidates_hash="other", request_hash="same")
    assert broken(rows) == {"state-frozen"}


def test_counts_are_by_entry_and_by_transition():
    count = ProvenanceCount()
    rows = side() + side(arm=1) + side(step=1, request_hash=None) + side(step=2) + side(arm=1, step=2)
    rows[-1] |= {"view_hash": "other"}
    for each in (table(rows), table(side(trajectory_id="t1"))):
        count.add(apply_rules(each, ScopeFacts(DEFAULT)), np.ones(each.num_rows, np.int64))
    assert count.entries_in == 24
    assert {rule: n for rule, n in count.entries_out.items() if n} == {"level": 4, "view-bound": 2}
    assert {rule: n for rule, n in count.transitions_out.items() if n} == {"level": 1, "view-bound": 1}
    assert count.levels == {Level.DECLARED: 4, Level.BOUND: 18, Level.ATTESTED: 0}
    assert count.absent["request_hash"] == 4
    assert count.entries_kept == 18
    assert set(count.entries_out) == set(RULES)


class TestDonors:
    SCOPE = Scope("transport", (Arm(SHOWN, "donor"),))

    @staticmethod
    def gave(*rows: tuple[str, int, int, str], number: int = 0) -> DonorViews:
        return DonorViews(
            pa.table(
                [
                    [row[0] for row in rows], pa.array([row[1] for row in rows], pa.int32()),
                    pa.array([row[2] for row in rows], pa.int8()), pa.array([number] * len(rows), pa.int8()),
                    pa.array([digest(row[3]) for row in rows], pa.binary(33)),
                ],
                schema=SCHEMA,
            )
        )  # fmt: skip

    def broken(self, source: str, donors: DonorViews, **given) -> set[str | None]:
        return broken(side(arm=0, view_source=source, view_hash="v", **given), self.SCOPE, donors=donors)

    def test_the_donor_was_shown_the_same_view(self):
        donors = self.gave(("d", 0, 0, "v"), ("d", 0, 1, "v"), ("d", 1, 0, "w"))
        assert self.broken("donor:d", donors) == {None}

    def test_the_donor_was_shown_another_view_at_one_endpoint(self):
        donors = self.gave(("d", 0, 0, "v"), ("d", 0, 1, "w"))
        rows = side(arm=0, view_source="donor:d", view_hash="v")
        assert judged(rows, self.SCOPE, donors=donors) == [None, None, "view-bound", "view-bound"]

    @pytest.mark.parametrize("views", ["vw", "wv"])
    def test_a_donor_shown_two_views_agrees_with_neither(self, views):
        donors = self.gave(*(("d", 0, 0, view) for view in views))
        assert self.broken("donor:d", donors) == {None, "view-bound"}

    def test_the_donor_gives_its_own_step_unless_another_is_named(self):
        donors = self.gave(("d", 3, 0, "w"), ("d", 3, 1, "w"), ("d", 0, 0, "v"))
        assert self.broken("donor:d/3", donors) == {"view-bound"}
        assert self.broken("donor:d", donors) == {None}
        assert self.broken("donor:d/03", self.gave(("d/03", 0, 0, "w"))) == {None, "view-bound"}

    def test_nothing_is_held_against_a_donor_that_is_not_in_the_ledger(self):
        assert self.broken("donor:elsewhere", NO_DONORS) == {None}
        assert self.broken("donor:elsewhere", self.gave(("d", 0, 0, "w"))) == {None}

    def test_the_own_view_of_another_channel_says_nothing(self):
        scope = Scope("transport", (Arm(channel("other", "quote")), Arm(SHOWN, "donor")))
        rows = side(arm=1, view_source="donor:d", view_hash="v")
        assert broken(rows, scope, donors=self.gave(("d", 0, 0, "w"), number=0)) == {None}
        assert "view-bound" in broken(rows, scope, donors=self.gave(("d", 0, 0, "w"), number=1))

    @pytest.mark.parametrize(("source", "itself"), [("t0", True), ("t0/0", True), ("t0/1", False)])
    def test_no_transition_is_its_own_donor(self, source, itself):
        assert self.broken(f"donor:{source}", NO_DONORS) == ({"view-bound"} if itself else {None})


def test_arms_that_share_entries_are_refused():
    with pytest.raises(UsageError, match="compared with itself"):
        Scope("transport", (ALT, Arm(SHOWN)))
    with pytest.raises(UsageError):
        Scope("transport", (Arm(SHOWN, "donor"), Arm(SHOWN, "donor:d")))
    with pytest.raises(UsageError):
        Scope("transport", (Arm(SHOWN, "donor"), Arm(SHOWN, "donor")))
    Scope("transport", (ALT, Arm(SHOWN, "donor")))


def slowly(rows, revoked: frozenset[str], scope: Scope) -> list[str | None]:
    """The rules as sentences about single entries and groups of them."""
    live = [r for r in rows if r["acquisition_id"] not in revoked]
    values = defaultdict(set)
    for r in live:
        arm, transition = scope.arms[r["arm"]], (r["trajectory_id"], r["step"])
        corner = (*transition, r["endpoint"])
        request, source, name = r["request_hash"], r["view_source"], arm.channel.fingerprint
        values["state", corner].add(r["state_hash"])
        values["candidates", transition].add(r["candidates_hash"])
        if arm.channel.needs_view:
            place = transition if source in ("before", "after") else corner
            values["view", place, source, name].add(r["view_hash"])
            values["shown", transition, name, request].add(r["view_hash"])
        values["asked", transition, name, request].add(r["state_hash"])
        values["layout", corner, source, name, r["acquisition_id"], request].add(r["layout"])

    def split(*group: object) -> bool:
        return len(values[group] - {None}) > 1

    def broken_by(r):
        arm, transition = scope.arms[r["arm"]], (r["trajectory_id"], r["step"])
        corner = (*transition, r["endpoint"])
        request, source, name = r["request_hash"], r["view_source"], arm.channel.fingerprint
        needs, asked = arm.channel.needs_view, request is not None
        place = transition if source in ("before", "after") else corner
        required = [r["state_hash"], r["candidates_hash"], request, *([r["view_hash"]] if needs else [])]
        yield "acquisition-revoked", r["acquisition_id"] in revoked
        yield "state-frozen", split("state", corner)
        yield "candidates-frozen", split("candidates", transition)
        yield "view-bound", needs and split("view", place, source, name)
        yield "request-bound", asked and split("asked", transition, name, request)
        yield "request-bound", asked and needs and split("shown", transition, name, request)
        yield "request-rotated", asked and split("layout", corner, source, name, r["acquisition_id"], request)
        yield "level", None in required and scope.require is not Level.DECLARED

    return [next((rule for rule, is_broken in broken_by(r) if is_broken), None) for r in rows]


ARMS = (REF, ALT, Arm(SHOWN, "before"), Arm(SHOWN, "after"))
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "trajectory_id": st.sampled_from("pq"),
            "step": st.integers(0, 1),
            "endpoint": st.sampled_from(["before", "after"]),
            "arm": st.integers(0, 3),
            "layout": st.integers(0, 1),
            "acquisition_id": st.sampled_from(["a", "b", "bad"]),
            "state_hash": st.sampled_from(["s", "s", "s", "s2", None]),
            "candidates_hash": st.sampled_from(["c", "c", "c", "c", "c2", None]),
            "request_hash": st.sampled_from(["r", "r2", "r3", "r4", None]),
            "view_hash": st.sampled_from(["v", "v", "v2", None]),
        }
    ),
    max_size=14,
)


@settings(max_examples=150, deadline=None)
@given(ROWS, st.booleans(), st.sampled_from([Level.DECLARED, Level.BOUND]))
def test_whole_columns_are_judged_as_single_entries_would_be(rows, revoke, require):
    rows = [r | {"view_source": ARMS[r["arm"]].view_source} for r in rows]
    rows.sort(key=lambda r: (r["trajectory_id"], r["step"]))
    revoked = frozenset({"bad"}) if revoke else frozenset()
    scope = Scope("transport", ARMS, require=require)
    assert judged(rows, scope, standing=Standing(revoked=revoked)) == slowly(rows, revoked, scope)


def test_the_order_of_entries_within_a_transition_decides_nothing():
    rows = side() + side(arm=1) + side(arm=1, acquisition_id="again", view_hash="another")
    shuffled = np.random.default_rng(1).permutation(len(rows))
    found = dict(zip(shuffled.tolist(), judged([rows[i] for i in shuffled]), strict=True))
    assert [found[i] for i in range(len(rows))] == judged(rows)
