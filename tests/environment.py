"""Loaded before Django's settings: tests have a data folder of their own and never touch a real installation.

`--instances` is how many random instances each variant of a solver gets on each back end; `--only-database` leaves out what says
the same on every database.
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
# the products of the tests are small, and test processes take all the processors: more threads of BLAS would only wait, at full speed
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["OCTWEB_FORK_SERVER"] = "0"  # workers of tests end after a job or two; the tests' own process keeps one
# playwright's synchronous driver has an event loop in the thread of the tests, which Django would refuse to work beside
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


def pytest_addoption(parser):
    parser.addoption("--instances", type=int, default=5, help="random instances for each variant on each back end")
    parser.addoption("--only-database", action="store_true", help="leave out the tests that do not use the database")


def pytest_sessionstart():
    gc.disable()  # what collection makes stays to the end


def pytest_collection_finish():
    gc.freeze()  # nor do the tests look through it again and again
    gc.enable()
