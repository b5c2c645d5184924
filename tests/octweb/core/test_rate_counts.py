"""Processes share their counts of calls, so that a limit and its headers hold for all of them together."""

from __future__ import annotations

import threading

import pytest
from django.db import DatabaseError, connection

from octweb.core import rate_counts, throttles
from octweb.core.models import RateCount
from octweb.core.rate_counts import synchronise
from octweb.core.throttles import WindowKey, Windows

pytestmark = pytest.mark.django_db
LIMIT = (10, 60)
CALLER = "stranger 10.1.2.3"


@pytest.fixture
def clock(monkeypatch):
    """Provide a clock in the middle of a window, which tests move."""
    moment = [6_030.0]
    for module in (throttles, rate_counts):
        monkeypatch.setattr(module, "clock", lambda: moment[0])
    return moment


def call(windows: Windows, times: int, caller: str = CALLER) -> int:
    """Call so often, and return how many calls were accepted."""
    return sum(windows.take(caller, *LIMIT) == 0 for _ in range(times))


def left(windows: Windows, caller: str = CALLER) -> int:
    return windows.left(caller, *LIMIT)[0]


def test_processes_share_one_limit(clock):
    one = Windows()
    two = Windows()
    assert (call(one, 4), call(two, 3)) == (4, 3)
    assert (left(one), left(two)) == (6, 7)
    for windows in (one, two, one):
        synchronise(windows)
    assert (left(one), left(two)) == (3, 3)
    assert call(two, 5) == 3
    synchronise(two)
    synchronise(one)
    assert (left(one), call(one, 1), call(one, 1, "user 5")) == (0, 0, 1)
    assert sum(RateCount.objects.values_list("calls", flat=True)) == 10


def test_calls_between_reading_and_taking_over_are_kept(clock, monkeypatch):
    windows = Windows()
    call(windows, 2)
    real = rate_counts.add_calls

    def add_calls(calls):
        sums = real(calls)
        call(windows, 3)
        return sums

    monkeypatch.setattr(rate_counts, "add_calls", add_calls)
    synchronise(windows)
    assert left(windows) == 5
    synchronise(windows)
    assert RateCount.objects.get().calls == 2 + 3


def test_window_before_counts_calls_of_other_processes(clock):
    one = Windows()
    two = Windows()
    call(one, 10)
    synchronise(one)
    clock[0] += 60  # the same place in the next window: half of the ten still count
    assert call(two, 1) == 1
    assert left(two) == 9
    synchronise(two)
    assert left(two) == left(one) - 1 == 4


def test_caller_of_another_process_is_refreshed_without_a_call(clock):
    one = Windows()
    two = Windows()
    call(one, 1)
    synchronise(one)
    call(two, 8)
    synchronise(two)
    synchronise(one)
    assert left(one) == 1


def test_calls_stay_in_memory_if_the_database_fails(clock, monkeypatch):
    windows = Windows()
    call(windows, 4)

    def fail(calls):
        raise DatabaseError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(rate_counts, "add_calls", fail)
        with pytest.raises(DatabaseError):
            synchronise(windows)
    call(windows, 1)
    synchronise(windows)
    assert (left(windows), RateCount.objects.get().calls) == (5, 5)


def test_limit_holds_if_another_host_deletes_the_rows(clock):
    """A host whose clock is some minutes fast takes all rows for old ones."""
    windows = Windows()
    accepted = 0
    for _ in range(5):
        accepted += call(windows, 4)
        synchronise(windows)
        RateCount.objects.all().delete()
    assert accepted == LIMIT[0]


def test_calls_of_old_windows_are_not_kept(clock):
    windows = Windows()
    for _ in range(5):
        call(windows, 1)
        windows.give_back(windows.drain(now=clock[0]))
        clock[0] += 60
    assert [key.number for key in windows.drain(now=clock[0])] == [104]


def test_rows_contain_no_address_and_end(clock):
    windows = Windows()
    call(windows, 1)
    synchronise(windows)
    row = RateCount.objects.get()
    assert (len(row.caller), row.ends) == (64, 6_060)
    assert "10.1.2.3" not in row.caller
    clock[0] += 300
    call(windows, 1, "user 5")
    synchronise(windows)
    assert RateCount.objects.get().caller != row.caller


def test_idle_process_asks_the_database_nothing(clock, django_assert_num_queries):
    windows = Windows()
    call(windows, 1)
    synchronise(windows)
    clock[0] += 120
    with django_assert_num_queries(0):
        synchronise(windows)


@pytest.mark.django_db(transaction=True)
def test_sums_are_exact_when_processes_write_at_once():
    number = int(throttles.clock() // 60) + 1
    keys = [WindowKey(f"user {i}", 60, number) for i in range(40)]
    begin = threading.Barrier(3)

    def add(order: int) -> None:
        begin.wait()
        for _ in range(5):
            rate_counts.add_calls(dict.fromkeys(keys[::order], 2))
        connection.close()

    threads = [threading.Thread(target=add, args=(order,)) for order in (1, -1, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(rate_counts.add_calls(dict.fromkeys(keys, 0)).values()) == {3 * 5 * 2}
