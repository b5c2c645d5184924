"""Precompiled kernels of the package are used where they fit, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trainer import precompiled
from trainer.tree.route import leaves_of

TRAIN = """
import json, sys
from pathlib import Path
from numba.core import event
from trainer import precompiled
precompiled.FOLDER = Path(sys.argv[1])
if sys.argv[2] == "old":
    precompiled.LEVELS = {machine: (level, (*features, "a later one")) for machine, (level, features) in precompiled.LEVELS.items()}
compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):
        pass

with event.install_listener("numba:compile", Listener()):
    from trainer.tree.route import apply, flatten
    import numpy as np
    apply(flatten([(None, -1, -1)], ()), np.ones((2, 1)))
print(json.dumps(compiled))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Provide the code of the prediction kernel, compiled in a separate process and stored where a package would contain it."""
    folder = tmp_path_factory.mktemp("shipped")
    code = "from pathlib import Path; from tools.ready import copy_code; import trainer.tree.route as r; import numpy as np; "
    code += f"r.apply(r.flatten([(None, -1, -1)], ()), np.ones((1, 1))); copy_code(Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=os.environ | precompiled.environment(), check=True)
    return folder


def compiled(folder: Path, cache: Path, processor: str = "here") -> list[str]:
    kept = {k: v for k, v in os.environ.items() if k not in precompiled.environment()} | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", TRAIN, str(folder), processor]
    return json.loads(subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(
    not precompiled.processor_can(), reason="this processor has fewer features than the shipped code may use"
)
def test_shipped_code_is_used_only_where_it_fits(shipped, tmp_path):
    assert compiled(shipped, tmp_path / "a") == []
    assert "leaves_of" in compiled(shipped, tmp_path / "b", "old")  # the shipped code is for another processor
    assert "leaves_of" in compiled(tmp_path, tmp_path / "c")  # nothing is shipped
    assert compiled(tmp_path, tmp_path / "c") == []  # this machine has compiled the code itself


def test_required_members_of_numba_exist():
    store = leaves_of._cache
    assert isinstance(store, precompiled.Ready)
    assert callable(super(precompiled.Ready, store)._load_overload)
    assert store._enabled in (True, False)
    assert callable(store._impl.rebuild)
    assert store._impl.filename_base
    assert store._impl.locator.get_source_stamp()
