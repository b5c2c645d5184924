"""Build and test the image of deploy/Dockerfile with docker or podman: `python -m tests.container`.

It is built as users build it, in the project's folder with the images and packages of the public registries. In the
image, a tree is proved, and the web server must answer with a read-only root, as the user of the image and without any
capability. If there is no engine, or if it reaches no registry, this program says so and ends with 0, or with 1 if
OCTWEB_CONTAINER=1 requires the image.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENGINES = ("docker", "podman")
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
PATIENCE = 600.0  # seconds within which the web server must answer
LOCKED = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges:true"]
TREE = (
    "import csv; w = csv.writer(open('/tmp/rows.csv', 'w')); w.writerow(['a', 'b', 'class']); "
    "w.writerows([i % 7, i % 5, 'yes' if (i % 7 > 3) != (i % 5 > 2) else 'no'] for i in range(105))"
)
TRAIN = "manage.py train /tmp/rows.csv --target class --method exact --depth 2 --json"
READY = (
    "import urllib.request as u; "
    "u.urlopen(u.Request('http://127.0.0.1:8000/readyz', headers={'Host': 'localhost', 'X-Forwarded-Proto': 'https'}))"
)


class NotHere(Exception):
    """The image cannot be built on this machine. The message is the reason, which says nothing about the image."""


class Broken(Exception):
    """The image, or a program in it, does not work as it should."""


class Engine:
    """docker or podman on this machine. Raises NotHere if none answers."""

    def __init__(self) -> None:
        reasons = []
        for name in ENGINES:
            if shutil.which(name) is None:
                reasons.append(f"{name} is not installed")
                continue
            self.name = name
            done = self.run("info")
            if done.returncode == 0:
                return
            reasons.append(f"{name} does not answer: {last_line(done)}")
        raise NotHere("; ".join(reasons))

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command of the engine, and return its result with its output."""
        return subprocess.run([self.name, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    def must(self, *arguments: str) -> str:
        """Return the standard output of a command that must succeed. Raises Broken."""
        done = self.run(*arguments)
        if done.returncode:
            raise Broken(f"{self.name} {' '.join(arguments)}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout.strip()

    def reach(self) -> None:
        """Pull the base images of the Dockerfile, and download a package within one. Raises NotHere if this fails."""
        bases = list(dict.fromkeys(re.findall(r"^FROM (\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)))
        for base in bases:
            if self.run("image", "inspect", base).returncode and (done := self.run("pull", base)).returncode:
                raise NotHere(f"{self.name} answers, but cannot have {base}: {last_line(done)}")
        fetch = ["python", "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "/tmp/probe", "asgiref"]
        if (done := self.run("run", "--rm", bases[-1], *fetch)).returncode:
            raise NotHere(f"{self.name} answers, but its containers reach no index of packages: {last_line(done)}")


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()
    return lines[-1].strip()


def tried(engine: Engine, image: str) -> int:
    """Build the image and test it. Return its size in bytes. Raises Broken."""
    engine.must("build", "--file", str(DOCKERFILE), "--tag", image, ".")
    if (user := engine.must("run", "--rm", *LOCKED, image, "id", "-u")) != "10001":
        raise Broken(f"the image runs as user {user}")
    found = engine.must("run", "--rm", *LOCKED, image, "sh", "-c", f'python -c "{TREE}" && python {TRAIN}')
    if '"status": "optimal"' not in found:
        raise Broken(f"no tree was proved in the image:\n{found[-2000:]}")
    prepare = "python manage.py migrate --no-input && python manage.py collectstatic --no-input --verbosity 0"
    serve = "exec python -m gunicorn --config deploy/gunicorn.conf.py octweb.wsgi:application"
    settings = ["--env", "OCTWEB_SECRET_KEY=of-a-test-alone-" + uuid.uuid4().hex]
    container = engine.must("run", "--detach", *LOCKED, *settings, image, "sh", "-c", f"{prepare} && {serve}")
    try:
        until = time.monotonic() + PATIENCE
        while engine.run("exec", container, "python", "-c", READY).returncode:
            if (
                time.monotonic() > until
                or not engine.run("ps", "--quiet", "--filter", f"id={container}").stdout.strip()
            ):
                raise Broken(f"the web server does not answer:\n{engine.run('logs', container).stderr[-4000:]}")
            time.sleep(1)
    finally:
        engine.run("rm", "--force", "--volumes", container)
    return int(engine.must("image", "inspect", "--format", "{{.Size}}", image))


def main() -> int:
    wanted = os.environ.get("OCTWEB_CONTAINER") == "1"
    image = f"octweb-test-{uuid.uuid4().hex[:12]}"
    try:
        engine = Engine()
        engine.reach()
    except NotHere as reason:
        print(f"The image was {'wanted and ' if wanted else ''}not built: {reason}.")
        return int(wanted)
    try:
        size = tried(engine, image)
    except Broken as error:
        print(f"The image is broken: {error}")
        return 1
    finally:
        engine.run("image", "rm", "--force", image)
    print(
        f"The image was built by {engine.name} and answers as a user without rights: {size / 1e6:,.0f} MB with its base."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
