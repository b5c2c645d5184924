"""Python client of the REST API: `octweb.Client`.

It needs httpx, but neither Django nor a database.
"""

from octweb.client.client import Client
from octweb.client.datasets import Datasets, RemoteDataset
from octweb.client.decisions import Decisions
from octweb.client.errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    ClientError,
    InvalidValueError,
    NoConnectionError,
    NotAllowedError,
    NotFoundError,
    RateLimitError,
    RetiredError,
    RunFailedError,
    ServerError,
    StateConflictError,
    TooLargeError,
    WaitTimeoutError,
)
from octweb.client.jobs import RemoteBatch
from octweb.client.models import Models, RemoteModel
from octweb.client.predictions import AnsweredRows, Prediction
from octweb.client.runs import RemoteRun, Runs, SearchProgress

__all__ = [
    "AnsweredRows",
    "ApiError",
    "AuthenticationError",
    "BadRequestError",
    "Client",
    "ClientError",
    "Datasets",
    "Decisions",
    "InvalidValueError",
    "Models",
    "NoConnectionError",
    "NotAllowedError",
    "NotFoundError",
    "Prediction",
    "RateLimitError",
    "RemoteBatch",
    "RemoteDataset",
    "RemoteModel",
    "RemoteRun",
    "RetiredError",
    "RunFailedError",
    "Runs",
    "SearchProgress",
    "ServerError",
    "StateConflictError",
    "TooLargeError",
    "WaitTimeoutError",
]
