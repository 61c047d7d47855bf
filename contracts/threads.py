"""Threads that stay for as long as the process.

The allocator gives each new thread memory of its own and keeps what the thread freed, so threads that come
and go with every piece of work leave some megabytes behind each time. Work handed to one of these pools must
not wait for other work in the same pool.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

Item = TypeVar("Item")

AT_A_TIME = 2  # numpy and Arrow let go of the interpreter; more threads would wait for memory


@cache
def for_reading() -> ThreadPoolExecutor:
    """Makes what `ahead` gives: one thing after the other, so one thread."""
    return ThreadPoolExecutor(1, "reading")


def ahead(items: Iterator[Item], count: int) -> Generator[Item, None, None]:
    """The items in order, up to `count` of them made in a thread while the caller is at another.

    What the items raise is raised where the next one would come. When the caller takes no more, whatever
    becomes of it, the one being made is waited for: nobody reads on behind the end.
    """
    end = object()
    coming: deque[Future[Item | object]] = deque()
    pool = for_reading()
    # Its thread is started before there is work: interrupted while it starts, it could wait for ever.
    pool.submit(int).result()
    try:
        while True:
            while len(coming) <= count:
                coming.append(pool.submit(next, items, end))
            item = coming[0].result()
            coming.popleft()  # not before: who is interrupted while waiting waits for this one too
            if item is end:
                return
            yield item  # type: ignore[misc]  # not the end, so an item
    finally:
        for each in coming:
            each.cancel()
        wait(coming)


@cache
def for_columns() -> ThreadPoolExecutor:
    """Prepares columns beside each other."""
    return ThreadPoolExecutor(AT_A_TIME, "columns")


@cache
def for_blocks() -> ThreadPoolExecutor:
    """Encodes and hashes blocks of pages beside each other."""
    return ThreadPoolExecutor(AT_A_TIME, "blocks")


@cache
def for_segments() -> ThreadPoolExecutor:
    """Makes the parts of a segment beside each other, and stores them."""
    return ThreadPoolExecutor(AT_A_TIME + 1, "segments")


@cache
def for_ranges() -> ThreadPoolExecutor:
    """Reads and judges ranges of trajectories beside each other."""
    return ThreadPoolExecutor(AT_A_TIME, "ranges")


def _forget() -> None:
    for pool in (for_columns, for_blocks, for_segments, for_ranges, for_reading):
        pool.cache_clear()


os.register_at_fork(after_in_child=_forget)  # threads are not there in a child
