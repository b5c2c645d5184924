"""WSGI entry point for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "octweb.settings")
_django = get_wsgi_application()

from octweb.core.allocator import keep_blocks  # noqa: E402
from octweb.core.files import protect_stored  # noqa: E402
from octweb.core.request_log import RequestLog  # noqa: E402
from octweb.demo.checks import refuse_unsafe  # noqa: E402
from octweb.environment import boolean  # noqa: E402
from octweb.life.counting import write_in_background  # noqa: E402
from octweb.private_files import protect_new_files  # noqa: E402
from octweb.serving.quick import QuickApplication  # noqa: E402  (models need the applications to be ready)
from octweb.serving.warming import warm  # noqa: E402
from octweb.serving.wire import LONG_BODY_BYTES, Wire  # noqa: E402

refuse_unsafe()
protect_new_files()
protect_stored()
keep_blocks()
write_in_background()
warm(kernels=boolean("OCTWEB_WARM", True))
application = RequestLog(QuickApplication(Wire(QuickApplication(_django)), most=LONG_BODY_BYTES))
