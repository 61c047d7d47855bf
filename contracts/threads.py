"""Threads that stay for as long as the process.

The allocator gives each new thread memory of its own and keeps what the thread freed, so threads that come
and go with every piece of work leave some megabytes behind each time. Work handed to one of these pools must
not wait for other work in the same pool.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

AT_A_TIME = 2  # numpy and Arrow let go of the interpreter; more threads would wait for memory


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


def _forget() -> None:
    for pool in (for_columns, for_blocks, for_segments):
        pool.cache_clear()


os.register_at_fork(after_in_child=_forget)  # threads are not there in a child
