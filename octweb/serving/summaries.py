"""Summaries of API calls whose resource has one description for all verbs."""

from __future__ import annotations

from typing import Any

SUMMARIES = {
    "counts_list": "List your counts. Finished ones are listed for 30 days; their tables stay.",
    "counts_retrieve": "Show a count and its progress.",
    "counts_cancel_create": "Stop a count.",
    "datasets_list": "List your tables.",
    "datasets_create": "Upload a table.",
    "datasets_retrieve": "Show a table: its columns, classes and versions.",
    "datasets_partial_update": "Rename a table, or change its target and columns.",
    "datasets_destroy": "Delete a table.",
    "datasets_download_retrieve": "Download the rows of a table.",
    "datasets_rows_retrieve": "Read the first rows of a table.",
    "experiments_list": "List your experiments.",
    "experiments_create": "Start an experiment: many methods and sizes on the same folds.",
    "experiments_retrieve": "Show an experiment with its candidates.",
    "experiments_destroy": "Delete an experiment.",
    "experiments_continue_create": "Continue a stopped experiment.",
    "experiments_stop_create": "Stop an experiment, and keep its results.",
    "models_challenger": "Show the challenger of a model, and how both compare.",
    "models_challenger_name": "Name a model as challenger of another one.",
    "models_challenger_end": "End a challenge.",
    "models_price": "Show how much more often the best tree of the same size would have been right lately.",
    "models_price_find": "Search for the best tree of the same size on recent decisions.",
    "models_price_cancel": "Cancel the search for the best tree of the same size.",
    "models_recording": "Show what is kept of a model's answers, and for how long.",
    "models_recording_set": "Change what is kept of a model's answers, or for how long.",
    "models_shares_retrieve": "List the users who may use a model besides its owner.",
    "models_shares_create": "Share a model with a user.",
    "models_shares_destroy": "Stop sharing a model with a user.",
    "predictions_list": "List your predicted files.",
    "predictions_create": "Predict a file in the background.",
    "predictions_retrieve": "Show the state of a predicted file.",
    "predictions_destroy": "Delete a predicted file.",
    "predictions_cancel_create": "Cancel the prediction of a file.",
    "predictions_result_retrieve": "Download a predicted file.",
    "teams_list": "List your teams.",
    "teams_create": "Create a team, with you as its owner.",
    "teams_retrieve": "Show a team with its members and their roles.",
    "teams_rename": "Rename a team.",
    "teams_delete": "Delete a team to which nothing belongs.",
    "teams_member_set": "Add a member to a team, or change the role.",
    "teams_member_remove": "Remove a member from a team, or leave it.",
    "datasets_team": "Show the team of a table.",
    "datasets_team_set": "Give a table with its models to a team, or take it back.",
    "models_team": "Show the team of a model.",
    "models_team_set": "Give a model without a table to a team, or take it back.",
    "runs_list": "List your training runs.",
    "runs_create": "Train a tree.",
    "runs_retrieve": "Show a run and its result.",
    "runs_destroy": "Delete a run.",
    "runs_cancel_create": "Stop a run, and keep its best tree.",
    "runs_progress_retrieve": "Read the progress of a run.",
    "tokens_list": "List your tokens.",
    "tokens_create": "Make a token.",
    "workbenches_list": "List your workbenches.",
    "workbenches_create": "Open a model on a workbench.",
    "workbenches_retrieve": "Show a workbench with its current tree.",
    "workbenches_destroy": "Delete a workbench.",
}


def add_summaries(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the summaries to the OpenAPI document. drf-spectacular calls this."""
    for operations in result["paths"].values():
        for call in operations.values():
            if summary := SUMMARIES.get(call.get("operationId", "")):
                call["summary"] = summary
    return result
