"""Answer workbench requests: completions, proofs and good trees.

The search runs in a worker thread. The calling thread checks time and memory and stays free for signals.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from trainer.certificate import Evidence, Status
from trainer.check.proof.model import ModelTable as CheckedRows
from trainer.check.recount.findings import TOLERANCE
from trainer.check.recount.search import small
from trainer.check.recount.trees.costs import answer_costs, copies_of, searched_model
from trainer.constraints.coupling import active_rules
from trainer.data.column_statistics import describe_columns
from trainer.data.folds import check_evaluation, holdout, rows_record
from trainer.data.problem import Problem, SettingNames
from trainer.editing.bench import Bench
from trainer.editing.complete import Completion, QuestionPrice, check_conflict
from trainer.editing.space import SearchStopped
from trainer.editing.wishes import EditConstraint
from trainer.editing.words import check_reasons
from trainer.errors import ParameterError, SolverError
from trainer.families.exact.editing.rows import same_rows
from trainer.families.exact.proofs.editing import restricted_proof
from trainer.families.exact.rashomon.chosen import RATES, amount, check_choice
from trainer.families.exact.search.constraints import LIMITS
from trainer.families.exact.workbench import Workbench
from trainer.families.numeric.editing.bench import NumericWorkbench
from trainer.families.numeric.editing.proof import numeric_proof
from trainer.families.numeric.restricted import as_questions
from trainer.families.odt.editing.bench import SubsetWorkbench
from trainer.families.odt.editing.proof import subset_proof
from trainer.goal import GOAL_NAMES, count_goal
from trainer.methods.base import Method, ProofSteps, Settings, Solution, exact_fraction
from trainer.methods.capabilities import WorkbenchSupport
from trainer.methods.monitor import Monitor
from trainer.registry import METHODS, editable_ids, get
from trainer.solver_common.problem_setup import file_parameters, limits_of, pose, searched_settings
from trainer.table import fingerprint
from trainer.training.claims import read_claim
from trainer.training.metrics import held_out_costs, held_out_groups, metrics_of
from trainer.training.proof_file import ProofLimits, write_proof
from trainer.training.run import TrainRequest, TrainResult, certify, row_costs_of, row_weights
from trainer.training.summary import summary_of
from trainer.tree.file import ModelFile
from trainer.tree.nodes import Tree, to_draft
from trainer.version import VERSION
from trainer.workbench.good_trees import GoodRecord, GoodRequest, choice_of, rows_of_copies

TICK = 0.05
MEMORY_TICKS = 10
MOST_LISTED = 100_000
MAX_LINE = 10**12 - 1  # largest line number of a file that a request can name
SLACKS = ("slack", "slack_rows", "slack_cost")
CONFIRMED_WORK = 5_000_000  # limit on rows × questions^(depth − 1) up to which a plain search confirms an optimum
T = TypeVar("T")


def bench_of(method: Method, problem: Problem, settings: Settings) -> Bench:
    """Return a workbench with the settings of a method.

    Raise ParameterError if the method has no workbench, and for limits that the rows cannot meet.
    """
    _refuse_unsupported(settings)
    bench: Bench = _support(method).build(problem, settings)
    return bench


def check_editable(method: Method, settings: Settings) -> None:
    """Raise ParameterError for a method without a workbench, and for settings whose trees cannot be edited."""
    _refuse_unsupported(settings)
    _support(method).check(settings)


def _refuse_unsupported(settings: Settings) -> None:
    if settings.get("column_price"):
        raise ParameterError(
            {
                "column_price": "wishes and good trees do not support prices of columns. Leave the prices out, or train without wishes."
            }
        )
    for rule in active_rules(settings):
        words = "wishes and good trees do not support it. Leave it out, or train without wishes."
        raise ParameterError({rule: words})
    if goal := count_goal(settings):
        name = GOAL_NAMES[goal]
        raise ParameterError(
            {"goal": f"wishes and good trees count errors, not {name}. Choose another goal, or train without wishes."}
        )


def _support(method: Method) -> WorkbenchSupport:
    if method.workbench is None:
        raise ParameterError({"method": f"'{method.id}' does not support wishes. Choose {editable_names('or')}."})
    return method.workbench


def editable_names(word: str) -> str:
    """Return the ids of the methods with a workbench as text; `word` joins the last two."""
    *first, last = (f"'{name}'" for name in editable_ids())
    return f"{', '.join(first)} {word} {last}"


def good_trees_method() -> Method:
    """Return the method whose good trees are counted."""
    return next(m for m in METHODS if m.workbench is not None and m.workbench.good_trees)


def counts_good_trees(method: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether good trees can be counted with these settings."""
    if parameters.get("depth", 0) is None:
        return False
    limits = any(parameters.get(name) for name in (*LIMITS, "column_price"))
    return method == good_trees_method().id and not limits and not active_rules(Settings(parameters))


class WorkbenchSession:
    """A workbench on the rows and settings of a training request; later questions reuse the results of earlier ones.

    Raises ParameterError for a method without a workbench, and for limits that the rows cannot meet.
    """

    def __init__(self, request: TrainRequest) -> None:
        self.request = request
        self.method = get(request.method)
        self.settings: Settings = self.method.settings(request.parameters)
        check_editable(self.method, self.settings)
        check_evaluation(request.test_share, 0, len(request.table))
        self.rows, self.held_out = holdout(
            request.labels.codes, request.test_share, self.settings["seed"], request.table
        )
        self.problem: Problem = self._pose()
        self.method.check(self.settings, self.problem.names)
        self.searched = self.problem.searched  # copies of the rows if answers have costs
        self.searched_settings = searched_settings(self.problem, self.settings)
        self.bench = bench_of(self.method, self.searched, self.searched_settings)

    def _pose(self, *, even: bool = False) -> Problem:
        request = self.request
        return pose(
            request.table.take(self.rows),
            request.labels.take(self.rows),
            self.settings,
            weights=None if request.weights is None else request.weights[self.rows],
            given_costs=None if request.costs is None else request.costs[self.rows],
            even=even,
            neutral=True,
        )

    def monitor(self) -> Monitor:
        """Return a monitor with the limits of one question, which begin now."""
        return Monitor(limits_of(self.settings))

    # -- wishes --------------------------------------------------------------------------------------------------------

    def complete(self, wishes: Sequence[str], monitor: Monitor, *, prices: bool = True) -> Completion:
        """Return the best tree that keeps the wishes, or their conflict; without `prices`, do not compute prices of wishes."""
        return run_in_thread(
            lambda: self.bench.complete(wishes, prices=prices, time_limit=monitor.remaining(), stop=monitor.stopped),
            monitor,
            self.bench,
        )

    def price_list(self, place: str, wishes: Sequence[str], monitor: Monitor) -> Iterator[QuestionPrice]:
        """Yield the price of each question at a place of the best tree with the wishes, as soon as it is known."""
        return self.bench.price_list(place, wishes, time_limit=monitor.remaining(), stop=monitor.stopped)

    def result(
        self,
        completion: Completion,
        monitor: Monitor,
        proof: Path | None = None,
        limits: ProofLimits | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> TrainResult:
        """Return model file and record of a completion; write the proof of its bound to the file `proof`.

        `reasons` of the user, by the text of the wish, are stored with the wishes in the model file. Raise
        ConflictError, and SolverError if there is no tree yet.
        """
        check_conflict(completion)
        if not completion.found:
            raise SolverError("The search was stopped before it found a tree with these wishes. Give it more time.")
        solution = self._solution(completion)
        tree = self.problem.settle(self.problem.tree(self.bench.space.questions.draft(completion.tree)))
        certificate = certify(self.method, self.problem, self.settings, solution, tree, monitor)
        record: dict[str, Any] = certificate.to_json()
        record["wishes"] = self.wishes(completion, reasons or {})
        record["optimum"] = self._optimum(completion)
        if proof is not None:
            monitor.report(phase="proof")
            record["evidence"] = [
                *record["evidence"],
                write_proof(
                    proof, self.searched, self.method, self.searched_settings, solution, limits or ProofLimits(),
                    lambda: monitor.cancelled,
                ),
            ]  # fmt: skip
        model = ModelFile(
            tree=describe_columns(tree, self.problem.matrix),
            target=self.request.labels.name,
            method=self.method.id,
            name=self.request.name,
            parameters=file_parameters(self.problem, self.settings)
            | {"test_share": self.request.test_share, "folds": 0},
            metrics=self.metrics(tree),
            certificate=record,
            fingerprint=fingerprint(self.problem.table, self.problem.labels),
            rows=rows_record(
                self.request.table, self.rows, self.held_out, None, self.request.weights, None, self.request.costs
            ),
            reading=self.request.table.reading,
            class_type=self.request.labels.type,
        )
        if certificate.status is Status.OPTIMAL:
            self._confirm(model)
        summary = summary_of(model, certificate, self.problem, solution)
        summary |= {
            "wishes": record["wishes"],
            "optimum": record["optimum"],
            "price_rows": read_claim(record).price_rows,
        }
        return TrainResult(model=model, tree=tree, certificate=certificate, summary=summary)

    def _confirm(self, model: ModelFile) -> None:
        """Raise SolverError if the checker's plain search finds a better tree than one that is called optimal.

        It shares no code with the search. It runs within about a second, if rows × questions^(depth − 1) is at most
        CONFIRMED_WORK.
        """
        questions = self.bench.space.questions.encoded
        rows = self.problem
        if len(rows.y) * max(1, questions) ** max(1, self.settings["depth"] - 1) > CONFIRMED_WORK:
            return
        document = model.to_json()
        checked_rows = CheckedRows(
            columns=[column.values for column in rows.table.columns],
            labels=rows.y,
            weights=rows.row_weights,
            plain=rows.row_weights if rows.quantile_weights is None else rows.quantile_weights,
            costs=None if rows.costs is None else rows.costs.given,
            step=Fraction(1) if rows.table.weights is None else rows.table.weights.step,
            given=None if rows.table.weights is None else rows.table.weights.given,
        )
        costs = answer_costs(document, checked_rows)
        document = searched_model(document, costs)
        checked_rows = checked_rows if costs is None else copies_of(checked_rows, costs)
        best_tree, _ = small.best(document, checked_rows)
        optimum = document["certificate"].get("optimum")
        values = [
            (
                best_tree.value if best_tree is not None and best_tree.is_whole else None,
                document["certificate"]["objective"],
            )
        ]
        if optimum is not None and optimum["proved"]:
            dropped = range(len(document["certificate"]["wishes"]))
            values.append((small.optimum_without(document, checked_rows, dropped), optimum["objective"]))
        for value, claimed in values:
            if value is not None and value > exact_fraction(repr(claimed)) + TOLERANCE:
                raise SolverError(
                    f"Two searches disagree: a plain search found a tree with objective {float(value):.9g}, better than the "
                    f"{claimed:.9g} that was called optimal. Nothing is claimed. Please report this with your table."
                )

    def prove(self, model: ModelFile, proof: Path, monitor: Monitor, limits: ProofLimits) -> dict[str, Any]:
        """Write the proof of the bound of a completion of this session, given its file; return the record of `write_proof`."""
        certificate = model.certificate
        bound = next(Fraction(part["bound"]) for part in certificate["evidence"] if part["kind"] == Evidence.WISHES)
        wishes = tuple(dict.fromkeys(self.bench.wishes([wish["wish"] for wish in certificate["wishes"]])))
        solution = Solution(
            draft=to_draft(model.tree),
            bound=self.objective(bound),
            finished=True,
            proof=lambda stop: self._proof(wishes, bound, stop),
        )
        monitor.report(phase="proof")
        return run_in_thread(
            lambda: write_proof(
                proof,
                self.searched,
                self.method,
                self.searched_settings,
                solution,
                limits,
                lambda: monitor.reason is not None,
            ),
            monitor,
            self.bench,
        )

    def metrics(self, tree: Tree) -> dict[str, Any]:
        """Return the metrics of a tree on the training rows, and on held-out rows if there are any."""
        costs = self.problem.costs
        constant = 0 if costs is None else costs.best_constant
        metrics = {
            "train": metrics_of(tree, self.problem.matrix, self.problem.y, self.problem.weights, costs, constant)
        }
        if len(self.held_out):
            r = self.request
            weights = row_weights(r, self.held_out)
            unseen = r.table.take(self.held_out)
            codes = r.labels.codes[self.held_out]
            costs = row_costs_of(r, self.settings, self.held_out)
            metrics["test"] = metrics_of(tree, unseen.matrix(), codes, weights, costs, constant)
            metrics["test"] |= held_out_groups(tree, unseen, codes, weights)
            metrics["test"] |= held_out_costs(tree, unseen, costs, constant)
        return metrics

    def _solution(self, completion: Completion) -> Solution:
        return Solution(
            draft=self.bench.space.questions.draft(completion.tree),
            bound=self.objective(completion.bound),
            scope=self.bench.scope,
            finished=completion.optimal,
            wishes=tuple(w.text for w in dict.fromkeys(completion.wishes)),
            nodes=completion.states,
            encoded_features=self.encoded_features,
            solver_version=VERSION,
            evidence=({"kind": Evidence.WISHES, "cost": str(completion.cost), "bound": str(completion.bound)},),
            proof=lambda stop: self._proof(tuple(dict.fromkeys(completion.wishes)), completion.bound, stop),
        )

    def _proof(self, wishes: Sequence[EditConstraint], bound: Fraction, stop: Callable[[], bool]) -> ProofSteps | None:
        """Return the steps that prove the bound of the trees with these wishes; raise NotProved."""
        depth = self.settings["depth"]
        if isinstance(self.bench, Workbench):
            return restricted_proof(self.bench, wishes, bound, depth, stop)
        if isinstance(self.bench, SubsetWorkbench):
            return subset_proof(self.bench, bound)
        assert isinstance(self.bench, NumericWorkbench)
        if (proof := numeric_proof(self.bench, bound, depth)) is not None:
            return proof
        bench = Workbench(as_questions(self.searched), depth=depth)  # this space has the same trees
        return restricted_proof(bench, bench.wishes([w.text for w in wishes]), bound, depth, stop)

    @property
    def encoded_features(self) -> int:
        """The number of features as in training: binary features, columns with all thresholds, or categories and bins."""
        if isinstance(self.bench, SubsetWorkbench):
            return int(self.bench.groups.sizes.sum())
        encoding = self.problem.binary if self.method.binary else self.problem.numeric
        return len(encoding.features)

    def objective(self, cost: Fraction) -> float:
        """Return the objective of a cost in searched weight."""
        return float(1 - cost / self.searched.n)

    @property
    def unit(self) -> str:
        """The unit of prices: rows, weights, or the unit of the costs."""
        costs = self.problem.costs
        return self.problem.count_unit if costs is None else costs.matrix.unit or "costs"

    def price_record(self, price: Fraction) -> dict[str, float]:
        """Convert a price from searched weight to a share of the objective, and to rows or the unit of the costs."""
        share = price / self.searched.n
        costs = self.problem.costs
        if costs is None:
            return {"price": float(share), "rows": float(price)}
        return {"price": float(share), "cost": costs.in_unit(costs.price_of(share))}

    def wishes(self, completion: Completion, reasons: Mapping[str, str]) -> list[dict[str, Any]]:
        """Return each wish with the objective gained by dropping it alone (None if unknown), and its reason, if any.

        Raise ParameterError for a reason without its wish.
        """
        prices = {p.wish: p.price for p in completion.prices}
        n = self.searched.n
        price_of_wish = {w: prices.get(w) for w in completion.wishes}
        reason_texts = check_reasons(reasons, [w.text for w in price_of_wish])
        return [
            {"wish": w.text, "price": None if p is None else float(p / n)}
            | ({"reason": reason_texts[w.text]} if w.text in reason_texts else {})
            for w, p in price_of_wish.items()
        ]

    def _optimum(self, completion: Completion) -> dict[str, Any] | None:
        if completion.optimum is None:
            return None
        cost = completion.optimum.cost
        bound = completion.optimum.bound
        record = {"objective": self.objective(cost), "bound": self.objective(bound), "proved": cost == bound}
        costs = self.problem.costs
        return record if costs is None else record | {"objective_cost": costs.in_unit(costs.price_of(Fraction(1)))}

    # -- good trees ----------------------------------------------------------------------------------------------------

    def good_trees(
        self,
        request: GoodRequest,
        monitor: Monitor,
        agrees: Tree | None = None,
        report: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Return the record of `good-trees`: counts as exact integers, None for parts that were stopped.

        agrees: the tree whose answers are kept on `request.agree_rows`. `report` receives the record once all but the slow parts are known.
        """
        if not all(0 <= number <= MOST_LISTED for number in (request.listed, request.disputed, request.sample)):
            raise ParameterError({"list": f"choose 0 to {MOST_LISTED:,} trees or rows to list or draw."})
        return run_in_thread(lambda: self._good_trees(request, monitor, agrees, report), monitor, self.bench)

    def _good_trees(
        self,
        request: GoodRequest,
        monitor: Monitor,
        agrees: Tree | None,
        report: Callable[[dict[str, Any]], None] | None,
    ) -> dict[str, Any]:
        bench = self.bench
        if not isinstance(bench, Workbench):
            words = f"'{self.request.method}' cannot count good trees. Choose the method '{good_trees_method().id}'."
            raise ParameterError({"method": words})
        if self.problem.costs is not None:
            bench = self._good_bench
        check_slack(request, self.problem.costs is not None)
        if (request.agree_rows is None) != (agrees is None):
            raise ParameterError(
                {"agree_rows": "give a tree to agree with and the rows on which to agree, or neither."}
            )
        weights = self.problem.table.weights
        # the request gives a weight, while the search counts in steps of weights
        if weights is not None and request.slack_rows is not None:
            request = replace(request, slack_rows=str(amount(request.slack_rows, "slack_rows") / weights.step))
        problem = self._good_problem
        rows = self.agree_rows(request)
        choice = choice_of(request, agrees, rows if rows is None or problem.costs is None else self._copies(rows))
        try:
            good = bench.good_trees(
                slack=request.slack,
                slack_rows=request.slack_rows,
                slack_cost=request.slack_cost,
                time_limit=monitor.remaining(),
                stop=monitor.stopped,
                **choice,
            )
        except SearchStopped:
            raise SolverError("The search was stopped before the best tree was known. Give it more time.") from None
        return GoodRecord(bench, good, request, seed=self.settings["seed"], problem=problem).build(monitor, report)

    @cached_property
    def _good_problem(self) -> Problem:
        """The problem whose good trees are counted; with costs, the copies of all rows have the same weight, for shares of rows."""
        return self.problem if self.problem.costs is None else self._pose(even=True)

    @cached_property
    def _good_bench(self) -> Workbench:
        problem = self._good_problem
        bench = bench_of(self.method, problem.searched, searched_settings(problem, self.settings))
        assert isinstance(bench, Workbench)
        return bench

    def _copies(self, rows: list[int]) -> list[int]:
        """Return, for each of these rows, the index of a copy with the same values.

        Rows without such a copy are left out.
        """
        _, same = same_rows(self._good_problem.matrix)
        copies = rows_of_copies(self._good_problem)
        copy = dict(zip(same[copies[::-1]].tolist(), range(len(copies))[::-1], strict=True))
        return [copy[group] for group in same[rows].tolist() if group in copy]

    def agree_rows(self, request: GoodRequest) -> list[int] | None:
        """Return the training rows, from 0, on which trees must agree; None for all.

        Lines of a range that do not train are skipped.
        """
        text = (request.agree_rows or "all").strip()
        if text.lower() == "all":
            return None
        place = {int(number): row for row, number in enumerate(self.problem.table.row_numbers)}
        rows: dict[int, None] = {}
        for lines in line_ranges(text, most=max(place)):
            listed_rows = [place[line] for line in lines if line in place]
            if not listed_rows:
                words = f"line {lines.start:,} of the file has no training row. Choose other lines, or write 'all'."
                if len(lines) > 1:
                    words = f"lines {lines.start:,} to {lines.stop - 1:,} of the file have no training row. Choose other lines, or write 'all'."
                raise ParameterError({"agree_rows": words})
            rows |= dict.fromkeys(listed_rows)
        return list(rows)


def check_good_request(request: GoodRequest, names: SettingNames) -> None:
    """Check a request for good trees without the rows, before a search starts.

    Raises
    ------
    ParameterError
        Names the field that cannot be read.
    """
    for field in SLACKS:
        if (value := getattr(request, field)) is not None:
            amount(value, field)
    if request.agree_rows is not None and request.agree_rows.strip().lower() != "all":
        line_ranges(request.agree_rows, most=MAX_LINE)
    check_choice(names, choice_of(request, None, None))


def check_slack(request: GoodRequest, has_costs: bool) -> None:
    """Raise ParameterError for a tolerance or a filter that does not apply to answers with costs, or without."""
    if request.slack_cost is not None and not has_costs:
        raise ParameterError(
            {
                "slack_cost": "it needs costs of answers. Give costs, or use slack (a share) or slack_rows (a number of rows)."
            }
        )
    if not has_costs:
        return
    if request.slack_rows is not None:
        raise ParameterError(
            {"slack_rows": "with costs, trees are compared by cost. Give a share, or an amount in slack_cost."}
        )
    if request.recalls:
        raise ParameterError(
            {"recalls": "minimum recalls are not possible with costs. Give errors of this class a higher cost."}
        )
    if request.difference is not None and request.rate != RATES[0]:
        raise ParameterError({"rate": f"'{request.rate}' is not possible with costs. Choose {RATES[0]}."})


def line_ranges(text: str, *, most: int) -> list[range]:
    """Parse lines such as "3, 10-20", none above `most`; raise ParameterError."""
    out = []
    for item in text.replace(";", ",").split(","):
        first, dash, last = (part.strip() for part in item.partition("-"))
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ParameterError(
                {"agree_rows": f"'{item.strip()[:40]}' is not a line number. Write 'all', or lines as in '3, 10-20'."}
            )
        low = int(first[:12])
        high = int((last or first)[:12])
        if not low <= high <= most:
            raise ParameterError(
                {
                    "agree_rows": f"'{item.strip()[:40]}' is not a range of lines from 1 to {most:,}. Write lines as in '3, 10-20'."
                }
            )
        out.append(range(low, high + 1))
    return out


def run_in_thread(work: Callable[[], T], monitor: Monitor, bench: Bench) -> T:
    """Run `work` in another thread and return its result; meanwhile check time and memory in this thread."""
    outcome: list[T | BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=run, name="workbench", daemon=True)
    thread.start()
    ticks = 0
    while thread.is_alive():
        thread.join(TICK)
        ticks += 1
        if ticks % MEMORY_TICKS == 0:
            monitor.check_memory()
        if monitor.stopped():
            bench.space.flag[0] = 1
    result = outcome[0]
    if isinstance(result, BaseException):
        raise result
    return result
