"""An OpenID provider signs users in: a real one for the whole way, and signed tokens for each check."""

from __future__ import annotations

import time
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
import requests
from cryptography.hazmat.primitives.asymmetric import rsa
from django.contrib.admin.models import LogEntry
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from django.utils import timezone
from oidc_provider_mock import run_server_in_thread

from octweb.core import sign_on
from octweb.core.models import SignOnIdentity
from octweb.core.sign_in import SIGN_ON_BACKEND
from octweb.core.sign_on import SignOnBackend, SignOnError, claim
from octweb.environment import refuse_incomplete_provider, split_groups
from octweb.serving.authentication import forget

# the provider calls parts of its own library that will be removed; both are pinned
pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
BEGIN = "/accounts/sign-on/"


@pytest.fixture(scope="module")
def issuer():
    with run_server_in_thread() as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
def provider(issuer, settings, media):
    settings.OIDC_ISSUER = issuer
    settings.OIDC_CLIENT_ID = "octweb"
    settings.OIDC_CLIENT_SECRET = "of a test"
    settings.OIDC_CREATE = True
    settings.AUTHENTICATION_BACKENDS = [*settings.AUTHENTICATION_BACKENDS, SIGN_ON_BACKEND]
    return issuer


def sign_in(issuer: str, subject: str, *, client: Client | None = None, address: str = BEGIN, **claims: object):
    """Sign a user of the provider in as a browser does. Return the client and the last answer."""
    client = client or Client()
    requests.put(f"{issuer}/users/{subject}", json={"preferred_username": subject, **claims}, timeout=10)
    begun = client.get(address)
    assert begun.status_code == 302
    sent = requests.post(begun["Location"], data={"sub": subject}, allow_redirects=False, timeout=10)
    back = urlsplit(sent.headers["Location"])
    return client, client.get(f"{back.path}?{back.query}")


def name_of(client: Client) -> str:
    return client.get("/").wsgi_request.user.get_username()


def test_user_signs_in_and_out(provider, django_user_model):
    page = Client().get("/accounts/login/?next=/models/%3Fq%3Da")
    assert f'href="{BEGIN}?next=/models/%3Fq%3Da"' in page.content.decode()
    client, answer = sign_in(provider, "nora", address=f"{BEGIN}?next=/models/", email="nora@example.org")
    assert answer["Location"] == "/models/"
    assert name_of(client) == "nora"
    user = django_user_model.objects.get(username="nora")
    assert (user.email, user.has_usable_password(), user.is_staff) == ("nora@example.org", False, False)
    assert client.session.get_expiry_age() <= 12 * 3600
    left = client.post("/accounts/logout/")
    assert left["Location"].startswith(f"{provider}/oauth2/end_session?")
    query = parse_qs(urlsplit(left["Location"]).query)
    assert query["post_logout_redirect_uri"] == ["http://testserver/"]
    assert jwt.decode(query["id_token_hint"][0], options={"verify_signature": False})["sub"] == "nora"
    assert name_of(client) == ""


def test_request_to_the_provider_has_state_nonce_and_pkce(provider):
    query = parse_qs(urlsplit(Client().get(BEGIN)["Location"]).query)
    assert query["redirect_uri"] == ["http://testserver/accounts/sign-on/answer/"]
    assert query["code_challenge_method"] == ["S256"]
    assert all(len(query[name][0]) >= 32 for name in ("state", "nonce", "code_challenge"))
    assert "evil" not in str(
        Client().get(f"{BEGIN}?next=https://evil.example/").wsgi_request.session["oidc_login_next"]
    )


def test_identity_follows_the_subject_and_not_the_name(provider):
    sign_in(provider, "sub-1", preferred_username="nora")
    client, _ = sign_in(provider, "sub-1", preferred_username="nora-new")
    assert name_of(client) == "nora"
    client, answer = sign_in(provider, "sub-2", preferred_username="nora")
    assert answer.status_code == 403
    assert "belongs to another user" in answer.content.decode()
    assert name_of(client) == ""


@pytest.mark.parametrize("link", [False, True])
def test_account_with_a_password_needs_the_setting(provider, owner, settings, link):
    settings.OIDC_LINK = link
    owner.set_password("a long password")
    owner.save()
    client, answer = sign_in(provider, "olga")
    assert name_of(client) == ("olga" if link else "")
    assert ("an account with a password" in answer.content.decode()) is not link


def test_account_made_by_an_administrator_is_opened_by_name(provider, owner, settings):
    settings.OIDC_CREATE = False
    owner.set_unusable_password()
    owner.save()
    assert name_of(sign_in(provider, "olga")[0]) == "olga"
    _, answer = sign_in(provider, "nobody-here")
    assert "There is no account" in answer.content.decode()
    owner.is_active = False
    owner.save()
    _, answer = sign_in(provider, "olga")
    assert "is closed" in answer.content.decode()


def test_closed_account_loses_its_session(provider, django_user_model):
    client, _ = sign_in(provider, "nora")
    django_user_model.objects.filter(username="nora").update(is_active=False)
    assert name_of(client) == ""


def test_groups_give_and_take_roles(provider, settings, django_user_model):
    settings.MEMBER_GROUPS = ["trees"]
    settings.REVIEWER_GROUPS = ["risk"]
    settings.ADMINISTRATOR_GROUPS = ["it"]

    def role(*groups: str) -> tuple[bool, bool]:
        sign_in(provider, "gina", groups=list(groups))
        user = django_user_model.objects.get(username="gina")
        return user.is_staff, user.is_superuser

    assert role("trees") == (False, False)
    assert role("trees", "risk") == (True, False)
    assert role("it") == (True, True)
    assert role("trees") == (False, False)
    words = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert words == [f"role by sign-on: {name}" for name in ("Reviewer", "Administrator", "Member")]


def test_tokens_end_with_the_groups_or_after_days(provider, settings, client_of, django_user_model):
    settings.MEMBER_GROUPS = ["trees"]
    sign_in(provider, "tom", groups=["trees"])
    user = django_user_model.objects.get(username="tom")
    api = client_of(user)
    assert api.get("/api/v1/models/").status_code == 200
    _, answer = sign_in(provider, "tom", groups=[])
    assert "None of your groups" in answer.content.decode()
    forget()
    refused = api.get("/api/v1/models/")
    assert refused.status_code == 401
    assert "has to sign in with your organisation again" in refused.json()["detail"]
    sign_in(provider, "tom", groups=["trees"])
    forget()
    assert api.get("/api/v1/models/").status_code == 200
    days = (SignOnIdentity.objects.get().tokens_until - timezone.now()).total_seconds() / 86_400
    assert 29.9 < days <= settings.OIDC_TOKEN_DAYS
    settings.OIDC_TOKEN_DAYS = 0
    sign_in(provider, "tom", groups=["trees"])
    assert SignOnIdentity.objects.get().tokens_until is None


def test_denied_repeated_and_foreign_answers_are_refused(provider):
    client = Client()
    state = parse_qs(urlsplit(client.get(BEGIN)["Location"]).query)["state"][0]
    denied = client.get("/accounts/sign-on/answer/", {"error": "access_denied", "state": state})
    assert (denied.status_code, "did not sign you in" in denied.content.decode()) == (403, True)
    forged = client.get("/accounts/sign-on/answer/", {"code": "x", "state": "forged"})
    assert (forged.status_code, "another browser" in forged.content.decode()) == (403, True)
    unknown_code = client.get("/accounts/sign-on/answer/", {"code": "x", "state": state})
    assert (unknown_code.status_code, "status 400" in unknown_code.content.decode()) == (503, True)
    repeated = client.get("/accounts/sign-on/answer/", {"code": "x", "state": state})
    assert repeated.status_code == 403
    assert Client().get("/accounts/sign-on/answer/").status_code == 403


def test_passwords_work_while_the_provider_is_down(provider, settings, owner):
    settings.OIDC_ISSUER = "http://localhost:9"
    failed = Client().get(BEGIN)
    assert (failed.status_code, "Your password still works" in failed.content.decode()) == (503, True)
    owner.set_password("a long password")
    owner.save()
    client = Client()
    client.post("/accounts/login/", {"username": "olga", "password": "a long password"})
    assert name_of(client) == "olga"
    assert client.post("/accounts/logout/")["Location"] == "/"


def test_without_an_issuer_there_is_no_sign_on(client, media):
    assert client.get(BEGIN).status_code == 404
    assert BEGIN not in client.get("/accounts/login/").content.decode()


# every check of a token, each with all others satisfied

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ISSUER = "https://id.example.org"


@pytest.fixture
def keys(settings, monkeypatch):
    settings.OIDC_ISSUER = ISSUER
    settings.OIDC_CLIENT_ID = "octweb"
    jwk = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True) | {"kid": "one", "use": "sig"}
    document = {"issuer": ISSUER, "authorization_endpoint": "-", "token_endpoint": "-", "jwks_uri": "keys"}
    answers = {"keys": {"keys": [jwk]}, f"{ISSUER}/.well-known/openid-configuration": document}
    monkeypatch.setattr(sign_on, "_fetch", answers.__getitem__)
    monkeypatch.setattr(sign_on, "_documents", {})
    return document


def signed(key=KEY, *, algorithm="RS256", kid="one", **changes):
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": "octweb", "sub": "s", "iat": now, "exp": now + 300, "nonce": "n"} | changes
    return jwt.encode({k: v for k, v in claims.items() if v is not None}, key, algorithm, {"kid": kid})


def test_valid_token_is_accepted(keys):
    assert SignOnBackend().verify_token(signed(), nonce="n")["sub"] == "s"
    both = signed(aud=["octweb", "other"], azp="octweb")
    assert SignOnBackend().verify_token(both, nonce="n")["aud"] == ["octweb", "other"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"iss": "https://evil.example"}, "issuer"),
        ({"aud": "other"}, "[Aa]udience"),
        ({"aud": ["octweb", "other"]}, "another application"),
        ({"aud": ["octweb", "other"], "azp": "other"}, "another application"),
        ({"azp": "other"}, "another application"),
        ({"exp": int(time.time()) - 120}, "expired"),
        ({"exp": None}, "exp"),
        ({"sub": None}, "sub"),
        ({"iat": int(time.time()) + 100_000}, "not yet valid"),
        ({"nonce": "m"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"key": OTHER_KEY}, "[Ss]ignature"),
        ({"kid": "two"}, "not among those"),
        ({"key": "s" * 40, "algorithm": "HS256"}, "not accepted"),
        ({"key": None, "algorithm": "none"}, "not accepted"),
    ],
)
def test_token_with_one_fault_is_refused(keys, options, words):
    with pytest.raises(SignOnError, match=words):
        SignOnBackend().verify_token(signed(**options), nonce="n")


@pytest.mark.parametrize("token", [None, "", "a.b.c", "é"])
def test_something_else_than_a_token_is_refused(keys, token):
    with pytest.raises(SignOnError, match="not valid"):
        SignOnBackend().verify_token(token, nonce="n")


def test_document_of_another_issuer_is_refused(keys):
    keys["issuer"] = "https://evil.example"
    with pytest.raises(SignOnError, match="describes itself differently"):
        sign_on.provider()


def test_claims_are_found_by_name_or_path():
    claims = {"groups": ["a"], "realm_access": {"roles": ["b"]}, "https://x.example/groups": ["c"], "text": "d"}
    paths = ("groups", "realm_access.roles", "https://x.example/groups", "text.more", "none.at.all")
    assert [claim(claims, path) for path in paths] == [["a"], ["b"], ["c"], None, None]


def test_incomplete_settings_are_refused():
    refuse_incomplete_provider("", "", "")
    refuse_incomplete_provider("https://id.example.org", "octweb", "secret")
    for issuer in ("http://id.example.org", "id.example.org"):
        with pytest.raises(ImproperlyConfigured, match="must begin with https"):
            refuse_incomplete_provider(issuer, "octweb", "secret")
    for client, secret in (("octweb", ""), ("", "secret")):
        with pytest.raises(ImproperlyConfigured, match="OCTWEB_OIDC_CLIENT_SECRET must be"):
            refuse_incomplete_provider("https://id.example.org", client, secret)


def test_group_names_may_have_commas():
    assert split_groups("a, b,,c") == ["a", "b", "c"]
    assert split_groups("CN=a,OU=x; CN=b,OU=x") == ["CN=a,OU=x", "CN=b,OU=x"]


def test_user_of_another_answer_is_refused(keys, monkeypatch):
    keys["userinfo_endpoint"] = "-"
    backend = SignOnBackend()
    backend.OIDC_OP_USER_ENDPOINT = "-"
    monkeypatch.setattr(backend, "get_userinfo", lambda *tokens: {"sub": "other", "preferred_username": "admin"})
    with pytest.raises(SignOnError, match="about another user"):
        backend.get_or_create_user("", "", {"sub": "s"})


@pytest.mark.parametrize("groups", [5, True, {"trees": {}}, [["trees"]], [None]])
def test_groups_of_wrong_type_are_ignored(provider, settings, groups):
    settings.MEMBER_GROUPS = ["trees"]
    _, answer = sign_in(provider, "gina", groups=groups)
    assert (answer.status_code, "None of your groups" in answer.content.decode()) == (403, True)


def test_refused_user_loses_the_role_in_open_sessions(provider, settings):
    settings.MEMBER_GROUPS = ["trees"]
    settings.ADMINISTRATOR_GROUPS = ["it"]
    client, _ = sign_in(provider, "adam", groups=["it"])
    assert client.get("/").wsgi_request.user.is_superuser
    sign_in(provider, "adam", groups=[])
    assert not client.get("/").wsgi_request.user.is_superuser


def test_another_issuer_opens_the_same_accounts(provider, django_user_model):
    sign_in(provider, "nora")
    SignOnIdentity.objects.update(issuer="https://former.example.org")
    client, _ = sign_in(provider, "new-subject", preferred_username="nora")
    assert name_of(client) == "nora"
    assert SignOnIdentity.objects.get().subject == "new-subject"


def test_sign_out_after_a_change_of_user_names_the_session(provider):
    client, _ = sign_in(provider, "nora")
    _, answer = sign_in(provider, "tom", client=client, address=f"{BEGIN}?next=/models/")
    assert answer["Location"] == "/models/"
    query = parse_qs(urlsplit(client.post("/accounts/logout/")["Location"]).query)
    assert jwt.decode(query["id_token_hint"][0], options={"verify_signature": False})["sub"] == "tom"


def test_two_first_sign_ins_at_once_are_no_server_error(provider, monkeypatch, owner):
    real = sign_on._account_by_name

    def overtaken(claims):
        user = real(claims)
        SignOnIdentity.objects.create(user=owner, issuer=provider, subject=claims["sub"])
        return user

    with monkeypatch.context() as patch:
        patch.setattr(sign_on, "_account_by_name", overtaken)
        _, answer = sign_in(provider, "nora")
    assert (answer.status_code, "at the same time" in answer.content.decode()) == (403, True)
    assert name_of(sign_in(provider, "nora")[0]) == "nora"
