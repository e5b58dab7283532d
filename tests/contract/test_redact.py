"""Secrets, here all made up at run time, are found in every carrier; code, ids and hashes stay as they are."""

from __future__ import annotations

import base64
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_git.contract.placeholder import Policy
from relay_git.contract.redact import MARK, keys_in, redact, redact_contract

ALNUM = "Zq7Rk2Lm9Xw4Tn6Vb8Yc3Hd5Jf1Gp0Sa" * 3
SECRETS = {
    "anthropic-key": "sk-" + "ant-api03-" + ALNUM[:40],
    "openai-key": "sk-" + "proj-" + ALNUM[:20] + "_" + ALNUM[:20] + "-x",
    "sk-key": "sk-" + ALNUM[:48],
    "openrouter-key": "sk-" + "or-v1-" + ALNUM[:40],
    "groq-key": "gsk" + "_" + ALNUM[:48],
    "xai-key": "xai" + "-" + ALNUM[:60],
    "huggingface-token": "hf" + "_" + ALNUM[:34],
    "gitlab-token": "gl" + "pat-" + ALNUM[:20],
    "aws-key-id": "ASIA" + "Q7RK2LM9XW4TN6VB",
    "google-key": "AIza" + ALNUM[:35],
    "stripe-key": "sk" + "_live_" + ALNUM[:24],
    "slack-token": "xox" + "b-" + "123456789012-" + ALNUM[:24],
    "npm-token": "npm" + "_" + ALNUM[:36],
    "pypi-token": "pypi" + "-AgEI" + ALNUM[:60],
    "jwt": "eyJ" + ALNUM[:20] + ".eyJ" + ALNUM[:20] + "." + ALNUM[:30],
}
MORE = {
    "github-token": ["gh" + kind + "_" + ALNUM[:36] for kind in "pousr"]
    + ["github" + "_pat_" + ALNUM[:22] + "_" + ALNUM],
    "aws-key-id": ["AKIA" + "Q7RK2LM9XW4TN6VB"],
    "stripe-key": ["rk" + "_live_" + ALNUM[:24]],
    "slack-token": ["xox" + kind + "-" + ALNUM[:30] for kind in "aprs"],
}
ALL = [(rule, secret) for rule, secret in SECRETS.items()]
ALL += [(rule, secret) for rule, secrets in MORE.items() for secret in secrets]
CARRIERS = {
    "env line": "A_NAME={}\nB=1",
    "export": "export A_NAME='{}'",
    "JSON": '{{"name": "{}"}}',
    "JSON in text": '{{\\"name\\": \\"{}\\"}}',
    "YAML": "name: {}\n",
    "header": "X-Thing: {}",
    "URL": "https://host/path?name={}&x=1",
    "prose": "the key ({}), please",
    "after an escape": "line\\n{}\\nline",
    "diff": "+{}\n-old",
    "end": "{}",
}


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize(("rule", "secret"), ALL, ids=[f"{rule}-{n}" for n, (rule, _) in enumerate(ALL)])
def test_every_family_is_found_in_every_carrier(rule: str, secret: str, carrier: str) -> None:
    text, counts = redact(CARRIERS[carrier].format(secret))
    assert text == CARRIERS[carrier].format(f"[redacted:{rule}]")
    assert counts == {rule: 1}
    assert redact(text) == (text, {})


VALUE = "hunter" + "2Xq9z"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DB_PASSWORD=@", "DB_PASSWORD=#"),
        ("export MY_KEY=@ // c", "export MY_KEY=# // c"),
        ('SECRET="@"', 'SECRET="#"'),
        ('{"api_key": "@", "x": 1}', '{"api_key": "#", "x": 1}'),
        ('{"apiKey":"@"}', '{"apiKey":"#"}'),
        ('{\\"client_secret\\": \\"@\\"}', '{\\"client_secret\\": \\"#\\"}'),
        ("password: @", "password: #"),
        ("  access_token: '@'", "  access_token: '#'"),
        ("x-api-key: @", "x-api-key: #"),
        ("aws_secret_access_key = @", "aws_secret_access_key = #"),
        ("cmd --token @ --x", "cmd --token # --x"),
        ("cmd --password=@", "cmd --password=#"),
        ("https://h/?access_token=@&b=1", "https://h/?access_token=#&b=1"),
        ("const apiKey = '@';", "const apiKey = '#';"),
        ("'password' => '@',", "'password' => '#',"),
        ('password := "@"', 'password := "#"'),
        ("Uid=me;Pwd=@;", "Uid=me;Pwd=#;"),
        ('"password": "ab\\"@"', '"password": "#"'),
        ("FOO_SECRET=@\\nBAR=1", "FOO_SECRET=#\\nBAR=1"),
    ],
)
def test_values_of_secret_names_are_found_in_every_shape(before: str, after: str) -> None:
    text, counts = redact(before.replace("@", VALUE))
    assert text == after.replace("#", "[redacted:assignment]")
    assert counts == {"assignment": 1}
    assert redact(text) == (text, {})


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("password: Tr0ub4dor&3zz", "password: "),
        ("password: Tr0ub4dor&3zz&x9!k to fix it", "password:  to fix it"),
        ("export DB_PASSWORD=Tr0ub4dor&3zz", "export DB_PASSWORD="),
        ("?password=Tr0ub4dor3&user=me", "?password=&user=me"),
        ("?password=Tr0ub4dor3&a%5B0%5D=me", "?password=&a%5B0%5D=me"),
        ("password=Tr0ub4dor3&amp;user=me", "password=&amp;user=me"),
        ("login --password Tr0ub4dor3&& make", "login --password && make"),
    ],
)
def test_an_ampersand_is_part_of_a_value_unless_it_joins_it_to_what_follows(text: str, left: str) -> None:
    assert re.sub(r"\[redacted:[^]]*\]", "", redact(text)[0]) == left


def test_passwords_in_urls_are_found_also_with_an_at_sign() -> None:
    for password in ("secret1", "p@ss", "a@b@c", "pa:ss!"):
        text, counts = redact(f"see postgres://me:{password}@db.example:5432/x?y=1 now")
        assert text == "see postgres://me:[redacted:url-password]@db.example:5432/x?y=1 now"
        assert counts == {"url-password": 1}


def test_bearer_and_authorization_headers_are_found() -> None:
    token = "abcdef" + "0123456789xyz"
    assert redact(f"Authorization: Bearer {token}")[0] == "Authorization: Bearer [redacted:bearer]"
    assert redact(f"-H 'authorization: Basic {token}='")[0] == "-H 'authorization: Basic [redacted:authorization]'"
    assert redact(f'{{"Authorization": "Token {token}"}}')[0] == '{"Authorization": "Token [redacted:authorization]"}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("curl -u admin:@ https://h/x", "curl -u admin:#user-option# https://h/x"),
        ("curl -sSu 'admin:@' https://h", "curl -sSu 'admin:#user-option#' https://h"),
        ('curl --user "admin:@"', 'curl --user "admin:#user-option#"'),
        ("curl -X POST \\\n  --user=admin:@", "curl -X POST \\\n  --user=admin:#user-option#"),
        ("curl -uadmin:@ x", "curl -uadmin:#user-option# x"),
        ('["curl", "-u", "admin:@"]', '["curl", "-u", "admin:#user-option#"]'),
        ("curl --proxy-user me:@ x", "curl --proxy-user me:#user-option# x"),
        ("http -a x -u admin:@", "http -a x -u admin:#user-option#"),
        ("admin:@@db.example.com:5432/x", "admin:#host-password#@db.example.com:5432/x"),
        ("mongo me:@@10.0.0.1:27017", "mongo me:#host-password#@10.0.0.1:27017"),
        ("ftp me:@@ftp.example.org/pub", "ftp me:#host-password#@ftp.example.org/pub"),
        ("dsn = 'root:@@localhost/db'", "dsn = 'root:#host-password#@localhost/db'"),
        ("login with password @ first", "login with password #password-in-words# first"),
        ("the password is @.", "the password is #password-in-words#."),
        ("The password is '@', use it", "The password is '#password-in-words#', use it"),
        ("I set the admin password to `@`.", "I set the admin password to `#password-in-words#`."),
        ('say \\"password is @\\"', 'say \\"password is #password-in-words#\\"'),
        ("log in as admin using the password @!", "log in as admin using the password #password-in-words#!"),
    ],
)
def test_passwords_in_commands_addresses_and_prose_are_found(before: str, after: str) -> None:
    text, counts = redact(before.replace("@@", VALUE + "\0").replace("@", VALUE).replace("\0", "@"))
    rule = after.split("#")[1]
    assert text == after.replace(f"#{rule}#", f"[redacted:{rule}]")
    assert counts == {rule: 1}
    assert redact(text) == (text, {})


BODY = [ALNUM[:64], ALNUM[5:69], ALNUM[9:30] + "=="]


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
@pytest.mark.parametrize("end", ["\n", "\\n", "\r\n", "\\r\\n", '\\n" +\n  "', "\n+", "\n> "])
def test_private_keys_are_found_whole_escaped_in_pieces_and_cut(kind: str, end: str) -> None:
    first, last = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    for parts in ([first, *BODY, last], [first, *BODY], [*BODY, last], [first, *BODY[:1]]):
        text, counts = redact("before: " + end.join(parts) + "\nafter.")
        for line in BODY:
            assert line[:16] not in text
        assert counts == {"private-key": 1}
        assert text.startswith("before: ")
        assert text.endswith("after.")


def test_a_short_key_in_json_and_one_with_headers_are_found() -> None:
    first, last = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
    assert redact(f'{{"out":"{first}\\nMADEUP\\n{last}"}}')[0] == '{"out":"[redacted:private-key]"}'
    headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n\n"
    assert redact(f"{first}\n{headers}{BODY[0]}\n{last}")[0] == "[redacted:private-key]"
    assert BODY[0] not in redact(f"{first}\n{headers}{BODY[0]}\n")[0]


@pytest.mark.parametrize(
    "text",
    [
        'if (apiKey == "") {',
        'apiKey === "" && secret !== ""',
        'if token == "abcdef123":',
        "token=$TOKEN",
        "API_KEY=${VAR}",
        "API_KEY=${{ secrets.KEY }}",
        "const token = process.env.X",
        'const token = process.env["MY_TOKEN"];',
        "password = os.environ['DB_PASSWORD']",
        'password = getpass.getpass("Password: ")',
        "token = get_token()",
        "self.password = password",
        "max_tokens = 4096",
        "MAX_TOKENS=4096",
        "tokens: 1500",
        "password: string;",
        "def f(token: str, password: Optional[str] = None)",
        "secretKey: process.env.SECRET_KEY,",
        "task-management-system-backend",
        "risk-assessment-of-the-whole-thing-2024",
        '"integrity": "sha512-' + "Ab/+9" * 17 + '=="',
        "commit " + "a1b2c3d4" * 5,
        "sha256:" + "0f" * 32,
        "123e4567-e89b-12d3-a456-426614174000",
        "=== RUN   TestToken",
        "PASS: test_login2",
        "PWD=/home/user/x",
        "PASSWORD_FILE=/run/secrets/db",
        "PRIMARY_KEY=user_id",
        "the password: it must be long",
        'if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):',
        'return "-----BEGIN PRIVATE KEY-----\\n" + body + "\\n-----END PRIVATE KEY-----"',
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "http://localhost:8080/@scope/pkg",
        "postgres://user:${PASS}@host/db",
        "git@github.com:owner/repo.git",
        "Authorization: Bearer $TOKEN",
        "Bearer authentication is needed",
        "npm_config_registry=https://registry.example/",
        "from hf_hub import download",
        "docker run -u 1000:1000 image",
        "docker run --user node:node2024 image curl x",
        "curl x && docker run -u 1000:1000 image",
        "chown -R -u root:wheel1 /srv",
        "curl -u $USER:$PASS https://h",
        'curl -u "admin:${PASS}" https://h',
        "curl -u admin:<password> https://h",
        "curl -H 'X-User: a:b' https://h",
        "curl -u admin https://h:8080/x",
        "mailto:jane1984@example.com/",
        "Author:jane1984@example.com",
        "git@github.com:owner/repo2.git",
        "npm:left-pad2@1.3.0",
        "registry.example.com/app:v1.2.3@sha256:" + "0f" * 32,
        "scp file1 me@host.example.com:22/x",
        "the password is required",
        "the password is stored as sha256-hex",
        "the password is base64-encoded",
        "the password is argon2id hashed",
        "the password is 12-characters long or more",
        "the password is 8 to 72 characters long",
        "users log in with password authentication",
        "test with password reset2fa()",
        "reset the password to continue",
        "with password in tests/test_login2.py",
        "the password is read from $DB_PASS2",
        "the passphrase was <phrase1>",
    ],
)
def test_code_ids_hashes_and_placeholders_stay(text: str) -> None:
    assert redact(text) == (text, {})


def test_own_members_are_exempt_by_name_and_snippets_are_marked() -> None:
    secret = SECRETS["anthropic-key"]
    contract = {
        "sessionId": secret,
        "fileManifest": [{"path": secret, "sha256": secret}],
        "inFlightCode": [{"path": "a", "snippet": f"+{secret}\n"}, {"path": "b", "snippet": "+x\n"}],
        "summary": {"facts": [{"text": secret, "source": secret}]},
        "unknown": secret,
        "leg": 1,
        "to": None,
    }
    cleaned, counts = redact_contract(contract)
    assert cleaned["sessionId"] == secret
    assert cleaned["fileManifest"] == [{"path": "[redacted:anthropic-key]", "sha256": secret, "pathRedacted": True}]
    assert cleaned["inFlightCode"][0]["snippet"] == f"{MARK}+[redacted:anthropic-key]\n"
    assert cleaned["inFlightCode"][1]["snippet"] == "+x\n"
    assert cleaned["summary"]["facts"][0] == {"text": "[redacted:anthropic-key]", "source": "[redacted:anthropic-key]"}
    assert cleaned["unknown"] == "[redacted:anthropic-key]"
    assert counts == {"anthropic-key": 5}


@given(st.text(), st.sampled_from([secret for _, secret in ALL]), st.text())
def test_redacting_twice_changes_nothing_more(before: str, secret: str, after: str) -> None:
    text, _ = redact(f"{before} {secret} {after}")
    assert secret not in text
    assert redact(text)[0] == text


@pytest.mark.parametrize(
    "text",
    [
        "A" * 200_000 + "PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----" * 8_000,
        ("-----BEGIN PRIVATE KEY-----\n" + "abc def \n" * 2_000) * 10,
        ALNUM * 2_000 + "\n-----END PRIVATE KEY-----",
        "eyJ-" * 50_000,
        "sk-" * 70_000,
        "://a:" * 40_000,
        "password=" * 22_000,
        "token=auth=" * 20_000,
        "| password |\n" * 15_000,
        "password,a\n" * 18_000,
        "kind: Secret\nstringData:\n" + "  pw: abcdef1\n" * 15_000,
        "data:\n" + "  dsn: QUJDREVGSEk=\n" * 10_000 + "kind: Secret\n",
        'auth=("a","' * 18_000,
        "sk-\u200b" * 50_000,
        'token="' * 30_000,
        "pypi-" * 40_000,
        "Bearer " * 30_000,
        "password is " * 20_000,
        "with password a1" * 15_000,
        "curl -u a:" * 30_000,
        "-u a:b " * 40_000,
        "a:bcdef@" * 40_000,
        "a." * 100_000 + ":x@",
    ],
    ids=range(24),
)
def test_no_text_takes_long(text: str) -> None:
    before = time.process_time()
    redact(text)
    assert time.process_time() - before < 5  # seconds where it is linear, hours where it is not


def test_with_a_key_equal_secrets_are_equal_and_others_are_not() -> None:
    one, two = SECRETS["groq-key"], SECRETS["xai-key"]
    ours = Policy(b"k" * 32)
    text, counts = redact(f"a {one} b {two} c {one} d", ours)
    first, second, third = (word for word in text.split() if word.startswith("[redacted:"))
    assert first == third != second
    assert re.fullmatch(r"\[redacted:groq-key#[0-9a-f]{8}\]", first)
    assert counts == {"groq-key": 2, "xai-key": 1}
    assert redact(text, ours) == (text, {})
    assert redact(f"a {one} b", Policy(b"x" * 32))[0].split()[1] not in (first, second)


def test_what_the_user_allows_stays_and_nothing_else() -> None:
    known = "sk" + "_test_" + ALNUM[:24]
    allow = Policy(allow=("sk_test_*", "hunter2"))
    assert redact(f"x {known} y", allow) == (f"x {known} y", {})
    assert redact(f"x {SECRETS['stripe-key']} y", allow)[1] == {"stripe-key": 1}
    assert redact("DB_PASSWORD=hunter2 DB2_PASSWORD=hunter22", allow)[1] == {"assignment": 1}


@pytest.mark.parametrize("layers", [1, 2])
def test_secrets_in_base64_are_found_two_layers_deep_and_images_stay(layers: int) -> None:
    inner = f"A_TOKEN={VALUE}x\n"
    for _ in range(layers):
        inner = base64.b64encode(inner.encode()).decode()
    assert redact(f"echo {inner} | base64 -d") == ("echo [redacted:base64] | base64 -d", {"base64": 1})
    for harmless in (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), b"just words, and nothing that is secret in them"):
        text = "data:;base64," + base64.b64encode(harmless).decode()
        assert redact(text) == (text, {})


def test_only_what_is_a_key_wherever_it_stands_is_found_in_files() -> None:
    assert keys_in(f"a = '{SECRETS['groq-key']}'") == {"groq-key": 1}
    assert keys_in("-----BEGIN " + "PRIVATE KEY-----\n" + "\n".join(BODY)) == {"private-key": 1}
    assert keys_in(f"password = '{VALUE}'\nDB_TOKEN={VALUE}") == {}
    assert keys_in(SECRETS["groq-key"], Policy(allow=("gsk_*",))) == {}
