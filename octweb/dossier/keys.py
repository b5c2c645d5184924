"""Manage the signing key of dossiers, which all hosts of an installation share."""

from __future__ import annotations

import base64
import contextlib

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.conf import settings
from django.db import DatabaseError, transaction
from django.utils.crypto import salted_hmac

from octweb.audit import actions as audit
from octweb.dossier import signing
from octweb.dossier.models import SigningKey
from octweb.dossier.signing import BadKey


def signing_key() -> Ed25519PrivateKey:
    """Return the key of this host: its key file, or else the newest registered key.

    If there is none, create and register one. Raises BadKey if the key file is not registered, or if the registered key
    was encrypted with another OCTWEB_SECRET_KEY.
    """
    file_key = signing.private_key(settings.DOSSIER_KEY) if settings.DOSSIER_KEY.exists() else None
    with transaction.atomic():
        audit.hold()  # two hosts that start at the same moment must get the same key
        registered = SigningKey.objects.order_by("-pk").first()
        if registered is None:
            return register(file_key or Ed25519PrivateKey.generate())
    if file_key is None:
        return _load_private_key(registered)
    fingerprint = signing.fingerprint(file_key.public_key())
    if not SigningKey.objects.filter(fingerprint=fingerprint).exists():
        raise BadKey(
            f"The key {settings.DOSSIER_KEY} (SHA-256 {fingerprint}) is not registered in this installation, so nothing is signed with it. "
            "Remove the file: this host then uses the registered key. Or register it: manage.py dossier --register-key."
        )
    return file_key


def command_key() -> Ed25519PrivateKey:
    """Return the key for a command: the key file of this host, or else the key of the installation."""
    if not settings.DOSSIER_KEY.exists():
        try:
            return signing_key()
        except DatabaseError:  # commands also work without a database
            pass
    return signing.private_key(settings.DOSSIER_KEY)


def register(key: Ed25519PrivateKey) -> Ed25519PrivateKey:
    """Register the key for all hosts without a key file, and return it. Earlier keys remain trusted."""
    with transaction.atomic():
        SigningKey.objects.filter(fingerprint=signing.fingerprint(key.public_key())).delete()
        SigningKey.objects.create(**row_of(key))
    return key


def row_of(key: Ed25519PrivateKey) -> dict[str, str]:
    """Return the columns of a SigningKey. The private key is encrypted."""
    sealed = _seal().encrypt(signing.pem_of_private(key)).decode()
    return {"fingerprint": signing.fingerprint(key.public_key()), "sealed": sealed}


def known_fingerprints() -> frozenset[str]:
    """Return the fingerprints of all keys with which this installation has ever signed."""
    fingerprints = set()
    if settings.DOSSIER_KEY.exists():
        fingerprints.add(signing.fingerprint(signing.private_key(settings.DOSSIER_KEY).public_key()))
    with contextlib.suppress(DatabaseError):  # commands also work without a database
        fingerprints.update(SigningKey.objects.values_list("fingerprint", flat=True))
    return frozenset(fingerprints)


def _load_private_key(registered: SigningKey) -> Ed25519PrivateKey:
    try:
        return signing.read_private(_seal().decrypt(registered.sealed.encode()))
    except InvalidToken as error:
        raise BadKey(
            "The registered key for dossiers was sealed with another OCTWEB_SECRET_KEY. Set the same one on every host. "
            "If it is lost, make a new key: manage.py dossier --register-key."
        ) from error


def _seal() -> Fernet:
    secret = salted_hmac("octweb.dossier.keys", "seal", algorithm="sha256").digest()
    return Fernet(base64.urlsafe_b64encode(secret))
