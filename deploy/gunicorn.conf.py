"""gunicorn for octweb: threads, since a prediction takes a millisecond and an upload may take minutes."""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time

bind = os.environ.get("OCTWEB_BIND", "127.0.0.1:8000")
worker_class = "octweb.core.gunicorn_worker.Worker"  # gthread with a faster path for predictions
workers = int(os.environ.get("OCTWEB_WEB_PROCESSES", min(4, multiprocessing.cpu_count())))
threads = int(os.environ.get("OCTWEB_WEB_THREADS", 16))
keepalive = 75  # longer than the proxy keeps its connections
timeout = 120
graceful_timeout = 30
worker_connections = 800  # per process; when it has more than 80 % of them, those idle longest are closed
# The application is loaded once and then forked, so a restarted process answers at once. A reload (SIGHUP) keeps the old code.
preload_app = True
# hosts that may set X-Forwarded-Proto: the proxy on this host; in containers only the proxy's network reaches this port
forwarded_allow_ips = os.environ.get("OCTWEB_PROXY_ADDRESSES", "127.0.0.1,::1")
# no header of a call may set SCRIPT_NAME or PATH_INFO; octweb reads SCRIPT_NAME from its environment
forwarder_headers = ""
accesslog = None  # octweb writes a log without IP addresses (OCTWEB_ACCESS_LOG), and the proxy its own
if os.environ.get("OCTWEB_LOG_FORMAT", "").strip().lower() == "json":
    logger_class = "octweb.core.gunicorn_logger.JsonLogger"
control_socket_disable = True

# /metrics adds up the counts of all processes. They need a folder that is empty at the start, before prometheus-client is imported
own_metrics = "" if os.environ.get("PROMETHEUS_MULTIPROC_DIR") else tempfile.mkdtemp(prefix="octweb-metrics-")
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", own_metrics)


RECYCLE = int(
    os.environ.get("OCTWEB_WEB_RECYCLE", 50_000)
)  # calls of a process after which the oldest one is replaced; 0: never
OVERLAP_SECONDS = 1.0
_due = RECYCLE  # calls of this process


def post_request(worker, req, environ, resp):
    """Start one more process and then end the oldest. `max_requests` would end a process before there is another."""
    global _due
    if RECYCLE and worker.nr >= _due:
        _due = worker.nr + RECYCLE
        threading.Thread(target=_replace_the_oldest, args=(worker.ppid,), daemon=True).start()


def _replace_the_oldest(master):
    os.kill(master, signal.SIGTTIN)
    time.sleep(OVERLAP_SECONDS)
    os.kill(master, signal.SIGTTOU)


def on_exit(server):
    """Remove the folder of metrics that this file created."""
    if own_metrics:
        shutil.rmtree(own_metrics, ignore_errors=True)


def child_exit(server, worker):
    """Keep the counters of a process that ended in the sums of /metrics."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)
