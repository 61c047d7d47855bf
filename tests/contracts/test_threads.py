"""Work done ahead in a thread: the same items, faults where they belong, nothing left behind."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from contracts.threads import ahead


class TestAhead:
    def test_the_same_items_in_the_same_order(self) -> None:
        assert [*ahead(iter(range(50)))] == [*range(50)]
        assert [*ahead(iter([]))] == []
        assert [*ahead(iter([None, None]))] == [None, None]

    def test_one_item_is_made_beside_the_one_in_use(self) -> None:
        made = threading.Event()

        def items() -> Iterator[int]:
            yield 0
            made.set()
            yield 1

        found = ahead(items())
        assert next(found) == 0
        assert made.wait(10)
        assert [*found] == [1]

    def test_a_fault_comes_after_what_was_made_before_it(self) -> None:
        def items() -> Iterator[int]:
            yield 0
            raise ValueError("the second one")

        found = ahead(items())
        assert next(found) == 0
        with pytest.raises(ValueError, match="the second one"):
            next(found)

    def test_left_early_the_thread_ends(self) -> None:
        before = threading.active_count()
        found = ahead(iter(range(1000)))
        next(found)
        found.close()
        assert threading.active_count() == before
