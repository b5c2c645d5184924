"""Print the size of the deployment image without its base.

`python -m tools.image_size` builds no image. It adds the sizes of the pinned packages in this environment and
of the files that deploy/Dockerfile copies. Compiled Python modules, the base image and the database of system
packages do not count, and layers are not compressed.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def lists(text: str) -> list[str]:
    """Return the requirements files that a Dockerfile always installs.

    Files that need a build argument follow a `+` there.
    """
    return re.findall(r"(?<!\+)-r (requirements[\w-]*\.txt)", text)


def optional(text: str) -> list[str]:
    """Return the requirements files that a Dockerfile installs with a build argument."""
    return re.findall(r"\+-r (requirements[\w-]*\.txt)", text)


def pins(name: str) -> dict[str, str]:
    """Return name and version of each package of a requirements file, without the files that it includes."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(re.match(r"([^=]+)==(\S+)", line).groups() for line in lines if re.match(r"\w[^=]*==", line))


def package_bytes(name: str) -> int:
    """Return the size of an installed package in bytes, without compiled modules.

    Raises PackageNotFoundError if it is not installed, and ValueError if it does not list its files.
    """
    files = distribution(name).files
    if files is None:
        raise ValueError(f"{name} does not list its files; install it from a wheel")
    paths = (Path(str(file.locate())) for file in files if "__pycache__" not in file.parts)
    return sum(path.stat().st_size for path in paths if path.is_file())


def copied_bytes(text: str) -> int:
    """Return the size in bytes of the project files that the Dockerfile copies."""
    sources = {
        source for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for source in line.split()[:-1]
    }
    files = [
        file for name in sources for file in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)


def sizes() -> dict[str, int]:
    """Return the size in bytes of the packages of each requirements file, and of the project itself."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    return {name: sum(map(package_bytes, pins(name))) for name in lists(text)} | {"octweb itself": copied_bytes(text)}


def main() -> None:
    try:
        size_by_name = sizes()
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed here; run `make test` or install the lists first.") from error
    for name, size in size_by_name.items():
        print(f"{size / 1e6:8.1f} MB  {name}")
    print(f"{sum(size_by_name.values()) / 1e6:8.1f} MB  together")
    for name in optional(DOCKERFILE.read_text(encoding="utf-8")):
        print(f"{sum(map(package_bytes, pins(name))) / 1e6:8.1f} MB  {name}, with its build argument")


if __name__ == "__main__":
    main()
