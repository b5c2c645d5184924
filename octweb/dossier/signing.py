"""Sign and verify dossiers with Ed25519.

The signature covers a list with the SHA-256 of every file, in the format of `sha256sum`. It is 64 bytes as in RFC 8032,
and the public key is PEM. OpenSSL and coreutils can therefore verify a dossier without octweb.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

MANIFEST = "manifest.sha256"
SIGNATURE = "signature.ed25519"
PUBLIC_KEY = "public-key.pem"
OWN = (MANIFEST, SIGNATURE)  # the list cannot contain itself or its signature
MAX_LIST_BYTES = 1_000_000


class BadKey(Exception):
    """A key cannot be used. The message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Result of a verification.

    `problems` is in words, and empty if all files are unchanged. `fingerprint` is that of the signer. `known` says
    whether the signer is trusted.
    """

    problems: tuple[str, ...]
    files: tuple[str, ...] = ()
    fingerprint: str = ""
    known: bool = False

    @property
    def holds(self) -> bool:
        """Whether every file is unchanged and the signer is trusted."""
        return not self.problems and self.known


def private_key(path: Path) -> Ed25519PrivateKey:
    """Return the key in the file. At first use, create it, readable by its owner only. Raises BadKey."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_once(path, Ed25519PrivateKey.generate())
    if path.stat().st_mode & 0o077:
        raise BadKey(
            f"Others can read the key {path}. Make it private with: chmod 600 {path}. If it may have been read, remove it: a new one is made."
        )
    try:
        return read_private(path.read_bytes())
    except ValueError as error:
        raise BadKey(
            f"The key {path} is damaged: {error}. Restore it from a backup, or remove it: a new one is made."
        ) from error


def read_private(pem: bytes) -> Ed25519PrivateKey:
    """Parse a private key from PEM. Raises ValueError."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("it is not an Ed25519 key")
    return key


def pem_of_private(key: Ed25519PrivateKey) -> bytes:
    """Return a private key as PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_once(path: Path, key: Ed25519PrivateKey) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(pem_of_private(key))
    try:
        os.link(temporary, path)  # if another process was first, this fails, and the other key counts
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


def pem_of(key: Ed25519PublicKey) -> bytes:
    """Return a public key as PEM."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def fingerprint(key: Ed25519PublicKey) -> str:
    """Return the fingerprint of a public key: SHA-256 of its 32 bytes, in hexadecimal."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return hashlib.sha256(raw).hexdigest()


def public_record(key: Ed25519PublicKey) -> dict[str, str]:
    """Return the record of the signing key in a dossier."""
    raw = key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return {"algorithm": "Ed25519", "public_key": raw.hex(), "fingerprint": fingerprint(key)}


def read_public(pem: bytes) -> Ed25519PublicKey:
    """Parse a public key from PEM. Raises BadKey."""
    try:
        key = serialization.load_pem_public_key(pem)
    except ValueError as error:
        raise BadKey(f"This is not a public key in PEM form: {error}.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise BadKey("This key is not an Ed25519 key.")
    return key


def sign(folder: Path, key: Ed25519PrivateKey) -> None:
    """Write public key, checksums of all files, and the signature of the checksums to the folder."""
    (folder / PUBLIC_KEY).write_bytes(pem_of(key.public_key()))
    names = sorted(p.name for p in folder.iterdir() if p.is_file() and p.name not in OWN)
    text = "".join(f"{digest(folder / name)}  {name}\n" for name in names).encode()
    (folder / MANIFEST).write_bytes(text)
    (folder / SIGNATURE).write_bytes(key.sign(text))


def check(folder: Path, *, trusted: frozenset[str]) -> Findings:
    """Verify the signature of the checksums, and every file against them.

    `trusted` are fingerprints of trusted keys.
    """
    lacking = [f"{name} is missing." for name in (MANIFEST, SIGNATURE, PUBLIC_KEY) if not (folder / name).is_file()]
    if lacking:
        return Findings(problems=tuple(lacking))
    if (folder / MANIFEST).stat().st_size > MAX_LIST_BYTES:
        return Findings(
            problems=(f"{MANIFEST} is larger than {MAX_LIST_BYTES:,} bytes, so it is not the list of this dossier.",)
        )
    text = (folder / MANIFEST).read_bytes()
    try:
        key = read_public((folder / PUBLIC_KEY).read_bytes())
    except BadKey as error:
        return Findings(problems=(f"{PUBLIC_KEY}: {error}",))
    problems = []
    key_fingerprint = fingerprint(key)
    try:
        key.verify((folder / SIGNATURE).read_bytes(), text)
    except InvalidSignature:
        problems.append(
            f"The signature does not fit {MANIFEST}: one of {MANIFEST}, {SIGNATURE} and {PUBLIC_KEY} was changed."
        )
    listed, wrong = _parse_checksums(text)
    problems += wrong
    for name, expected in listed.items():
        path = folder / name
        if not path.is_file() or path.is_symlink():
            problems.append(f"{name} is missing.")
        elif digest(path) != expected:
            problems.append(f"{name} was changed.")
    there = {p.name for p in folder.iterdir()} - {*listed, *OWN}
    problems += [f"{name} does not belong to the dossier: it is not in {MANIFEST}." for name in sorted(there)]
    if PUBLIC_KEY not in listed:
        problems.append(f"{MANIFEST} does not list {PUBLIC_KEY}.")
    return Findings(
        problems=tuple(problems), files=tuple(listed), fingerprint=key_fingerprint, known=key_fingerprint in trusted
    )


def _parse_checksums(text: bytes) -> tuple[dict[str, str], list[str]]:
    """Parse checksums to {name: SHA-256} up to the first bad line. Return them with a list of problems."""
    checksums: dict[str, str] = {}
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        checksum = line[:64]
        gap = line[64:66]
        name = line[66:]
        plain = name and "/" not in name and name not in (".", "..", *OWN) and name not in checksums
        if gap != "  " or not plain or not all(c in "0123456789abcdef" for c in checksum):
            return checksums, [f"{MANIFEST}, line {number}: this is not a SHA-256, two spaces and a new file name."]
        checksums[name] = checksum
    return checksums, []


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
