"""`manage.py edit`: a warm workbench that answers one line of JSON after the other. It never opens the database.

Requests are lines `{"step": 1, "kind": "complete", "wishes": [...], "request": {}}` of a file that grows, answers lines of another one;
`{"stop": 1}` ends the search of a step with its best tree so far, `{"end": true}` the process.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from octweb.core.orphans import exit_with_parent
from octweb.runs.command import TrainingCommand, add_dependence_flags, with_schema
from octweb.workbench.answers import answer
from trainer.certificate import Status
from trainer.data.formats.staged import by_lines
from trainer.errors import TrainerError
from trainer.methods.capabilities import Role
from trainer.methods.monitor import Monitor
from trainer.registry import editable_ids, get, method_for
from trainer.table import Labels, Table
from trainer.training.rewarded import as_costs
from trainer.training.run import TrainRequest
from trainer.training.warm_up import warm_workbench
from trainer.tree.file import read_model
from trainer.workbench.requests import WorkbenchSession

LOOK = 0.02  # seconds between looks at the file of requests


class Command(TrainingCommand):
    help = (
        "Answer questions about wishes and good trees, line by line, on a CSV (also .gz), .xlsx, Parquet or Arrow file."
    )

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("--method", default=method_for(Role.ONE_PROVED).id, choices=editable_ids())
        add_dependence_flags(parser)
        parser.add_argument("--test-share", type=float, default=0.0, help="share of the rows held out for testing")
        parser.add_argument("--schema", metavar="FILE", help="JSON list of columns: name, kind, missing, unit, role")
        parser.add_argument("--base", metavar="MODEL.json", help="the version that the editing begins with")
        parser.add_argument("--name", default="", help="a name, kept in the model files")
        parser.add_argument(
            "--requests", required=True, metavar="FILE", help="a file that grows by one line per question"
        )
        parser.add_argument("--progress", required=True, metavar="FILE", help="where answers are appended")

    def reading(self, options: dict[str, Any]) -> dict[str, Any]:
        reading = super().reading(options)
        return with_schema(reading, options["schema"]) if options["schema"] else reading

    def data(self, options: dict[str, Any]) -> tuple[Table, Labels]:
        """As a person numbers the rows, who has the uploaded file and not the stored one."""
        table, labels = super().data(options)
        return by_lines(table, options["data"]), labels

    def run(self, options: dict[str, Any]) -> None:
        exit_with_parent()
        raw = self.parameters(get(options["method"]), options)
        table, labels = self.data(options)
        request, _ = as_costs(
            TrainRequest(
                table=table, labels=labels, method=options["method"], parameters=raw, test_share=options["test_share"],
                name=options["name"],
            )
        )  # fmt: skip
        session = WorkbenchSession(request)
        base = read_model(options["base"]).tree if options["base"] else None
        with Path(options["progress"]).open("a", encoding="utf-8") as stream:
            RequestLoop(session, base, Path(options["requests"]), stream, self.interrupts).serve()


class RequestLoop:
    """Reads requests, answers them one by one in a thread, and looks for stops meanwhile."""

    def __init__(self, session: WorkbenchSession, base: Any, requests: Path, stream: Any, interrupts: Any) -> None:
        self.session = session
        self.base = base
        self.requests = requests
        self.stream = stream
        self.interrupts = interrupts
        self.offset, self.waiting = 0, []  # type: tuple[int, list[dict[str, Any]]]
        self.stopped: set[int] = set()
        self.ended = self.warmed = False
        self.step: int | None = None
        self.monitor: Monitor | None = None
        self.lock = threading.Lock()

    def serve(self) -> None:
        """Answer until told to end."""
        self.interrupts.on_start(Monitor())  # a signal ends the process between two steps, too
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
                    warm_workbench()  # compiling does not count in the time that a count may take
                monitor = self.session.monitor()
                self.step = int(step["step"])
                self.monitor = monitor
                self.interrupts.on_start(monitor)
                if self.step in self.stopped:
                    monitor.stop(Status.CANCELLED)
                thread = threading.Thread(target=self._answer, args=(step, monitor), daemon=True)
                thread.start()
            time.sleep(LOOK)

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
        try:
            result, document = answer(
                self.session, self.base, step, monitor, lambda record: self._write({"step": number, "partial": record}),
                self.requests.parent,
            )  # fmt: skip
        except (TrainerError, TypeError) as error:
            self._write({"step": number, "error": " ".join(str(error).split())})
            return
        except MemoryError:
            self._write({"step": number, "error": "out of memory; set a smaller depth or a lower slack"})
            return
        self._write({"step": number, "result": result, "document": document})

    def _write(self, record: dict[str, Any]) -> None:
        with self.lock:
            self.stream.write(json.dumps(record, allow_nan=False) + "\n")
            self.stream.flush()
