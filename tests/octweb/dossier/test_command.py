"""`manage.py dossier`: files, signature, and detection of any change."""

from __future__ import annotations

import json
import shutil
import stat
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from octweb.dossier import signing
from octweb.dossier.document import css_text
from tests.octweb.small_models import csv_of_small_table, trained

pytestmark = pytest.mark.django_db
ALL = [
    "check_octweb.py", "dossier.html", "dossier.json", "dossier.pdf", "manifest.sha256", "model.json", "public-key.pem", "signature.ed25519",
]  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Provide a folder with a dossier that is signed with a separate key."""
    from django.conf import settings

    folder = tmp_path_factory.mktemp("dossier")
    (folder / "model.json").write_text(json.dumps(trained("cart", folds=3)))
    (folder / "data.csv").write_text(csv_of_small_table())
    key = settings.DOSSIER_KEY
    settings.DOSSIER_KEY = folder / "key.pem"
    signing.private_key(settings.DOSSIER_KEY)
    try:
        call_command(
            "dossier",
            str(folder / "model.json"),
            str(folder / "data.csv"),
            output=str(folder / "out"),
            meant_for="tests </title><script>",
            group=["flag"],
        )
    finally:
        settings.DOSSIER_KEY = key
    return folder


@pytest.fixture
def copy(made, tmp_path, settings):
    """Provide a copy that a test may change, on the installation that signed it."""
    settings.DOSSIER_KEY = made / "key.pem"
    return shutil.copytree(made / "out", tmp_path / "copy")


def check(folder, capsys, **options):
    """Return the exit status of --check, and its record."""
    try:
        call_command("dossier", check=str(folder), json=True, **options)
        status = 0
    except SystemExit as error:
        status = error.code
    return status, json.loads(capsys.readouterr().out.strip().splitlines()[-1])


def test_the_folder_holds_everything_and_the_key_is_private(made):
    assert sorted(p.name for p in (made / "out").iterdir()) == ALL
    assert stat.S_IMODE((made / "key.pem").stat().st_mode) == 0o600
    record = json.loads((made / "out" / "dossier.json").read_text())
    key = signing.read_public((made / "out" / "public-key.pem").read_bytes())
    assert record["about"]["signing"] == signing.public_record(key)
    assert record["model"]["sha256"] == signing.digest(made / "model.json")
    page = (made / "out" / "dossier.html").read_text()
    assert len(page) < 500_000
    assert signing.fingerprint(key) in page
    assert "<script" not in page
    assert "tests &lt;/title&gt;" in page
    assert (made / "out" / "dossier.pdf").read_bytes().startswith(b"%PDF-")


def test_the_checker_in_the_folder_runs_alone(made, tmp_path):
    command = [sys.executable, "check_octweb.py", "model.json", "-", str(made / "data.csv")]
    process = subprocess.run(command, cwd=made / "out", capture_output=True, text=True, check=False)
    said = json.loads((made / "out" / "dossier.json").read_text())["check"]
    assert process.stdout.splitlines()[-1] == f"Verdict: {said['verdict']}"
    assert len(process.stdout.splitlines()) == len(said["lines"]) + 1


def test_an_unchanged_folder_holds(copy, capsys):
    status, found = check(copy, capsys)
    assert (status, found["holds"], found["problems"]) == (0, True, [])
    assert found["files"] == [name for name in ALL if name not in signing.OWN]
    status, again = check(copy, capsys, key=[str(copy / "public-key.pem")])
    assert (status, again["fingerprint"]) == (0, found["fingerprint"])


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("how", ["changed", "removed"])
def test_a_change_of_any_file_is_found(copy, capsys, name, how):
    path = copy / name
    if how == "removed":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(bytes(content))
    status, found = check(copy, capsys)
    assert status == 1
    assert any(name in problem for problem in found["problems"]), found


def test_added_file_and_paths_are_refused(copy, capsys):
    (copy / "more.txt").write_text("x")
    assert "more.txt does not belong" in check(copy, capsys)[1]["problems"][0]
    (copy / "more.txt").unlink()
    manifest = copy / signing.MANIFEST
    manifest.write_text(manifest.read_text().replace("  model.json", "  ../model.json"))
    assert any("is not a SHA-256, two spaces and a new file name" in p for p in check(copy, capsys)[1]["problems"])


def test_dossier_with_unknown_key_is_intact_but_unverified(copy, capsys, settings, tmp_path):
    (copy / "model.json").write_text("{}")
    for name in signing.OWN:
        (copy / name).unlink()
    signing.sign(copy, signing.private_key(tmp_path / "other.pem"))
    status, found = check(copy, capsys)
    assert (status, found["problems"], found["signer_known"]) == (1, [], False)


def test_a_key_that_others_can_read_is_refused(tmp_path):
    signing.private_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o644)
    with pytest.raises(signing.BadKey, match="chmod 600"):
        signing.private_key(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o600)
    (tmp_path / "key.pem").write_text("nothing")
    with pytest.raises(signing.BadKey, match="damaged"):
        signing.private_key(tmp_path / "key.pem")


def test_missing_library_is_reported_with_install_command(made, tmp_path, capsys, monkeypatch, settings):
    settings.DOSSIER_KEY = made / "key.pem"
    monkeypatch.setattr("octweb.dossier.pdf.importlib.util.find_spec", lambda name: None)
    call_command("dossier", str(made / "model.json"), str(made / "data.csv"), output=str(tmp_path / "out"))
    assert "pip install" in capsys.readouterr().err
    assert not (tmp_path / "out" / "dossier.pdf").exists()
    assert check(tmp_path / "out", capsys)[0] == 0


def test_refuted_model_and_bad_arguments_give_no_dossier(made, tmp_path):
    document = trained("cart", folds=3)
    document["metrics"]["train"]["correct"] += 1
    (tmp_path / "model.json").write_text(json.dumps(document))
    with pytest.raises(CommandError, match="so no dossier is written"):
        call_command("dossier", str(tmp_path / "model.json"), str(made / "data.csv"), output=str(tmp_path / "out"))
    with pytest.raises(CommandError, match="is not empty"):
        call_command("dossier", str(made / "model.json"), str(made / "data.csv"), output=str(made / "out"))
    with pytest.raises(CommandError, match="Give MODEL"):
        call_command("dossier", str(made / "model.json"))
    with pytest.raises(CommandError, match="no column 'size'"):
        call_command(
            "dossier", str(made / "model.json"), str(made / "data.csv"), output=str(tmp_path / "o"), group=["size"]
        )


def test_names_are_escaped_in_css():
    assert css_text('a"b\\c\n</style>') == '"a\\22 b\\5c c\\a \\3c \\2f style\\3e "'
