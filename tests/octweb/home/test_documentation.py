"""/docs/ serves the files of the built site and no others, under the policy of all pages."""

import subprocess

import pytest
from django.urls import reverse

from octweb.home.documentation import file_of
from tests.conftest import ROOT

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(tmp_path, settings, media):
    folder = tmp_path / "site"
    (folder / "methods").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>Start here – ≤</h1>", encoding="utf-8")
    (folder / "methods" / "cart.html").write_text("<h1>cart</h1>")
    (folder / "methods" / "index.html").write_text("<h1>methods</h1>")
    (folder / "search.js").write_text("1")
    (folder / "tree.svg").write_text("<svg/>")
    (folder / ".hidden").write_text("hidden")
    (tmp_path / "secret.html").write_text("secret")
    (folder / "linked.html").symlink_to(tmp_path / "secret.html")
    settings.DOCS_DIR = folder
    return folder


@pytest.mark.parametrize(
    ("address", "kind", "text"),
    [
        ("/docs/", "text/html; charset=utf-8", "Start here – ≤"),
        ("/docs/index.html", "text/html; charset=utf-8", "Start here"),
        ("/docs/methods/cart.html", "text/html; charset=utf-8", "cart"),
        ("/docs/methods/", "text/html; charset=utf-8", "methods"),
        ("/docs/methods/cart/", "text/html; charset=utf-8", "cart"),
        ("/docs/search.js", "text/javascript; charset=utf-8", "1"),
        ("/docs/tree.svg", "image/svg+xml", "<svg/>"),
    ],
)
def test_files_of_the_site_are_served_to_everybody(client, site, address, kind, text):
    answer = client.get(address)
    assert answer.status_code == 200
    assert answer["Content-Type"] == kind
    assert text in answer.content.decode()
    assert "script-src 'self';" in answer["Content-Security-Policy"] + ";"
    assert answer["X-Content-Type-Options"] == "nosniff"


def test_unchanged_page_is_not_sent_again(client, site):
    first = client.get("/docs/")
    assert client.get("/docs/", headers={"If-None-Match": first["ETag"]}).status_code == 304
    (site / "index.html").write_text("new")
    assert client.get("/docs/", headers={"If-None-Match": first["ETag"]}).content == b"new"


@pytest.mark.parametrize(
    "page",
    [
        "../secret.html",
        "methods/../../secret.html",
        "..%2fsecret.html",
        "../secret/",
        "linked/",
        "nowhere/",
        "%2e%2e/secret.html",
        "linked.html",
        ".hidden",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "nowhere.html",
        "methods",
        "a%00b",
        "x" * 5000,
        "index.html/",
        "..\\secret.html",
    ],
)
def test_nothing_else_is_served(client, site, page):
    answer = client.get(f"/docs/{page}")
    assert answer.status_code == 404
    assert b"Nothing here" in answer.content
    assert b"secret" not in answer.content.replace(page.encode(), b"")


@pytest.mark.parametrize(
    "page", ["../secret.html", "methods/../../secret.html", "linked.html", ".hidden", "/etc/passwd", "a\0b"]
)
def test_no_file_of_another_place_is_found(site, page):
    """The view is called directly, because a client may normalise the URL."""
    assert file_of(site, page) is None


def test_without_a_site_pages_are_shown_as_text(client, tmp_path, settings, media):
    settings.DOCS_DIR = tmp_path / "nothing"
    for address, words in (
        ("/docs/", "# Start here"),
        ("/docs/methods/cart.html", "--method cart"),
        ("/docs/problems/", "# Errors of the API"),
    ):
        answer = client.get(address)
        assert answer.status_code == 200
        assert words in answer.content.decode()
        assert 'href="/docs/which-method.html"' in answer.content.decode()


@pytest.mark.parametrize("page", ["nowhere.html", "../README.html", "methods/../../README.html", "index.md"])
def test_without_a_site_no_other_file_is_shown(client, tmp_path, settings, media, page):
    settings.DOCS_DIR = tmp_path / "nothing"
    answer = client.get(f"/docs/{page}")
    assert answer.status_code == 404
    assert b"make docs" in answer.content


def test_make_run_builds_the_site_beside_the_server():
    command = ["make", "--dry-run", "--always-make", "run", "VENV=/nowhere"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    lines = process.stdout.splitlines()
    built = next(i for i, line in enumerate(lines) if "build/docs/index.html" in line)
    assert lines[built].rstrip().endswith("&")
    assert built < next(i for i, line in enumerate(lines) if "manage.py serve" in line)


def test_page_is_read_only(client, site):
    assert client.head("/docs/").status_code == 200
    assert client.post("/docs/").status_code == 405
    assert client.options("/docs/")["Allow"] == "GET, HEAD, OPTIONS"


def test_every_page_has_the_link(client, owner, media):
    link = f'href="{reverse("documentation")}"'
    assert link in client.get(reverse("login")).content.decode()
    client.force_login(owner)
    assert link in client.get(reverse("home")).content.decode()
