"""Made-up secrets in the shapes in which they occur, and innocent texts that look like them.

Made when it is asked for, from one seed, so that no file holds anything that a scanner could take for a secret.
"""

from __future__ import annotations

import base64
import json
import random
import string
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 20_260_101
HEX, LOWER, ALNUM = "0123456789abcdef", string.ascii_lowercase + string.digits, string.ascii_letters + string.digits
UPPER, WORD, SYMBOLS = string.ascii_uppercase + string.digits, ALNUM + "_-", ALNUM + "!#%^*+=.?~_-"


@dataclass(frozen=True)
class Sample:
    """A text; `secret` is what must not be left of it, empty where it must stay as it is."""

    kind: str
    carrier: str
    text: str
    secret: str = ""


class Maker:
    """Random words with a digit and a letter in them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def of(self, letters: str, length: int) -> str:
        while True:
            word = "".join(self.draw.choices(letters, k=length))
            if word[0].isalnum() and any(c.isdigit() for c in word) and any(c.isalpha() for c in word):
                return word


Make = Callable[[Maker], str]


def _after(prefix: str, *parts: tuple[str, int] | str) -> Make:
    return lambda m: prefix + "".join(p if isinstance(p, str) else m.of(*p) for p in parts)


PREFIXED: dict[str, Make] = {
    "anthropic": _after("sk-ant-", "api03-", (WORD, 93), "AA"),
    "openai project": _after("sk-proj-", (WORD, 74), "T3BlbkFJ", (WORD, 74)),
    "openai old": _after("sk-", (ALNUM, 20), "T3BlbkFJ", (ALNUM, 20)),
    "openrouter": _after("sk-or-", "v1-", (HEX, 64)),
    "deepseek": _after("sk-", (HEX, 32)),
    "groq": _after("gsk_", (ALNUM, 52)),
    "xai": _after("xai-", (ALNUM, 80)),
    "hugging face": _after("hf_", (ALNUM, 34)),
    "perplexity": _after("pplx-", (ALNUM, 48)),
    "replicate": _after("r8_", (ALNUM, 37)),
    "nvidia": _after("nvapi-", (WORD, 64)),
    "github": _after("ghp_", (ALNUM, 36)),
    "github app": _after("ghs_", (ALNUM, 36)),
    "github fine-grained": _after("github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    "gitlab": _after("glpat-", (WORD, 20)),
    "aws key id": _after("AKIA", (UPPER, 16)),
    "aws session id": _after("ASIA", (UPPER, 16)),
    "google": _after("AIza", (WORD, 35)),
    "google client": _after("GOCSPX-", (WORD, 28)),
    "stripe": _after("sk_", "live_", (ALNUM, 24)),
    "stripe restricted": _after("rk_", "live_", (ALNUM, 99)),
    "stripe webhook": _after("whsec_", (ALNUM, 32)),
    "slack bot": _after("xoxb-", "281928192819-", (ALNUM, 24)),
    "slack app": _after("xapp-", "1-A0", (UPPER, 9), "-", (HEX, 40)),
    "slack webhook": _after("https://hooks.slack.", "com/services/T0", (UPPER, 8), "/B0", (UPPER, 8), "/", (ALNUM, 24)),
    "npm": _after("npm_", (ALNUM, 36)),
    "pypi": _after("pypi-", "AgEIcHlwaS5vcmc", (WORD, 150)),
    "rubygems": _after("rubygems_", (HEX, 48)),
    "crates.io": _after("cio", (ALNUM, 32)),
    "docker hub": _after("dckr_pat_", (WORD, 27)),
    "sendgrid": _after("SG.", (WORD, 22), ".", (WORD, 43)),
    "mailgun": _after("key-", (HEX, 32)),
    "mailchimp": lambda m: f"{m.of(HEX, 32)}-us{m.draw.randrange(1, 22)}",
    "twilio": _after("SK", (HEX, 32)),
    "shopify": _after("shpat_", (HEX, 32)),
    "square": _after("sq0csp-", (WORD, 43)),
    "digitalocean": _after("dop_v1_", (HEX, 64)),
    "databricks": _after("dapi", (HEX, 32)),
    "linear": _after("lin_api_", (ALNUM, 40)),
    "notion": _after("ntn_", (ALNUM, 46)),
    "figma": _after("figd_", (WORD, 40)),
    "atlassian": _after("ATATT3", "xFfGF0", (WORD, 180), "=", (UPPER, 8)),
    "airtable": _after("pat", (ALNUM, 14), ".", (HEX, 64)),
    "vault": _after("hvs.", (WORD, 90)),
    "terraform cloud": lambda m: f"{m.of(ALNUM, 14)}.atlasv1.{m.of(WORD, 67)}",
    "grafana": _after("glsa_", (ALNUM, 32), "_", (HEX, 8)),
    "sentry": _after("sntryu_", (HEX, 64)),
    "new relic": _after("NRAK-", (UPPER, 27)),
    "postman": _after("PMAK-", (HEX, 24), "-", (HEX, 34)),
    "pulumi": _after("pul-", (HEX, 40)),
    "planetscale": _after("pscale_tkn_", (WORD, 43)),
    "supabase": _after("sbp_", (HEX, 40)),
    "tailscale": _after("tskey-", "auth-", (ALNUM, 16), "-", (ALNUM, 32)),
    "doppler": _after("dp.pt.", (ALNUM, 43)),
    "telegram": lambda m: f"{m.draw.randrange(10**8, 10**10)}:AA{m.of(WORD, 33)}",
    "discord": lambda m: f"M{m.of(ALNUM, 23)}.G{m.of(ALNUM, 5)}.{m.of(WORD, 38)}",
    "azure client": lambda m: f"{m.of(ALNUM, 3)}8Q~{m.of(ALNUM + '_.-', 34)}",
    "age": _after("AGE-SECRET-KEY-1", (UPPER, 58)),
}
"""Kinds that their maker gave a form of their own."""


def _jwt(m: Maker) -> str:
    head, body = ({"alg": "HS256", "typ": "JWT"}, {"sub": m.of(ALNUM, 12), "iat": 1_760_000_000})
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body)]
    return ".".join([*parts, m.of(WORD, 43)])


PREFIXED["jwt"] = _jwt
CARRIERS: dict[str, Callable[[str], str]] = {
    "json": lambda s: json.dumps({"name": "prod", "value": s, "n": 1}),
    "json in json": lambda s: json.dumps({"out": json.dumps({"x": [s]})}),
    "env": lambda s: f"A=1\nSERVICE_X={s}\nB=2\n",
    "yaml": lambda s: f"services:\n  - id: 3\n    with: {s}\n",
    "url": lambda s: f"GET https://api.example.com/v1/items?q=1&x={s}&page=2",
    "python": lambda s: f"client = Client({s!r}, retries=3)",
    "javascript": lambda s: f"const c = new Client({{ a: `{s}` }});",
    "shell history": lambda s: f": 1700000000:0;curl -s -H 'X-Thing: {s}' https://api.example.com/me",
    "diff": lambda s: f"@@ -1 +1 @@\n-x = 1\n+x = '{s}'\n",
    "log": lambda s: f"2026-01-02T03:04:05Z INFO starting with {s} (ok)",
    "written line ends": lambda s: f"first\\n{s}\\nlast",
    "base64": lambda s: "data: " + base64.b64encode(f"x\nvalue {s}\n".encode()).decode(),
}


def _password(m: Maker) -> str:
    return m.of(SYMBOLS, m.draw.randrange(10, 24))


def _pem(m: Maker, kind: str) -> str:
    body = "\n".join(m.of(ALNUM + "+/", 64) for _ in range(12)) + "\n" + m.of(ALNUM, 22) + "=="
    return f"-----BEGIN {kind}PRIVATE " + f"KEY-----\n{body}\n-----END {kind}PRIVATE " + "KEY-----"


def _basic(m: Maker) -> str:
    return base64.b64encode(f"admin:{_password(m)}".encode()).decode()


def _quoted(m: Maker) -> str:
    return _password(m).replace("%", "x").replace("?", "y")


def _phrase(m: Maker) -> str:
    letters, lengths = string.ascii_lowercase, range(4, 9)
    return " ".join(
        "".join(m.draw.choices(letters, k=m.draw.choice(lengths))) for _ in range(m.draw.choice((4, 6, 12)))
    )


REST: dict[str, tuple[Make, tuple[str, ...]]] = {
    "password": (
        _password,
        (
            "DB_PASSWORD={}\n",
            "export PGPASSWORD='{}'",
            '{{"user": "a", "password": "{}"}}',
            "spring:\n  datasource:\n    password: '{}'\n",
            '<user name="a"><password>{}</password></user>',
            'conn = connect(host="db", password="{}")',
            "$config['db_password'] = '{}';",
            "mysqldump --password='{}' shop > x.sql",
            '    "out": "{{\\"password\\": \\"{}\\"}}"',
            "- name: REDIS_PASSWORD\n  value: '{}'\n",
            'mail_password = """{}"""\n',
            "SMTP_PASSWORD='\\\n{}'\n",
            "password＝{}\n",
        ),
    ),
    "generic api key": (
        lambda m: m.of(HEX, 32),
        (
            "DD_API_KEY={}\n",
            '"apiKey": "{}",',
            "api_key: {}\n",
            "x-api-key: {}",
            "https://api.example.com/v2?apikey={}&q=1",
            'os.environ["WEATHER_API_KEY"] = "{}"',
            "ENV MAPS_API_KEY {}\nRUN x",
            '<add key="MapsApiKey" value="{}" />',
            "heroku config:set SEARCH_KEY={} -a app",
            'const API_KEY = "{}";',
            "API_KEY_2={}\n",
            "SEARCH_TOKEN_PROD: {}\n",
            'val token: String = "{}"',
            "define( 'AUTH_KEY', '{}' );",
            "mySecretString={}",
            "search --api-key \\\n  {} \\\n  --all\n",
            '#define MAPS_API_KEY "{}"',
            "const apiKey = process.env.API_KEY || '{}';",
            '{{"log": "{{\\\\\\"apiKey\\\\\\": \\\\\\"{}\\\\\\"}}"}}',
            'variable "api_key" {{\n  type = string\n  default = "{}"\n}}\n',
        ),
    ),
    "aws secret": (
        lambda m: m.of(ALNUM + "+/", 40),
        (
            "aws_secret_access_key = {}\n",
            "AWS_SECRET_ACCESS_KEY={}\n",
            '"SecretAccessKey": "{}",',
            "aws configure set aws_secret_access_key {}",
            "export AWS_SECRET_ACCESS_KEY='{}'",
            'secret_key = "{}"',
            "Access key ID,Secret access key\nAKIA{key},{}\n",
            "AWS Access Key ID [None]: AKIA{key}\nAWS Secret Access Key [None]: {}\n",
        ),
    ),
    "azure account key": (
        lambda m: m.of(ALNUM + "+/", 86) + "==",
        (
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=core.windows.net",
            'az storage blob list --account-key "{}"',
            '"SharedAccessKey": "{}"',
            "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={}",
        ),
    ),
    "heroku key": (
        lambda m: str(uuid.UUID(int=m.draw.getrandbits(128), version=4)),
        ("HEROKU_API_KEY={}\n", '"api_key": "{}"', "api-key: {}"),
    ),
    "client secret": (
        lambda m: m.of(WORD, 40),
        (
            '"client_secret": "{}"',
            "OAUTH_CLIENT_SECRET={}\n",
            "clientSecret: '{}',",
            "grant_type=client_credentials&client_secret={}&scope=x",
            "app --client-secret {} --tenant x",
            'builder.clientSecret("{}")',
        ),
    ),
    "url password": (
        lambda m: m.of(ALNUM + "!-._~", 16),
        (
            "DATABASE_URL=postgres://app:{}@db.internal:5432/shop\n",
            '"url": "mongodb+srv://root:{}@cluster0.abc.mongodb.net/x"',
            "git clone https://oauth2:{}@git.example.com/a/b.git",
            "redis: redis://:{}@cache:6379/0\n",
            "amqp://guest:{}@mq/vhost",
            "proxy=http://me:{}@proxy.corp:3128",
        ),
    ),
    "basic header": (
        _basic,
        (
            "Authorization: Basic {}",
            "curl -H 'authorization: Basic {}' https://x",
            '{{"headers": {{"Authorization": "Basic {}"}}}}',
            '"auths": {{"r.io": {{"auth": "{}"}}}}',
        ),
    ),
    "bearer header": (
        lambda m: m.of(WORD, 36),
        (
            "Authorization: Bearer {}",
            '-H "Authorization: Bearer {}"',
            "headers={{'Authorization': 'Bearer {}'}}",
            "Authorization: token {}",
        ),
    ),
    "cookie": (
        lambda m: m.of(ALNUM, 32),
        (
            "Cookie: lang=en; sessionid={}",
            "Set-Cookie: connect.sid={}; Path=/",
            "curl -b 'x=1' -H 'Cookie: auth_token={}' https://x",
        ),
    ),
    "curl user": (
        _password,
        (
            "curl -u admin:{} https://x/y",
            "curl --user 'deploy:{}' -T f https://x",
            "curl -u ':{}' https://x",
            "curl --user me:'{}' x",
        ),
    ),
    "tool password": (
        _quoted,
        (
            "sshpass -p '{}' ssh root@10.0.0.1",
            "mysql -u root -p{} shop",
            "redis-cli -h cache -a {} ping",
            "docker login -u me -p {} registry.example.com",
            "openssl rsa -in k -passin pass:{} -out o",
            "echo '{}' | docker login -u me --password-stdin",
            "echo '{}' | sudo -S systemctl restart web",
            "echo 'root:{}' | chpasswd",
            "ssh-keygen -t ed25519 -N '{}' -f key",
            "7z x backup.7z -p{}",
            "zip -P '{}' a.zip b.txt",
            "sqlplus scott/{}@db",
            "smbclient //files/x -U 'bob%{}'",
            "ConvertTo-SecureString '{}' -AsPlainText -Force",
            "az login --service-principal -u app -p '{}' --tenant x",
        ),
    ),
    "user and password": (
        lambda m: m.of(ALNUM, 14),
        (
            'requests.get(url, auth=("admin", "{}"))',
            "session.auth = HTTPBasicAuth('me', '{}')",
            'smtp.login("me@example.com", "{}")',
            "login: admin / {}",
            "the creds are admin:{}",
            "sign in as user admin with password {}",
        ),
    ),
    "table": (
        lambda m: m.of(ALNUM, 14),
        (
            "| user | password |\n|---|---|\n| admin | {} |\n",
            " id | name | password \n----+------+----------\n  1 | bob  | {}\n(1 row)\n",
            "User name,Password,Console login link\nbob,{},https://x.example\n",
            "| DB password | `{}` |\n",
            "Key         Value\n---         -----\npassword    {}\nuser        bob\n",
        ),
    ),
    "short name": (
        lambda m: m.of(ALNUM, 14),
        ("[smtp]\nuser = a\npass = {}\n", "  pw: {}\n", 'let pass = "{}";', "    storePassword '{}'\n"),
    ),
    "url token": (lambda m: m.of(HEX, 40), ("git clone https://{}@git.example.com/a/b.git",)),
    "sql password": (_password, ("CREATE USER app WITH PASSWORD '{}';", "ALTER USER 'a'@'%' IDENTIFIED BY '{}';")),
    "netrc": (
        lambda m: m.of(ALNUM, 20),
        ("machine git.example.com login me password {}", "machine a.b\n  login c\n  password {}\n"),
    ),
    "pgpass": (lambda m: m.of(ALNUM, 14), ("db.internal:5432:shop:app:{}\n", "localhost:5432:*:postgres:{}\n")),
    "npmrc": (
        lambda m: str(uuid.UUID(int=m.draw.getrandbits(128), version=4)),
        ("//registry.example.org/:_authToken={}\n", "//r.example.org/:_authToken={}\nalways-auth=true"),
    ),
    "kubernetes secret": (
        lambda m: base64.b64encode(_password(m).encode()).decode(),
        (
            "kind: Secret\ndata:\n  password: {}\n",
            "data:\n  api-token: {}\n",
            "kind: Secret\ndata:\n  extra: {}\n",
            "apiVersion: v1\ndata:\n  dsn: {}\n  url: {}\nkind: Secret\nmetadata:\n  name: x\n",
        ),
    ),
    "kubernetes text": (
        lambda m: m.of(ALNUM, 14),
        ("kind: Secret\nmetadata:\n  name: db-one\nstringData:\n  db: {}\n",),
    ),
    "connection string": (
        _quoted,
        ("Server=db;Database=x;User Id=sa;Password={};", '"Default": "Host=h;Username=u;Password={}"'),
    ),
    "passphrase": (
        _phrase,
        (
            "GPG_PASSPHRASE={}\n",
            "passphrase: {}\n",
            '{{"mnemonic": "{}"}}',
            'const seedPhrase = "{}";',
            "the recovery phrase is '{}'",
            "KEY_PASSPHRASE='{}' gpg --sign",
        ),
    ),
    "base64 in lines": (
        lambda m: (
            base64.encodebytes(f"APP={'x' * m.draw.randrange(40)}\nDB_PASSWORD={m.of(ALNUM, 18)}\n".encode())
            .decode()
            .strip()
        ),
        ("$ base64 .env\n{}\n$ ", "env: |\n{}\n"),
    ),
    "password in words": (
        lambda m: m.of(ALNUM, 12),
        (
            "the admin password is {}, do not lose it",
            "log in with password {}.",
            "Das Passwort lautet {}",
            "Das Kennwort für den Server ist: {}",
            "Mot de passe : {}",
            "la contraseña es {}.",
            "пароль: {}",
            "密码：{}",
            "Password for admin: {}",
        ),
    ),
    "base64 of an env file": (
        lambda m: base64.b64encode(f"DEBUG=1\nDB_PASSWORD={m.of(ALNUM, 18)}\n".encode()).decode(),
        ("echo {} | base64 -d > .env", "env: {}\n"),
    ),
    "private key": (lambda m: _pem(m, "RSA "), ("{}", "cat ~/.ssh/id_rsa\n{}\n$ ")),
    "private key in json": (
        lambda m: json.dumps(_pem(m, ""))[1:-1],
        ('{{"type": "service_account", "private_key": "{}"}}',),
    ),
}
"""Kinds that only what stands around them tells of."""

EACH = 5  # made-up secrets of a kind for each of its templates


def secrets() -> Iterator[Sample]:
    """Every prefixed kind in every carrier, every other kind in each of its own."""
    maker = Maker(SEED)
    for kind, make in PREFIXED.items():
        for carrier, wrap in CARRIERS.items():
            secret = make(maker)
            text = wrap(secret)
            yield Sample(kind, carrier, text, text.removeprefix("data: ") if carrier == "base64" else secret)
    for kind, (make, templates) in REST.items():
        for template in templates:
            for _ in range(EACH):
                secret = make(maker)
                text = template.replace("{key}", maker.of(UPPER, 16)) if "{key}" in template else template
                yield Sample(kind, template.split("{}")[0][-24:].strip(), text.format(secret, secret), secret)


def is_prefixed(kind: str) -> bool:
    """Whether a kind is one of those of which none may be missed."""
    return kind in PREFIXED


INNOCENT: dict[str, tuple[str, ...]] = {
    "commit": (
        "commit {hex40}",
        "git show {hex12}",
        "Merge: {hex7} {hex7}",
        "index {hex7}..{hex7} 100644",
        "pick {hex7} Add token parser",
        "HEAD is now at {hex7} Rotate key",
    ),
    "hash": (
        "sha256:{hex64}",
        "{hex64}  dist/app.tar.gz",
        '"integrity": "sha512-{b64}=="',
        "h1:{b64a}=",
        'etag: "{hex32}"',
        '"contentHash": "{hex32}"',
        "md5: {hex32}",
        "image: redis@sha256:{hex64}",
        "cache-key: {hex64}",
        '"key": "node-modules-{hex40}"',
        'ETag: W/"{hex16}"',
        "--hash=sha256:{hex64}",
        'checksum = "{hex64}"',
    ),
    "uuid": (
        "id: {uuid}",
        '"requestId": "{uuid}"',
        "session {uuid} started",
        "DELETE FROM t WHERE id = '{uuid}'",
        "/users/{uuid}/keys",
        '{{"key": "{uuid}", "type": "x"}}',
        "sessionId={uuid}",
        "session_id: {uuid}",
        "correlation token for {uuid}",
    ),
    "image": (
        "data:image/png;base64,iVBORw0KGgo{b64}{b64}",
        "src: url(data:font/woff2;base64,d09GMgABAAAAA{b64}{b64})",
        "![x](data:image/gif;base64,R0lGODlhAQABAIAAAP{b64})",
        '"thumbnail": "/9j/4AAQSkZJRgABAQ{b64}{b64}"',
    ),
    "identifier": (
        "task-management-system-backend",
        "risk-assessment-{n}-of-the-whole-{word}",
        "sk-{word}-{word}-{word}-{n}",
        "hf_{word}_{word}_tokenizer",
        "npm_{word}_config_registry",
        "AKIA_{word}",
        "glpat-less {word}",
        "ghp_{word}",
        "xox-{word}",
        "fw_{word}_{word}_version_{n}",
        "re_{word}_{word}_{n}",
        "key_{word}_{word}_{n}",
        "pat_{word}",
        "SG.{word}.{word}",
        "ico-{word}-{n}",
        "r8_{word}_format",
        "{word}_token_{n}_handler",
        "kubectl get secret {word}-tls -n prod",
        "the pass-through {word} of key-value pairs",
        "tskey-{word}",
        "secret_{word}_manager_{n}",
    ),
    "code": (
        "if (apiKey === '' || secret == null) {{",
        "token = request.headers.get('X-Token')",
        "password: str = Field(min_length={n})",
        'passphrase: "enter your own words here"',
        "passphrase: needed when the {word} is encrypted",
        "the passphrase is stored beside every {word}\n",
        "Passphrase: wrong length for {word} mnemonic",
        "mnemonic = wordlist.pick({n})  # four random common words",
        "const passphrase = prompt('Passphrase: ')",
        "const [token, setToken] = useState('')",
        "for key, value in items.items():",
        "def reset_password(user, token): ...",
        "type Secret struct {{ Key string; Token *Token }}",
        "secretKeyRef:\n  name: db\n  key: {word}\n",
        'token := os.Getenv("X_TOKEN")',
        "password = getpass.getpass('Password: ')",
        "api_key=settings.API_KEY,",
        "api_key = config['{word}_api_key']",
        "access_token: ${{{{ secrets.{word} }}}}",
        'password="$DB_PASSWORD"',
        "auth: (req, res) => {word}(req.user)",
        "session = Session(bind=engine{n})",
        "key={{item.{word}Id}}",
        '<input type="password" name="password" id="{word}-password-{n}">',
        "password_hash = bcrypt.hashpw(password, salt)",
        "max_tokens={n}",
        "total tokens: {n}",
        "expect(token).toBe(expectedToken{n})",
        "keys: ['{word}', 'token']",
        'private static final String TOKEN_HEADER = "X-{word}-Token";',
        "signature: (a: string, b: number) => void",
        "cookie: document.cookie",
        "this.session = await Session.create({{ id: {n} }})",
        "key: 'ArrowLeft',",
        "primaryKey: user_id_{n},",
        "foreign_key = '{word}_id'",
        "sort_key={word}_at",
        "pass: {n}, fail: 0",
        "PASS: test_login_{n}",
        "author = 'A. {word}'",
        'auth_provider = "google-oauth-{n}"',
        "const UNEXPECTED_TOKEN = /^unexpected token '?(.)'?(,)? /i",
        "nid_key = self._lib.NID_{word}_WithSHA1And3_Key_TripleDES_CBC",
        "    'password',\n    'm{n}{word}',\n",
        "login(request, user{n})",
        'token = options.token || "{word}"',
        "Das Passwort wird mit bcrypt{n} gespeichert",
        "echo y | sudo -S true",
    ),
    "about a secret": (
        'TOKEN_AUDIENCE = "{uuid}"',
        "credentialsId: '{uuid}'",
        "SECRET_NAME={word}-secret-{n}",
        "key_down_event={hex32}",
        "TOKEN_TTL_SECONDS={n}0000000",
        "kms_key_id: {uuid}",
        "PASSWORD_RESET_URL=https://x.example/reset{n}",
        "tokens_per_second: {n}00000",
        'public_key = "{b64a}"',
        "curl --user neo4j:[PASSWORD] http://{word}",
        "Authorization: Bearer XXXXXXXXXXXX",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        'secret: "projects/{n}/secrets/{word}/versions/4"',
        'redis.set("session:{hex16}", data)',
        "fetch(url, {{ credentials: 'same-origin' }})",
        "cookie: consent=accepted{n}",
        "const OID_DIGEST_KEY = '1.2.840.{n}.1.9.4';",
    ),
    "placeholder": (
        "API_KEY=<your-key-here>",
        "API_KEY=your-api-key-here-{n}",
        "password: changeme",
        "TOKEN=${{TOKEN}}",
        "TOKEN=xxxxxxxxxxxxxxxx",
        'secret: "********"',
        "DB_PASSWORD=%DB_PASSWORD%",
        "api_key: {{{{ api_key }}}}",
        "export TOKEN=$(cat /run/secrets/token)",
        "postgres://user:${{PASS}}@db/x",
        "Authorization: Bearer <token>",
        "password: !vault |",
        "password = var.db_password",
        "AWS_SECRET_ACCESS_KEY=",
        "secret: op://vault/{word}/password",
        'api_key = "YOUR_API_KEY"',
        "token: 'insert_token_here'",
    ),
    "url": (
        "https://github.com/{word}/{word}/commit/{hex40}",
        "http://localhost:{port}/@scope/{word}",
        "git@github.com:{word}/repo{n}.git",
        "https://example.com/{word}?page={n}&sort=key",
        "https://cdn.example.com/app.{hex16}.js",
        "ssh://git@host.example.com:22/{word}",
        "npm:{word}@1.{n}.0",
        "docker pull registry.example.com/{word}:v1.{n}",
        "s3://bucket-{word}/2026/{hex16}/data.parquet",
        "https://example.com/reset-password?next=/{word}",
    ),
    "output": (
        "ok  \tgithub.com/x/{word}\t0.{n}s",
        "npm warn deprecated {word}@1.{n}.0",
        "=== RUN   TestToken/{word}_{n}",
        "tests/test_auth.py::test_token_{word} PASSED",
        "Downloading {word}-{n}.0-py3-none-any.whl (12 kB)",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b64a} {word}@host",
        "-----BEGIN CERTIFICATE-----\nMIIB{b64}\n-----END CERTIFICATE-----",
        "drwxr-xr-x 2 root root {n} Jan  1 00:00 {word}",
        "    at Object.<anonymous> (/app/{word}.js:{n}:12)",
        'password authentication failed for user "{word}"',
        "2026-01-02 03:04:05:{n} GMT",
        "sid: S-1-5-21-{n}-{n}-{n}",
        "passwd:x:0:{n}:root:/root:/bin/bash",
        "| Token | Count |\n|---|---|\n| {word}_{n} | {n} |\n",
        "| Password | must have {n} letters |\n",
        "NAME         TYPE     DATA   AGE\n{word}-token   Opaque   {n}      5d\n",
        "name,token,size\n{word},{word}{n},{n}\n",
    ),
}
EACH_INNOCENT = 5
_WORDS = ("order", "refund", "invoice", "session", "parser", "cache", "worker", "schema", "tenant", "ledger", "router")


def innocents() -> Iterator[Sample]:
    """Look-alikes that must come out as they went in."""
    maker = Maker(SEED + 1)
    for kind, templates in INNOCENT.items():
        for template in templates:
            for _ in range(EACH_INNOCENT):
                yield Sample(kind, template[:24], template.format(**_fillings(maker)))


def _fillings(m: Maker) -> dict[str, str]:
    word = m.draw.choice(_WORDS)
    hexes = {f"hex{n}": m.of(HEX, n) for n in (7, 12, 16, 32, 40, 64)}
    number = str(m.draw.randrange(10, 9999))
    return hexes | {
        "word": word,
        "n": number,
        "port": str(m.draw.randrange(1024, 65535)),
        "uuid": str(uuid.UUID(int=m.draw.getrandbits(128), version=4)),
        "b64": m.of(ALNUM + "+/", 86),
        "b64a": m.of(ALNUM + "+/", 43),
    }
