"""Test environment, loaded before Django's settings. Tests never touch a real installation.

`--instances` is the number of random instances for each variant of a solver on each back end. `--only-database` leaves
out tests whose results are the same on every database.
"""

import atexit
import gc
import os
import shutil
import tempfile

os.environ["OCTWEB_DATA_DIR"] = tempfile.mkdtemp(prefix="octweb-test-")
atexit.register(shutil.rmtree, os.environ["OCTWEB_DATA_DIR"], ignore_errors=True)
os.environ["OCTWEB_SECRET_KEY"] = "only for tests"
os.environ.setdefault("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"octweb-test-numba-{os.getuid()}"))
# Matrix products of tests are small, and the test processes use all processors. More BLAS threads would only wait, at
# full speed.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# workers of tests end after a job or two, so a fork server would not pay for itself; the tests' own process keeps one
os.environ["OCTWEB_FORK_SERVER"] = "0"
# dossiers of tests train on no bootstraps, unless a test asks for it
os.environ["OCTWEB_DOSSIER_BOOTSTRAP_SECONDS"] = "0"
# Playwright's synchronous driver runs an event loop in the thread of the tests, where Django would refuse to work.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


def pytest_addoption(parser):
    parser.addoption("--instances", type=int, default=5, help="random instances for each variant on each back end")
    parser.addoption("--only-database", action="store_true", help="leave out the tests that do not use the database")


def pytest_sessionstart():
    gc.disable()  # nearly all objects that are created during collection stay until the end


def pytest_collection_finish():
    gc.freeze()  # the garbage collector need not scan these objects during the tests either
    gc.enable()
