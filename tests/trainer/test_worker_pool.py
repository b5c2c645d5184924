"""Threads of a pool share jobs and help each other."""

from __future__ import annotations

import threading
import time

import pytest

from trainer.worker_pool import WorkerPool


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_every_job_is_done_once(threads):
    crew = WorkerPool(threads=threads)
    done = []

    def work(job):
        done.append(job)
        return [((len(child), int(child, 2)), child) for child in (job + "0", job + "1")] if len(job) < 9 else []

    crew.run((0, 0), "1", work)
    assert sorted(done) == sorted(bin(k)[2:] for k in range(1, 512))
    if threads == 1:
        assert done == sorted(done, key=lambda job: (len(job), job))  # the order is breadth first


def test_block_waits_for_helping_threads():
    crew = WorkerPool(threads=2)
    events = []
    inside = threading.Event()

    def help_out():
        inside.set()
        time.sleep(0.05)
        events.append("helped")

    def work(job):
        with crew.share_work(help_out):
            assert inside.wait(60)
        events.append("done")
        return []

    crew.run((0,), None, work)
    assert events == ["helped", "done"]


def test_idle_helper_is_called_once():
    crew = WorkerPool(threads=2)
    calls = []
    helped = threading.Event()

    def help_out():
        calls.append(1)
        helped.set()

    def work(job):
        with crew.share_work(help_out):
            assert helped.wait(60)
            time.sleep(0.1)  # a second call would have come by now
        return []

    crew.run((0,), 1, work)
    assert calls == [1]


@pytest.mark.parametrize("where", ["work", "help"])
@pytest.mark.parametrize("threads", [2, 3])
def test_an_error_is_raised_by_the_calling_thread(where, threads):
    crew = WorkerPool(threads=threads)
    helping = threading.Event()

    def fail():
        helping.set()
        raise KeyError("lost")

    def work(job):
        if where == "work" and job == 5:
            raise KeyError("lost")
        if where == "help" and job == 1:
            with crew.share_work(fail):
                assert helping.wait(60)
        return [((job + 1,), job + 1)] if job < 50 else []

    with pytest.raises(KeyError, match="lost"):
        crew.run((1,), 1, work)
