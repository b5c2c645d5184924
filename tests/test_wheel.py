"""The wheel: command, data folder, dependencies, and a complete walk outside the project."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest
from django.core.management import get_commands, load_command_class

from octweb.__main__ import OWN_DATA, without_data
from tests.conftest import ROOT
from tests.lock import pins_of
from tests.wheel_walk import Walk
from tools.metadata import EXTRAS, requirements
from tools.wheel import BuiltBefore
from trainer.precompiled import processor_can


@pytest.mark.parametrize(
    ("given", "rest", "folder"),
    [
        (["serve"], ["serve"], None),
        (["--data", "there", "serve"], ["serve"], "there"),
        (["serve", "--data=there", "--port", "1"], ["serve", "--port", "1"], "there"),
        (["predict", "--", "--data", "x"], ["predict", "--", "--data", "x"], None),
        (["--data", "one", "predict", "--", "--data=x"], ["predict", "--", "--data=x"], "one"),
        (["convert", "m.pmml", "--data", "rows.csv"], ["convert", "m.pmml", "--data", "rows.csv"], None),
        (["--data", "one", "export", "m.json", "--data=x"], ["export", "m.json", "--data=x"], "one"),
        (["predict", "convert", "--data", "there"], ["predict", "convert"], "there"),
    ],
)
def test_data_folder_is_removed_from_arguments(given, rest, folder):
    assert without_data(given) == (rest, folder)


@pytest.mark.parametrize("given", [["serve", "--data"], ["--data=", "serve"], ["--data", "--", "serve"]])
def test_undocumented_folder_is_an_error(given):
    with pytest.raises(ValueError, match="--data needs the name of a folder"):
        without_data(given)


def test_a_file_in_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "iris.csv").touch()
    with pytest.raises(ValueError, match=r"iris.csv' is a file"):
        without_data(["train", "--data", str(tmp_path / "iris.csv")])


def test_every_command_with_a_data_of_its_own_keeps_it():
    ours = [name for name, app in get_commands().items() if app.startswith("octweb.")]
    parsers = {name: load_command_class(get_commands()[name], name).create_parser("octweb", name) for name in ours}
    assert sorted(name for name, p in parsers.items() if "--data" in p._option_string_actions) == sorted(OWN_DATA)


@functools.cache
def imported(package: str) -> set[str]:
    """Return the top-level names of all imports of a package, except the standard library and itself."""
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {package}


# Maps a module to its packages. A scan of the whole environment is slow, so its result is cached.
owners_of_modules = functools.cache(packages_distributions)


def plain(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


@pytest.mark.slow
def test_documented_library_requirements_are_complete():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    said = set(re.search(r"the library needs -->.*?pip install (numpy[^\n]*)", page, re.DOTALL)[1].split())
    owners = owners_of_modules()
    # these belong to extras; mlflow's pins conflict with octweb's, so it is only in the environment of the clients
    extras = {"mlflow", "dask", "onnx", "gurobipy"}
    # `plot` needs plotly, which the page names separately
    assert "`plot` of a tree needs plotly" in page
    assert {plain(owners[name][0]) for name in imported("trainer") - extras - {"plotly"}} == said


def test_every_extra_is_on_the_page():
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [extra for extra in EXTRAS if f"[{extra}]" not in page] == []
    assert [file for file in EXTRAS.values() if not requirements(ROOT / file)] == []


def test_dependencies_of_the_wheel_have_lower_bounds():
    """They are ranges, without restrictions that only the tests need. Pins are in requirements*.txt."""
    lines = [line for file in ("requirements.in", *EXTRAS.values()) for line in requirements(ROOT / file)]
    assert [line for line in lines if not re.match(r"[\w.-]+(\[\w+\])?(>=[\d.]+|==[\d.]+\.\*)(;.*)?$", line)] == []


def test_every_pin_has_hashes_and_no_host():
    for path in ROOT.glob("requirements*.txt"):
        text = path.read_text(encoding="utf-8")
        assert pins_of(text), path.name
        assert [pin for pin in pins_of(text) if not re.search(r"--hash=sha256:[0-9a-f]{64}\n$", pin)] == [], path.name
        assert "://" not in text, path.name
        assert "index" not in text, path.name


TREE = ROOT / "docs" / "methods" / "trees" / "exact.json"
TABLE = ROOT / "docs" / "tutorial" / "loans.csv"
NO_EXTRAS = """
import importlib.util, sys
hidden = {"gurobipy", "onnx", "psycopg", "pandas", "tqdm", "matplotlib", "httpx", "duckdb", "distributed", "dask", "storages",
          "plutoprint", "mozilla_django_oidc", "mlflow", "adbc_driver_postgresql"}
class NoExtras:
    def find_spec(name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, NoExtras)
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in hidden else real(name, package)
from octweb.__main__ import main
sys.argv[0] = "octweb"
main()
"""


@pytest.fixture(scope="module")
def without_extras(tmp_path_factory):
    """Provide a function that runs a command of octweb without the packages of extras; it returns status and output."""

    folder = tmp_path_factory.mktemp("without-extras")

    def run(*words, **variables):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "OCTWEB_DATA_DIR": str(folder / "data")} | variables
        command = [sys.executable, "-c", NO_EXTRAS, *words]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.slow
def test_commands_run_without_extras(without_extras):
    for words in (
        ["check"],
        ["samples", "--write", "."],
        ["train", "iris.csv", "--target", "species", "--method", "cart", "--output", "model.json"],
        ["train", "iris.csv", "--target", "species", "--method", "cut-h", "--depth", "1", "--output", "plane.json"],
        ["verify", "model.json", "iris.csv"],
        ["export", "model.json", "--to", "sql"],
        ["migrate"],
    ):
        status, output = without_extras(*words)
        assert status == 0, output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "variables", "extra"),
    [
        (["export", str(TREE), "--to", "onnx"], {}, "onnx"),
        (["check"], {"DATABASE_URL": "postgresql://octweb@db/octweb"}, "postgres"),
        (["check"], {"OCTWEB_FILES": "s3://octweb/files"}, "hosts"),
        (["train", str(TABLE), "--target", "Repaid", "--method", "oct", "--solver", "gurobi"], {}, "gurobi"),
    ],
)
def test_a_missing_extra_is_named_by_its_command(without_extras, words, variables, extra):
    status, output = without_extras(*words, **variables)
    assert status != 0
    assert f"pip install 'octweb[{extra}]'" in output


@pytest.mark.parametrize("kind", ["package", "file", "folder", "overwritten"])
def test_foreign_trainer_is_refused_with_its_place(tmp_path, kind):
    """The package `trainer` of the index before ours on the path, a file or folder of the user, or files over ours."""
    content = 'raise RuntimeError("must not run")\n'
    place = tmp_path / ("trainer.py" if kind == "file" else "trainer")
    if kind == "file":
        place.write_text(content)
    else:
        place.mkdir()
    if kind in ("package", "overwritten"):
        place = place / "__init__.py"
        place.write_text(content)
        (place.parent / "version.py").write_text('VERSION = "0.1.0"\n' if kind == "overwritten" else "")
    (tmp_path / "octweb").symlink_to(ROOT / "octweb")
    code = f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; import octweb"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(
        f"ImportError: octweb needs its own package 'trainer', but Python finds another one: {place}."
    )
    assert "pip uninstall trainer" in last


@pytest.mark.slow
@pytest.mark.parametrize("package", ["trainer", "octweb"])
def test_the_wheel_needs_every_package_that_is_imported(package):
    owners = owners_of_modules()
    files = [ROOT / file for file in ("requirements.in", *EXTRAS.values())]
    wanted = {plain(line) for file in files for line in requirements(file)}
    brought = {
        "dask": "distributed",
        "botocore": "django-storages",
        "threadpoolctl": "scikit-learn",
    }  # these packages arrive as dependencies of others
    names = {brought.get(n) or plain(owners[n][0]) for n in imported(package) - {"trainer", "octweb"} if n in owners}
    assert sorted(names - wanted) == []


@pytest.mark.slow
def test_library_works_without_django():
    code = (
        "import sys; sys.modules['django'] = sys.modules['rest_framework'] = sys.modules['octweb'] = None\n"
        "from trainer import make_classifier\n"
        "tree = make_classifier('cart', depth=1).fit([[0.0], [1.0], [2.0], [3.0]], ['a', 'a', 'b', 'b'])\n"
        "print(list(tree.predict([[0.5], [2.5]])))"
    )
    process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert process.stdout.strip() in ("['a', 'b']", "[np.str_('a'), np.str_('b')]"), process.stderr


@pytest.mark.slow
def test_from_the_wheel_to_a_proved_tree_and_a_served_page(tmp_path):
    walk = Walk(tmp_path, ready=True)
    walk.all_steps()  # raises if a step fails
    if processor_can():
        assert sorted(tmp_path.rglob("share/**/*.nbc")) == []  # the kernels of the wheel were enough
    assert "stop" in walk.seconds
    assert (walk.work / "site" / "octweb.sqlite3").exists()  # --data is relative to the folder of the command


@pytest.mark.parametrize("built", [True, False])
def test_the_wheel_carries_the_documentation_where_it_was_built(tmp_path, monkeypatch, built):
    monkeypatch.delenv("OCTWEB_READY_KERNELS", raising=False)
    site = tmp_path / "build" / "docs"
    site.mkdir(parents=True)
    if built:
        (site / "index.html").write_text("<h1>Start here</h1>")
    data: dict[str, dict[str, str]] = {"force_include": {}}
    BuiltBefore(str(tmp_path), {}, None, None, str(tmp_path), "wheel").initialize("standard", data)
    assert data["force_include"] == ({str(site): "octweb/_packed/site"} if built else {})
