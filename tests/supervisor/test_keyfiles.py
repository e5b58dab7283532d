"""Which files hold or are keys, whatever kind of file they are."""

from __future__ import annotations

import base64

import pytest

from relay_git.contract.placeholder import Policy
from relay_git.supervisor.keyfiles import keys_in_file

KEY = "gsk" + "_" + "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa"
BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
PEM = f"-----BEGIN {'PRIVATE'} KEY-----\n{BODY}\n{BODY[::-1]}\n-----END {'PRIVATE'} KEY-----\n"
PUTTY = "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: me\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 1\nAAAA\n"
PKCS12 = bytes.fromhex("308209a10201033082096706092a864886f70d010701") + bytes(40)


def b64(text: str) -> bytes:
    return base64.b64encode(text.encode())


def rules(data: bytes, path: str = "a.txt", *allow: str) -> list[str]:
    return sorted(keys_in_file(data, path.encode(), Policy(allow=allow)))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"])
def test_a_key_is_found_in_each_encoding(encoding) -> None:
    assert rules(f"Schlüssel: {KEY} für Größe\n".encode(encoding)) == ["groq-key"]
    assert rules(PEM.encode(encoding)) == ["private-key"]
    assert rules(b"MZ\x90\0\3" + KEY.encode(encoding) + b"\xff\0") == ["groq-key"]


@pytest.mark.parametrize("before", ["", "#", "# ", "# the key\n"])
def test_a_private_key_in_base64_is_found_wherever_it_begins(before) -> None:
    assert rules(b"users:\n- user:\n    client-key-data: " + b64(before + PEM) + b"\n") == ["private-key"]
    assert rules(b"    client-key-data: " + b64(before + PEM.replace("PRIVATE", "PUBLIC")) + b"\n") == []


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("mine.txt", PUTTY.encode()),
        ("renamed.bin", PKCS12),
        ("pkcs8.der", bytes.fromhex("308204bd020100300d06092a864886f70d0101010500048204a7") + bytes(40)),
        ("pkcs1.der", bytes.fromhex("308204a30201000282010100") + bytes(40)),
        ("sec1.der", bytes.fromhex("30770201010420") + bytes(40)),
        ("release.jks", bytes.fromhex("feedfeed00000002") + bytes(40)),
        ("vault.kdbx", bytes.fromhex("03d9a29a67fb4bb5") + bytes(40)),
    ],
)
def test_a_file_that_is_a_key_is_known(path, data) -> None:
    assert rules(data, path) == ["key-file"]
    assert rules(data, path, f"*{path[-6:]}") == []


@pytest.mark.parametrize(
    ("path", "data"),
    [
        (".env", b"DEBUG=1\n"),
        ("ca.pem", PEM.replace("PRIVATE KEY", "CERTIFICATE").encode()),
        ("strings.pem", PEM.replace("PRIVATE KEY", "CERTIFICATE").encode("utf-16")),
        ("talk.key", b"PK\3\4" + bytes(40)),
        ("cert.der", bytes.fromhex("308203a130820289a003020102") + bytes(40)),
        ("table.bin", b"gsk_\0" + KEY[4:].encode() + b"\0\xff"),
        ("empty.key", b""),
    ],
)
def test_what_only_has_the_name_or_the_look_of_a_key_is_none(path, data) -> None:
    assert rules(data, path) == []
