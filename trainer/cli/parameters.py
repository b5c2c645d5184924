"""Create command-line options from the declarations of the methods."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import Any

from trainer.errors import ParameterError
from trainer.methods.base import MAX_TEXT, NO_LIMIT, Method, Parameter
from trainer.registry import METHODS

PROOF_SECONDS = 60.0  # limit for writing a proof after the search of a job; the command line may allow more
INFEASIBLE = "infeasible"  # status in the JSON of `train` if no tree satisfies the constraints


def flag_parameters() -> dict[str, Parameter]:
    """Return the parameters of all methods with a flag of their own, by name."""
    return {p.name: p for method in METHODS for p in method.parameters if p.flag}


def add_parameter_flags(parser: argparse.ArgumentParser) -> None:
    """Add --depth, --time-limit, …, the options of costs, and --set NAME=VALUE for the rest."""
    for name, parameter in flag_parameters().items():
        parser.add_argument(
            "--" + name.replace("_", "-"),
            dest=name,
            metavar=parameter.unit.upper() or parameter.type.upper(),
            help=f"{parameter.help} ({parameter.describe_allowed()})".replace("%", "%%"),
        )
    parser.add_argument(
        "--cost",
        action="append",
        default=[],
        metavar="TRUE>ANSWER=COST",
        help="what an answer costs in a row of a true class, as in 'bad>good=5' or 'good>bad=0.2*amount'; repeat it",
    )
    parser.add_argument("--costs", metavar="FILE", help="a JSON file of costs, by true class and answer, with a unit")
    parser.add_argument(
        "--column-price",
        action="append",
        default=[],
        metavar="COLUMN=PRICE",
        dest="column_prices",
        help="what asking a column costs in a row, paid once on a path, as in 'lab_test=12.5'; repeat it",
    )
    parser.add_argument(
        "--set",
        dest="extra",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other parameter of the method",
    )


def parameters_of(method: Method, options: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the raw parameters of `method`, and the given flags that it does not have.

    Raise ParameterError for a malformed `--set` and for costs that contradict each other.
    """
    raw = {name: options[name] for name in flag_parameters() if options.get(name) is not None}
    unused = [name for name in raw if method.parameter(name) is None]
    for name in unused:
        del raw[name]
    raw |= _assignments(options.get("extra") or []) | _costs(options)
    if prices := options.get("column_prices"):
        raw["column_price"] = "; ".join(prices)
    return raw, unused


def _costs(options: dict[str, Any]) -> dict[str, str]:
    """Return the costs of --cost or --costs as a parameter; empty without them."""
    costs = options.get("cost") or []
    path = options.get("costs")
    if costs and path:
        raise ParameterError({"costs": "give --cost or --costs, not both."})
    if costs:
        return {"costs": "; ".join(costs)}
    if not path:
        return {}
    with open(path, encoding="utf-8") as stream:
        text = stream.read(MAX_TEXT + 1).strip()
    if not text.startswith("{"):
        raise ParameterError(
            {
                "costs": f"'{path}' is not a JSON object of costs. Write an object such as "
                '{"costs": {"bad": {"good": 5}}}.'
            }
        )
    return {"costs": text}


def arguments_of(parameters: Iterable[tuple[str, Any]]) -> list[str]:
    """Return the command line of checked parameters, the inverse of `parameters_of`."""
    flags = flag_parameters()
    unlimited = {p.name for method in METHODS for p in method.parameters if p.unlimited}
    arguments = []
    for name, value in parameters:
        if value is None and name not in unlimited:
            continue
        text = NO_LIMIT if value is None else str(value)
        text = text.lower() if isinstance(value, bool) else text
        if name in flags:
            arguments.append(f"--{name.replace('_', '-')}={text}")
        else:
            arguments.append(f"--set={name}={text}")
    return arguments


def _assignments(pairs: list[str]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise ParameterError({"set": f"'{pair[:80]}' does not look like NAME=VALUE, as in bins=8."})
        values[name.strip().replace("-", "_")] = value
    return values
