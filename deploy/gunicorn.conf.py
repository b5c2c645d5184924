"""gunicorn for octweb: threads, since a prediction takes a millisecond and an upload may take minutes."""

import multiprocessing
import os
import shutil
import signal
import tempfile
import threading
import time

bind = os.environ.get("OCTWEB_BIND", "127.0.0.1:8000")
worker_class = "octweb.core.gunicorn_worker.Worker"  # gthread with a quicker way for predictions
workers = int(os.environ.get("OCTWEB_WEB_PROCESSES", min(4, multiprocessing.cpu_count())))
threads = int(os.environ.get("OCTWEB_WEB_THREADS", 16))
keepalive = 75  # longer than the proxy keeps its connections
timeout = 120
graceful_timeout = 30
worker_connections = 800  # of a process; more make those that were quiet longest close
# Loaded once and then forked: a process that is started again answers at once. A reload (SIGHUP) starts new processes of the same code.
preload_app = True
# who may say X-Forwarded-Proto: the proxy on this host; in containers the network of the proxy alone reaches this port
forwarded_allow_ips = os.environ.get("OCTWEB_PROXY_ADDRESSES", "127.0.0.1,::1")
# no header of a call sets SCRIPT_NAME or PATH_INFO; octweb takes SCRIPT_NAME from its environment
forwarder_headers = ""
accesslog = None  # octweb writes one without addresses (OCTWEB_ACCESS_LOG), and the proxy another
if os.environ.get("OCTWEB_LOG_FORMAT", "").strip().lower() == "json":
    logger_class = "octweb.core.gunicorn_logger.JsonLogger"
control_socket_disable = True

# /metrics adds up what the processes counted: they need a folder for it, empty at the start, before prometheus-client is imported
own_metrics = "" if os.environ.get("PROMETHEUS_MULTIPROC_DIR") else tempfile.mkdtemp(prefix="octweb-metrics-")
os.environ.setdefault("PROMETHEUS_MULTIPROC_DIR", own_metrics)


RECYCLE = int(
    os.environ.get("OCTWEB_WEB_RECYCLE", 50_000)
)  # calls of a process after which the oldest one is replaced; 0: never
OVERLAP_SECONDS = 1.0
_due = RECYCLE  # calls of this process


def post_request(worker, req, environ, resp):
    """Instead of `max_requests`, which ends a process before there is another: one more process, and then one fewer, the oldest."""
    global _due
    if RECYCLE and worker.nr >= _due:
        _due = worker.nr + RECYCLE
        threading.Thread(target=_replace_the_oldest, args=(worker.ppid,), daemon=True).start()


def _replace_the_oldest(master):
    os.kill(master, signal.SIGTTIN)
    time.sleep(OVERLAP_SECONDS)
    os.kill(master, signal.SIGTTOU)


def on_exit(server):
    """Leave no folder behind."""
    if own_metrics:
        shutil.rmtree(own_metrics, ignore_errors=True)


def child_exit(server, worker):
    """Counters of a process that ended stay in the sums of /metrics."""
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)
