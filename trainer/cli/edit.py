"""`edit`: answer the requests of a workbench, one JSON line each.

Requests are lines `{"step": 1, "kind": "complete", "wishes": [...], "request": {}}` of a growing file; answers are
lines of another file. `{"stop": 1}` ends the search of a step with its incumbent, `{"end": true}` ends the process.
"""

from __future__ import annotations

import json
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from trainer.certificate import Status
from trainer.cli.command import Options
from trainer.cli.interrupts import Interrupts
from trainer.cli.orphans import exit_with_parent
from trainer.cli.training import (
    add_dependence_flags,
    add_training_arguments,
    checked_parameters,
    counts_of,
    editing_request,
    read_data,
    run_training,
)
from trainer.counts.folder import holds_counts
from trainer.counts.workbench import CountedSession
from trainer.data.formats.staged import by_lines
from trainer.errors import ParameterError, TrainerError
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor
from trainer.registry import editable_ids, get, method_for
from trainer.training.warm_up import warm_workbench
from trainer.tree.file import read_model
from trainer.workbench.answers import Emit, answer
from trainer.workbench.counted import answer as counted_answer
from trainer.workbench.requests import WorkbenchSession

AnswerStep = Callable[[dict[str, Any], Monitor, Emit, Path], tuple[dict[str, Any], dict[str, Any] | None]]
POLL_SECONDS = 0.02  # pause between two reads of the request file

HELP = "Answer questions about wishes and good trees, line by line, on a CSV (also .gz), .xlsx, Parquet or Arrow file, or on a folder of counts."


def add_arguments(parser: ArgumentParser) -> None:
    add_training_arguments(parser, target_required=False)  # a folder of counts already names its target
    parser.add_argument("--method", default=method_for(Role.ONE_PROVED).id, choices=editable_ids())
    add_dependence_flags(parser)
    parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out for testing")
    parser.add_argument("--schema", metavar="FILE", help="JSON list of columns: name, kind, missing, unit, role")
    parser.add_argument("--base", metavar="MODEL.json", help="the version that the editing begins with")
    parser.add_argument("--name", default="", help="a name, stored in the model files")
    parser.add_argument("--requests", required=True, metavar="FILE", help="a file that grows by one line per question")
    parser.add_argument("--progress", required=True, metavar="FILE", help="where answers are appended")


def run(options: Options) -> int:
    exit_with_parent()
    return run_training(_serve, options)


def _serve(options: Options, interrupts: Interrupts) -> None:
    raw = checked_parameters(get(options["method"]), options)
    base = read_model(options["base"]).tree if options["base"] else None
    if holds_counts(options["data"]):
        counted = CountedSession(counts_of({**options, "progress": None}), raw, name=options["name"])
        _loop(counted.monitor, partial(counted_answer, counted, base), options, interrupts)
        return
    if not options["target"]:
        raise ParameterError({"target": "name the column to predict."})
    table, labels, _ = read_data(options)
    # users count rows in the uploaded file, while the table numbers the rows that were stored
    table = by_lines(table, options["data"])
    request, _ = editing_request(options, table, labels, raw)
    session = WorkbenchSession(request)
    _loop(session.monitor, partial(answer, session, base), options, interrupts)


def _loop(monitor: Callable[[], Monitor], answer_step: AnswerStep, options: Options, interrupts: Interrupts) -> None:
    with Path(options["progress"]).open("a", encoding="utf-8") as stream:
        RequestLoop(monitor, answer_step, Path(options["requests"]), stream, interrupts).serve()


class RequestLoop:
    """Loop that reads requests, answers them one by one in a thread, and watches for stops."""

    def __init__(
        self,
        new_monitor: Callable[[], Monitor],
        answer_step: AnswerStep,
        requests: Path,
        stream: TextIO,
        interrupts: Interrupts,
    ) -> None:
        self.new_monitor = new_monitor
        self.answer_step = answer_step
        self.requests = requests
        self.stream = stream
        self.interrupts = interrupts
        self.offset = 0  # number of bytes of the request file that were read
        self.waiting: list[dict[str, Any]] = []
        self.stopped: set[int] = set()
        self.ended = False
        self.warmed = False
        self.step: int | None = None
        self.monitor: Monitor | None = None
        self.lock = threading.Lock()

    def serve(self) -> None:
        """Answer requests until a request or a signal ends the loop."""
        # register a monitor, so that a signal between two requests ends the process, too
        self.interrupts.on_start(Monitor())
        self._write({"phase": "ready"})
        thread: threading.Thread | None = None
        while not (self.ended or self.interrupts.cancelled):
            self._read()
            if thread is not None and not thread.is_alive():
                thread = None
            if thread is None and self.waiting:
                step = self.waiting.pop(0)
                if step["kind"] == "good" and not self.warmed:
                    self.warmed = True
                    warm_workbench()  # compile first, so that compiling does not count against the time limit
                monitor = self.new_monitor()
                self.step = int(step["step"])
                self.monitor = monitor
                self.interrupts.on_start(monitor)
                if self.step in self.stopped:
                    monitor.stop(Status.CANCELLED)
                thread = threading.Thread(target=self._answer, args=(step, monitor), daemon=True)
                thread.start()
            time.sleep(POLL_SECONDS)

    def _read(self) -> None:
        with self.requests.open("rb") as stream:
            stream.seek(self.offset)
            content = stream.read()
        complete = content.rfind(b"\n") + 1
        self.offset += complete
        for line in content[:complete].splitlines():
            record = json.loads(line)
            if "stop" in record:
                self.stopped.add(record["stop"])
                if record["stop"] == self.step and self.monitor is not None:
                    self.monitor.stop(Status.CANCELLED)
            elif "end" in record:
                self.ended = True
            else:
                self.waiting.append(record)

    def _answer(self, step: dict[str, Any], monitor: Monitor) -> None:
        number = step["step"]

        def write_partial(record: dict[str, Any]) -> None:
            self._write({"step": number, "partial": record})

        try:
            result, document = self.answer_step(step, monitor, write_partial, self.requests.parent)
        except (TrainerError, TypeError) as error:
            self._write({"step": number, "error": " ".join(str(error).split())})
            return
        except MemoryError:
            self._write({"step": number, "error": "out of memory. Set a smaller depth or a lower slack"})
            return
        self._write({"step": number, "result": result, "document": document})

    def _write(self, record: dict[str, Any]) -> None:
        with self.lock:
            self.stream.write(json.dumps(record, allow_nan=False) + "\n")
            self.stream.flush()
