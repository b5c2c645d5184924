"""A proxy signs users in by headers, which count only with the secret of the proxy."""

from __future__ import annotations

import unicodedata

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from octweb.core.roles import role_of
from octweb.environment import refuse_weak_proxy_secret

pytestmark = pytest.mark.django_db
SECRET = "s" * 40
NAME = "X-Remote-User"
PROOF = "Octweb-Proxy-Secret"


@pytest.fixture
def proxy(settings, media):
    settings.REMOTE_USER_HEADER = NAME
    settings.REMOTE_USER_SECRET = SECRET
    return Client()


def user_of(client: Client, **headers: str) -> str:
    """Return the name of the signed-in user of a page, or ""."""
    names = {"name": NAME, "proof": PROOF, "alias": "X_Remote_User"}
    answer = client.get("/", headers={names[key]: value for key, value in headers.items()})
    assert answer.status_code == 200
    return answer.wsgi_request.user.get_username()


def test_proxy_header_signs_in_known_users_while_present(proxy, owner, stranger):
    assert user_of(proxy, name="olga", proof=SECRET) == "olga"
    assert user_of(proxy, name=" sam ", proof=SECRET) == "sam"
    assert user_of(proxy) == ""
    assert user_of(proxy, name="olga", proof=SECRET) == "olga"
    assert user_of(proxy, name="olga", proof="wrong") == ""


@pytest.mark.parametrize("proof", ["", "wrong", SECRET[:-1], SECRET + "s", "é"])
def test_header_without_the_secret_is_ignored(proxy, owner, proof, caplog):
    assert user_of(proxy, name="olga", proof=proof) == ""
    assert "without the secret" in caplog.text
    assert "olga" not in caplog.text


def test_sign_on_is_off_by_default(client, owner, media):
    assert user_of(client, name="olga", proof="") == ""
    assert user_of(client, name="olga", proof=SECRET) == ""


def test_password_sessions_are_kept_without_the_header(proxy, owner, stranger):
    proxy.force_login(owner, backend="django.contrib.auth.backends.ModelBackend")
    assert user_of(proxy) == "olga"
    assert user_of(proxy, name="sam", proof="wrong") == "olga"


def test_unknown_and_closed_accounts_are_refused(proxy, owner, settings, django_user_model):
    assert user_of(proxy, name="new", proof=SECRET) == ""
    assert not django_user_model.objects.filter(username="new").exists()
    for _ in range(settings.AXES_FAILURE_LIMIT):  # all users of a proxy have its address, and none locks others out
        assert user_of(proxy, name="new", proof=SECRET) == ""
    assert user_of(proxy, name="olga", proof=SECRET) == "olga"
    owner.is_active = False
    owner.save()
    assert user_of(proxy, name="olga", proof=SECRET) == ""
    settings.REMOTE_USER_CREATE = True
    assert user_of(proxy, name="new", proof=SECRET) == "new"
    user = django_user_model.objects.get(username="new")
    assert (user.is_staff, user.is_superuser, user.has_usable_password()) == (False, False, False)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_names_with_accents_find_their_account(proxy, django_user_model, form):
    django_user_model.objects.create_user("zoë")
    sent = unicodedata.normalize(form, "zoë").encode().decode("latin-1")  # as WSGI passes the bytes of the proxy
    assert user_of(proxy, name=sent, proof=SECRET) == "zoë"


def test_header_needs_a_long_secret():
    refuse_weak_proxy_secret("", "")
    refuse_weak_proxy_secret(NAME, SECRET)
    with pytest.raises(ImproperlyConfigured, match="OCTWEB_REMOTE_USER_SECRET needs 32 characters"):
        refuse_weak_proxy_secret(NAME, "short")


def test_groups_of_the_proxy_give_roles(proxy, owner, settings):
    settings.REMOTE_USER_GROUPS_HEADER = "X-Remote-Groups"
    settings.MEMBER_GROUPS = ["trees"]
    settings.REVIEWER_GROUPS = ["risk, credit"]

    def role(groups: str, proof: str = SECRET) -> str:
        proxy.get("/", headers={NAME: "olga", PROOF: proof, "X-Remote-Groups": groups})
        owner.refresh_from_db()
        return role_of(owner)

    assert role("trees; risk, credit", proof="wrong") == "member"
    assert role("trees; risk, credit") == "reviewer"
    assert user_of(proxy) == ""
    assert role("trees") == "member"
    answer = proxy.get("/", headers={NAME: "olga", PROOF: SECRET, "X-Remote-Groups": "others"})
    assert not answer.wsgi_request.user.is_authenticated
