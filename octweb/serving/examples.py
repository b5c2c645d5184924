"""Add examples of real calls, and descriptions of the tags, to the OpenAPI document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("examples.json")  # written by tests/octweb/serving/test_examples.py
JSON = "application/json"
TAGS = {
    "counts": "Counts of rows that stay in a source.",
    "datasets": "Tables: upload, columns, versions, findings, erasure of rows.",
    "decisions": "Recorded answers: outcomes, overrides, objections, erasure.",
    "experiments": "Many methods and sizes on the same folds.",
    "index": "The resources of the API.",
    "inventory": "All served models with their state.",
    "invocations": "Predictions by the protocol of MLflow.",
    "methods": "The methods and their parameters.",
    "models": "Trees: metrics, certificates, review, serving, life, predictions.",
    "objections": "Objections to many decisions.",
    "outcomes": "Outcomes of many decisions.",
    "overrides": "Overrides of many decisions.",
    "predictions": "Files of rows, predicted in the background.",
    "privacy": "What is stored about you.",
    "runs": "Training runs: start, progress, stop.",
    "sign-out-everywhere": "End all sessions and tokens of your account.",
    "sources": "Databases and files that the operator has registered.",
    "subjects": "Erase the records about one person.",
    "teams": "Teams: members, roles.",
    "tokens": "Your API tokens.",
    "v2": "Predictions by the Open Inference Protocol.",
    "workbenches": "Change a tree, with prices and good trees.",
}


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the examples to the OpenAPI document. drf-spectacular calls this."""
    examples = json.loads(FILE.read_text(encoding="utf-8"))
    for operations in result["paths"].values():
        for call in operations.values():
            example = examples.get(call.get("operationId", ""))
            if example is not None:
                _add(call, example)
    result["tags"] = [{"name": name, "description": text} for name, text in TAGS.items()]
    return result


def _add(call: dict[str, Any], example: dict[str, Any]) -> None:
    body = call.get("requestBody", {}).get("content", {})
    if "request" in example and JSON in body:
        body[JSON]["example"] = example["request"]
    answer = call["responses"].get(str(example["status"]), {}).get("content", {})
    if "answer" in example and JSON in answer:
        answer[JSON]["example"] = example["answer"]
