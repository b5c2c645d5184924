"""`manage.py worker` on the database of a running test.

Its fork server is a fork of this process: jobs begin as those of any worker do, and nothing is loaded once more.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
os.environ["DJANGO_SETTINGS_MODULE"] = "octweb.settings"

import django
from django.conf import settings
from django.db import connections

from octweb.jobs import fork_server
from octweb.jobs.child import environment_of_child
from tests.fork_of_worker import ForkOfWorker

if "OCTWEB_TEST_HOLD" in os.environ:
    settings.COMMAND = [sys.executable, str(Path(__file__).with_name("held_child.py"))]
# This comes before any use of the database, because a job never knows the database.
fork_server._kept.append(ForkOfWorker(environment_of_child()))
settings.FORK_SERVER = True
settings.DATABASES["default"] |= json.loads(os.environ["OCTWEB_TEST_DATABASE"])
settings.MEDIA_ROOT = os.environ["OCTWEB_TEST_FILES"]
# A slow machine must not end a lease or a grace period. The tests end leases themselves.
settings.WORKER_LEASE_SECONDS = settings.WORKER_GRACE_SECONDS = 600
settings.STORAGES["default"] = {
    "BACKEND": "django.core.files.storage.FileSystemStorage",
    "OPTIONS": {"location": os.environ["OCTWEB_TEST_FILES"]},
}
django.setup()
with contextlib.suppress(AttributeError):
    del connections["default"]  # a fork has a connection for the database of the fork server

from django.core.management import call_command

call_command("worker", *sys.argv[1:])
