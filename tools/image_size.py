"""How large the image of deploy/Dockerfile is above its base: `python -m tools.image_size`.

No image is built for it: what is counted are the bytes of the files that the pinned packages of the image have in this environment, and of
what the Dockerfile copies, without compiled Python modules, of which an environment may have few. The base image and the database of the system's packages are not counted, and layers are not compressed.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = ROOT / "deploy" / "Dockerfile"


def lists(text: str) -> list[str]:
    """The names of the lists of requirements that a Dockerfile always installs; those of a build argument stand behind `+`."""
    return re.findall(r"(?<!\+)-r (requirements[\w-]*\.txt)", text)


def optional(text: str) -> list[str]:
    """Those that it installs where a build argument is given."""
    return re.findall(r"\+-r (requirements[\w-]*\.txt)", text)


def pins(name: str) -> dict[str, str]:
    """Name and version of each package of a list, without the packages of the lists that it names."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def package_bytes(name: str) -> int:
    """What an installed package takes without compiled modules; raises PackageNotFoundError, and ValueError where it does not say which files it has."""
    files = distribution(name).files
    if files is None:
        raise ValueError(f"{name} does not list its files")
    paths = (Path(str(file.locate())) for file in files if "__pycache__" not in file.parts)
    return sum(path.stat().st_size for path in paths if path.is_file())


def copied_bytes(text: str) -> int:
    """What the Dockerfile copies of the project."""
    sources = {
        source for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.MULTILINE) for source in line.split()[:-1]
    }
    files = [
        file for name in sources for file in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    return sum(file.stat().st_size for file in files if file.is_file() and "__pycache__" not in file.parts)


def sizes() -> dict[str, int]:
    """Bytes of each list of requirements, and of the project itself."""
    text = DOCKERFILE.read_text(encoding="utf-8")
    return {name: sum(map(package_bytes, pins(name))) for name in lists(text)} | {"octweb itself": copied_bytes(text)}


def main() -> None:
    try:
        found = sizes()
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed here; run `make test` or install the lists first.") from error
    for name, size in found.items():
        print(f"{size / 1e6:8.1f} MB  {name}")
    print(f"{sum(found.values()) / 1e6:8.1f} MB  together")
    for name in optional(DOCKERFILE.read_text(encoding="utf-8")):
        print(f"{sum(map(package_bytes, pins(name))) / 1e6:8.1f} MB  {name}, with its build argument")


if __name__ == "__main__":
    main()
