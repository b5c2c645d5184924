"""A slow sink delays neither reports nor the end of a search."""

from __future__ import annotations

import threading

from trainer.certificate import Status
from trainer.methods.monitor import Monitor
from trainer.tree.nodes import DraftLeaf


def test_slow_sink_blocks_nothing_and_keeps_order():
    begun = threading.Event()
    go_on = threading.Event()
    seen = []

    def slow(progress, draft):
        begun.set()
        assert go_on.wait(30)
        seen.append(progress.incumbent)

    monitor = Monitor(sink=slow)
    first = threading.Thread(target=lambda: monitor.report(incumbent=0.5, draft=DraftLeaf()))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(target=lambda: monitor.report(incumbent=0.75))
    others = [
        threading.Thread(target=lambda: monitor.report(nodes=7)),
        threading.Thread(target=lambda: monitor.stop(Status.CANCELLED)),
        threading.Thread(target=monitor.snapshot),
    ]
    for thread in others:
        thread.start()
        thread.join(30)
        assert not thread.is_alive()  # it ends although the sink still holds the first record
    second.start()
    assert seen == []
    go_on.set()
    for thread in (first, second):
        thread.join(30)
    assert seen == [0.5, 0.75]
    assert (monitor.nodes, monitor.reason) == (7, Status.CANCELLED)
