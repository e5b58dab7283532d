"""The shapes of secrets, as data: what a key begins with, which letters follow, how many, and what must stand near.

Promise: each pattern takes time linear in the text: what repeats is bounded, or is the last thing in it. Providers'
prefixes are facts that they publish; where a prefix is short enough to begin a name in code, a digit is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEX, _LOWER, _ALNUM, _UPPER = "0-9a-f", "0-9a-z", "A-Za-z0-9", "A-Z0-9"
_WORD = "A-Za-z0-9_-"
_BASE64 = "A-Za-z0-9+/="
_DIGIT = r"(?=[A-Za-z_-]{0,200}[0-9])"


@dataclass(frozen=True, slots=True)
class Rule:
    """One family: cheap words of which one must occur, and what is replaced then (group `keep` is kept).

    With `before`, only where that is found a little earlier in the same command.
    """

    name: str
    needles: tuple[str, ...]
    pattern: str
    before: str = ""


@dataclass(frozen=True, slots=True)
class _Key:
    """A provider's key: one of the prefixes, then at least so many letters; with `exact` no more of them than that."""

    name: str
    prefixes: str
    letters: str
    least: int
    digit: bool = False
    exact: bool = False

    def rule(self) -> Rule:
        """What finds it."""
        prefixes = tuple(self.prefixes.split())
        digit = rf"(?=[{self.letters.replace('0-9', '')}]{{0,200}}[0-9])" if self.digit else ""
        body = rf"[{self.letters}]{{{self.least}{'' if self.exact else ','}}}"
        end = rf"(?![{self.letters}])" if self.exact else ""
        return Rule(self.name, prefixes, f"(?:{'|'.join(map(re.escape, prefixes))}){digit}{body}{end}")


_KEYS = (
    _Key("anthropic-key", "sk-ant-", _WORD, 8),
    _Key("openrouter-key", "sk-or-", _WORD, 16),
    _Key("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None- sk-service-", _WORD, 12),
    _Key("langfuse-key", "sk-lf-", _WORD, 20),
    _Key("groq-key", "gsk_", _ALNUM, 20),
    _Key("xai-key", "xai-", _ALNUM, 20),
    _Key("huggingface-token", "hf_ api_org_", _ALNUM, 20),
    _Key("perplexity-key", "pplx-", _ALNUM, 32),
    _Key("replicate-token", "r8_", _ALNUM, 30, digit=True),
    _Key("nvidia-key", "nvapi-", _WORD, 40, digit=True),
    _Key("cerebras-key", "csk-", _LOWER, 40, digit=True),
    _Key("fireworks-key", "fw_", _ALNUM, 22, digit=True),
    _Key("tavily-key", "tvly-", _WORD, 20, digit=True),
    _Key("langsmith-key", "lsv2_pt_ lsv2_sk_", f"{_HEX}_", 32),
    _Key("elevenlabs-key", "sk_", _HEX, 48, exact=True),
    _Key("github-token", "github_pat_", f"{_ALNUM}_", 20),
    _Key("github-token", "ghp_ gho_ ghs_ ghu_ ghr_", _ALNUM, 20),
    _Key(
        "gitlab-token",
        " ".join(f"gl{k}-" for k in ["pat", "dt", "rt", "cbt", "ptt", "ft", "imt", "agent", "oas", "soat", "ffct"]),
        "A-Za-z0-9_.-",
        16,
    ),
    _Key("atlassian-token", "ATATT3 ATCTT3 ATBB", "A-Za-z0-9_=-", 20, digit=True),
    _Key("linear-key", "lin_api_ lin_oauth_", _ALNUM, 32),
    _Key("notion-token", "ntn_ secret_", _ALNUM, 40, digit=True),
    _Key("figma-token", "figd_ figu_", _WORD, 36, digit=True),
    _Key("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_", _ALNUM, 10),
    _Key("square-token", "sq0atp- sq0csp- sq0idp-", _WORD, 20),
    _Key("square-token", "EAAAE EAAAl EAAAF", _WORD, 55, digit=True),
    _Key("shopify-token", "shpat_ shpca_ shppa_ shpss_ shptka_", "0-9a-fA-F", 32),
    _Key("facebook-token", "EAAC EAAG EAAB EAAD", _ALNUM, 80, digit=True),
    _Key("duffel-token", "duffel_live_ duffel_test_", _WORD, 40),
    _Key("flutterwave-key", "FLWSECK_TEST- FLWSECK- FLWPUBK-", "A-Za-z0-9-", 20, digit=True),
    _Key("easypost-key", "EZAK EZTK", _ALNUM, 54, digit=True),
    _Key(
        "slack-token", "xoxa- xoxb- xoxc- xoxe- xoxp- xoxr- xoxs- xoxd- xoxe.xoxb- xoxe.xoxp- xapp-", "A-Za-z0-9%-", 10
    ),
    _Key("twilio-key", "SK", _HEX, 32, exact=True),
    _Key("brevo-key", "xkeysib- xsmtpsib-", "0-9a-zA-Z-", 60),
    _Key("mailgun-key", "key- pubkey-", _HEX, 32, exact=True),
    _Key("npm-token", "npm_", _ALNUM, 30),
    _Key("rubygems-key", "rubygems_", _HEX, 40),
    _Key("crates-token", "cio", _ALNUM, 32, digit=True, exact=True),
    _Key("clojars-token", "CLOJARS_", _LOWER, 50),
    _Key("docker-token", "dckr_pat_ dckr_oat_", _WORD, 20),
    _Key("artifactory-token", "AKCp cmVmdGtu", _ALNUM, 50, digit=True),
    _Key("buildkite-token", "bkua_", _LOWER, 30),
    _Key("circleci-token", "CCIPAT_ CCIPRJ_", f"{_ALNUM}_", 30),
    _Key("sonar-token", "squ_ sqp_ sqa_", _HEX, 40, exact=True),
    _Key("sentry-token", "sntrys_ sntryu_", "A-Za-z0-9+/=_-", 40),
    _Key("grafana-token", "glsa_ glc_", f"{_BASE64}_", 32, digit=True),
    _Key("newrelic-key", "NRAK- NRII- NRJS- NRRA-", "A-Za-z0-9-", 18),
    _Key("posthog-key", "phc_ phx_ phs_", _ALNUM, 40, digit=True),
    _Key("postman-key", "PMAK-", "0-9a-f-", 50),
    _Key("readme-key", "rdme_", _LOWER, 60),
    _Key("typeform-token", "tfp_", _WORD, 40, digit=True),
    _Key("prefect-key", "pnu_ pnb_", _ALNUM, 36, digit=True),
    _Key("infracost-key", "ico-", _ALNUM, 32, digit=True),
    _Key("aws-key-id", "AKIA ASIA ABIA ACCA", _UPPER, 16, exact=True),
    _Key("aws-bedrock-key", "ABSK", _BASE64, 80, digit=True),
    _Key("alibaba-key", "LTAI", _ALNUM, 16, digit=True),
    _Key("tencent-key", "AKID", _ALNUM, 32, digit=True),
    _Key("google-key", "AIza GOCSPX- ya29.", _WORD, 24),
    _Key("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", _HEX, 40),
    _Key("databricks-token", "dapi", _HEX, 32),
    _Key("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", "A-Za-z0-9_.=-", 30),
    _Key("supabase-key", "sbp_ sb_secret_", f"{_ALNUM}_", 30, digit=True),
    _Key("vercel-token", "vercel_blob_rw_ vcp_ vci_ vca_", f"{_ALNUM}_", 24, digit=True),
    _Key("netlify-token", "nfp_ nfc_", _ALNUM, 36),
    _Key("fly-token", "fm1_ fm2_ fo1_ fm1r_ fm2r_ fm1a_", "A-Za-z0-9+/=_,-", 40, digit=True),
    _Key("heroku-key", "HRKU-", _WORD, 36),
    _Key("pulumi-token", "pul-", _HEX, 40, exact=True),
    _Key("vault-token", "hvs. hvb. hvr.", _WORD, 24),
    _Key("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim.", "A-Za-z0-9_.", 40),
    _Key("onepassword-token", "ops_eyJ", "A-Za-z0-9+/=_-", 100),
    _Key("tailscale-key", "tskey-", "A-Za-z0-9-", 20),
    _Key("openshift-token", "sha256~", _WORD, 43, digit=True),
    _Key("age-key", "AGE-SECRET-KEY-1", _UPPER, 40),
    _Key("dropbox-token", "sl.", _WORD, 100),
    _Key("cursor-key", "crsr_ key_", _HEX, 60),
)
"""Keys that their makers gave a prefix to."""


# Not a secret, whatever stands before it: what is filled in later, what is taken out already.
_FILLED_IN = r"(?!\[redacted:|\[[A-Z_ ]{1,40}\]|\$[A-Za-z_({]|%[A-Za-z_({]|\{|<|\*{2}|\.{3}|[xX]{3})"
# Words with a digit that prose says of a password: how it is stored, how long it is.
_SAID_OF_IT = (
    r"(?!(?:sha|md|base|argon|pbkdf|utf|bcrypt|scrypt|aes|hmac|oauth|rfc|ascii|v)[-_]?\d|rot13|ed25519"
    r"|[\d,-]+-?(?:char|byte|bit|digit|letter|word|symbol|day|hour|min|sec|month|time|[dhms]\b))"
)
# A password among words: letters and a digit, without the point that ends the sentence.
_PROSE_VALUE = (
    rf"{_FILLED_IN}(?i:{_SAID_OF_IT})(?=[^\s\"'`<>\\]{{0,100}}[A-Za-z])(?=[^\s\"'`<>\\]{{0,100}}[0-9])"
    r"(?![^\s\"'`]{0,100}[(/])[^\s\"'`<>\\”“»]{6,100}?(?=[.,;:!?)\]。，]{0,3}(?:[\s\"'`<>\\”“»]|$))"
)
# Not inside of a longer word; the letter of a written escape such as \\n is not part of one.
_ALONE = r"(?:(?<=\\[nrt])|(?<![\w~.-]))"
_NO_USER = (  # what stands before "name@host" without being a user with a password
    r"(?!(?i:mailto|e?-?mail|acct|sips?|xmpp|from|to|cc|bcc|author|by|contact|owner|ssh|s?ftp|git|npm|pkg|github|redacted):)"
)

# A word of a passphrase; what sentences are made of is not.
_PHRASE_WORD = (
    r"(?!(?:the|your|our|for|and|that|this|must|should|enter|please|with|not|from|will|has|have|here|words?|phrase|when|where"
    r"|which|are|was|can|may|any|all|set|use|used|using|stored|needed|required|optional|missing|wrong|key|again|only)\b)[a-z]{3,12}"
)


def _rule(name: str, needles: str, pattern: str, before: str = "") -> Rule:
    return Rule(name, tuple(needles.split("|")), pattern, before)


_SHAPES = (
    _rule("sk-key", "sk-", rf"sk-(?<![_-]sk-){_DIGIT}(?:[A-Za-z0-9]{{20,}}|[A-Za-z0-9_-]{{40,}})"),
    _rule("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,}"),
    _rule("resend-key", "re_", r"re_[A-Za-z0-9]{6,12}_(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{20,}"),
    _rule("airtable-token", "pat", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{60,}"),
    _rule("dynatrace-token", "dt0", r"dt0[a-z]\d\d\.[A-Z0-9]{20,30}\.[A-Z0-9]{50,}"),
    _rule("cloudflare-token", "v1.0-", r"v1\.0-[0-9a-f]{20,32}-[0-9a-f]{100,}"),
    _rule("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    _rule(
        "pypi-token",
        "pypi-",
        r"pypi-(?:Ag|(?=[a-z0-9_-]{0,200}[A-Z])(?=[A-Za-z_-]{0,200}[0-9]))[A-Za-z0-9_-]{30,}",
    ),
    _rule("azure-secret", "Q~", rf"{_ALONE}[A-Za-z0-9_~.-]{{3}}\dQ~[A-Za-z0-9_~.-]{{31,34}}(?![A-Za-z0-9_~-])"),
    _rule(
        "url-signature",
        "sig=|ignature=",
        r"(?P<keep>[?&](?:sig|(?:X-(?:Amz|Goog)-)?Signature)=)[A-Za-z0-9%/+]{40,120}={0,2}",
    ),
    _rule("telegram-token", ":AA", rf"{_ALONE}\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}(?![A-Za-z0-9_-])"),
    _rule(
        "discord-token",
        "M|N|O",
        rf"{_ALONE}[MNO][A-Za-z0-9_-]{{23,25}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,45}}(?![\w.-])",
    ),
    _rule("mailchimp-key", "-us", rf"{_ALONE}[0-9a-f]{{32}}-us\d{{1,2}}(?!\w)"),
    _rule("firebase-key", ":APA91b", rf"{_ALONE}[A-Za-z0-9_-]{{7,40}}:APA91b[A-Za-z0-9_-]{{100,}}"),
    _rule(
        "webhook",
        "hooks.slack.com|discord|webhook.office.com|hooks.zapier.com",
        r"(?P<keep>(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/\d{1,24}/"
        r"|webhook\.office\.com/webhookb2/|hooks\.zapier\.com/hooks/catch/))[A-Za-z0-9/_@-]{12,}",
    ),
    # The look-ahead takes the first part whole, so that no step back into it costs time. A possessive repeat would say
    # so more plainly, but Python before 3.11.5 gets those wrong.
    _rule("jwt", "eyJ", r"eyJ(?=([A-Za-z0-9_-]{8,4096}))\1\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    _rule(
        "url-password",
        "://",
        r"(?P<keep>://(?!\[redacted:)[^\s/:@\"'`<>\\]{0,200}:)"
        r"(?!\[redacted:|\$[A-Za-z_({]|%[({s]|\{|<|\*+@|process\.env)[^\s/\"'`<>\\]{1,400}(?=@[A-Za-z0-9\[{$])",
    ),
    _rule(
        "host-password",
        "@",
        rf"(?<![\w/:@.\[-])(?P<keep>{_NO_USER}[A-Za-z0-9_][A-Za-z0-9._-]{{0,63}}:){_FILLED_IN}"
        r"[^\s/:@\"'`<>\\\[\](){},;|]{5,200}"
        r"(?=@(?:localhost|\d{1,3}(?:\.\d{1,3}){3}|(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24})(?::\d{2,5}\b|/[\w?]))",
    ),
    _rule(
        "user-option",
        "curl|wget|http|xh",
        r"(?P<keep>(?<![^\s\"'\\,])(?:-[a-zA-Z]{0,6}[uU]|--user|--proxy-user)(?:[\"'\\,\s=]{0,6})[^\s:\"'`$\\,=<>]{0,100}:[\"']?)"
        rf"{_FILLED_IN}[^\s\"'`\\]{{1,400}}",
        before=r"\b(?:curl|wget|https?|xh)(?:\.exe)?\b(?!:)(?:[^\n;|&]|\\\n|&(?!&))*\Z",
    ),
    _rule(
        "command-password",
        "sshpass|mysql|mariadb|redis-cli|docker|podman|helm|openssl|mongo|sqlcmd|ldapsearch|keytool|htpasswd|net use"
        "|ssh-keygen|7z|zip|rar|nmcli|az login",
        r"(?P<keep>\b(?:sshpass\s+-p|(?:mysql|mysqldump|mysqladmin|mariadb)\s(?:[^\n;|&]{0,200}\s)?-p|redis-cli\s(?:[^\n;|&]{0,200}\s)?-a"
        r"|(?:docker|podman|helm)\s(?:registry\s)?login\s(?:[^\n;|&]{0,200}\s)?-p|mongo(?:sh|dump|restore)?\s(?:[^\n;|&]{0,200}\s)?-p"
        r"|sqlcmd\s(?:[^\n;|&]{0,200}\s)?-P|ldapsearch\s(?:[^\n;|&]{0,200}\s)?-w|keytool\s(?:[^\n;|&]{0,200}\s)?-(?:store|key)pass"
        r"|ssh-keygen\s(?:[^\n;|&]{0,200}\s)?-[NP]|(?:7z[azr]?|zip|unzip|rar|unrar)\s(?:[^\n;|&]{0,200}\s)?-[pP]"
        r"|nmcli\s[^\n;|&]{0,200}\spassword|az\slogin\s(?:[^\n;|&]{0,200}\s)?-p"
        r"|htpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+\S{1,200}\s+\S{1,100}|openssl\s[^\n;|&]{0,200}pass\s(?:file|env)?pass:)(?:\s+|(?<=-p)|(?<=-P))"
        rf"[\"']?){_FILLED_IN}(?![-~./]|\d+(?::\d+)?(?:\s|$))[^\s\"'`\\]{{4,200}}",
    ),
    _rule(
        "command-password",
        "--password-stdin|sudo|--with-token|chpasswd|--stdin|cryptsetup",
        rf"(?P<keep>\b(?:echo|printf)\s+(?:-n\s+)?[\"']?(?:[a-z_][\w-]{{0,31}}:)?){_FILLED_IN}(?!yes\b|[^\s|]{{0,60}}\[redacted:)[^\s\"'`|]{{6,200}}"
        r"(?=[\"']?\s{0,8}\|[^|\n]{0,100}(?:--password-stdin|--with-token|--stdin\b|\bchpasswd\b|\bcryptsetup\b|\bsudo\s(?:-\w+\s){0,3}-\w{0,4}S))",
    ),
    _rule(
        "command-password",
        "<<<",
        rf"(?P<keep>--(?:with-token|password-stdin|stdin)\s{{0,3}}<<<\s{{0,3}}[\"']?){_FILLED_IN}[^\s\"'`]{{6,400}}",
    ),
    _rule(
        "command-password",
        "sqlplus|expdp|impdp|smbclient",
        r"(?P<keep>\b(?:(?:sqlplus|expdp|impdp)\s(?:-\w{1,8}\s){0,3}[\w$#]{1,40}/|smbclient\s[^\n;|&]{0,200}[-=]U(?:ser)?[\s=]?[\"']?[\w\\.-]{1,60}%))"
        rf"{_FILLED_IN}[^\s\"'`\\@]{{4,200}}",
    ),
    _rule(
        "command-password",
        "ConvertTo-SecureString|gh secret|mc alias|mc config",
        r"(?P<keep>\b(?:ConvertTo-SecureString\s+(?:-String\s+)?[\"']|gh\ssecret\sset\s[^\n;|&]{0,200}(?:-b|--body)[\s=][\"']?"
        r"|mc\s(?:alias|config\shost)\s(?:set|add)\s\S{1,100}\s\S{1,200}\s\S{1,100}\s[\"']?))"
        rf"{_FILLED_IN}[^\s\"'`\\]{{6,400}}",
    ),
    _rule(
        "auth-pair",
        "auth|Auth|login|ogin(|redentials",
        r"(?P<keep>\b(?:auth\s{0,2}=\s{0,2}(?:[\w.]{1,40})?\(|\w{0,20}(?:Basic|Digest|basic|http)_?[Aa]uth\w{0,20}\(|\w{0,20}Credentials\("
        r"|[\w.]{0,40}\.(?:auth|login|basicAuth|authenticate)\()\s{0,8}[rbu]?([\"'])[^\"'\n]{1,80}\2\s{0,2},\s{0,8}[rbu]?([\"']))"
        rf"{_FILLED_IN}(?=[^\"'\n]{{0,100}}[0-9])[^\s\"'\\]{{6,200}}(?=\3)",
    ),
    _rule(
        "aws-secret",
        "AKIA|ASIA",
        r"(?P<keep>(?:\[redacted:aws-key-id(?:#[0-9a-f]{8})?\]|\b(?:AKIA|ASIA)[A-Z0-9]{16})[\"']?[\s,;:|]{1,8}[\"']?)"
        r"(?=[A-Za-z0-9/+]{0,39}[0-9])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    _rule(
        "aws-secret",
        "ecret Access Key [",
        r"(?P<keep>ecret Access Key \[[^\]\n]{0,30}\]: ?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    _rule(
        "url-token",
        "://",
        r"(?P<keep>https?://)(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{32,200}(?=@[A-Za-z0-9])",
    ),
    _rule(
        "kubernetes-secret",
        "kind: Secret",
        r"(?m:(?P<keep>^[ \t]{1,8}[\w.-]{1,64}:[ \t]{1,4}[\"']?)[A-Za-z0-9+/]{12,400}={0,2}(?=[\"']?[ \t]{0,8}\r?$))",
        before=r"\bkind: Secret\b[^\x00]{0,400}\ndata:[^\x00]*\Z",
    ),
    _rule(  # as `kubectl get` writes it: the kind comes last
        "kubernetes-secret",
        "kind: Secret",
        r"(?m:(?P<keep>^[ \t]{1,8}[\w.-]{1,64}:[ \t]{1,4}[\"']?)[A-Za-z0-9+/]{8,400}={0,2}(?=[\"']?[ \t]{0,8}\r?$))"
        r"(?=[^\n]{0,20}(?:\n[ \t][^\n]{0,500}){0,30}\nkind: Secret\b)",
        before=r"(?:\n|\A)data:\r?\n(?:[ \t][^\n]*\n){0,30}\Z",
    ),
    _rule(
        "kubernetes-secret",
        "stringData:",
        rf"(?m:(?P<keep>^[ \t]{{1,8}}[\w.-]{{1,64}}:[ \t]{{1,4}}[\"']?){_FILLED_IN}"
        r"(?![|>&*!])[^\s\"'`]{6,400}(?=[\"']?[ \t]{0,8}\r?$))",
        before=r"(?:\n|\A)stringData:\r?\n(?:[ \t][^\n]*\n){0,30}\Z",
    ),
    _rule(
        "openssl-password",
        "pass:",
        rf"(?P<keep>-(?:pass|passin|passout)\s+[\"']?pass:){_FILLED_IN}[^\s\"'`\\]{{4,200}}",
    ),
    _rule(
        "sql-password",
        "PASSWORD|IDENTIFIED|password|identified",
        rf"(?P<keep>\b(?i:(?:IDENTIFIED\s+BY|(?:WITH\s+|ENCRYPTED\s+|SET\s+)?PASSWORD(?:\s*=)?)\s+(?:PASSWORD\s+)?N?[\"']|SET\s+PASSWORD\s*=\s*'))"
        rf"{_FILLED_IN}(?=[^\"'\s]{{0,100}}[0-9\W])[^\"'\s\\]{{5,200}}(?=[\"'])",
        before=r"(?i:\b(?:create|alter|set|grant|identified)\b[^;]{0,400}\Z)",
    ),
    _rule(
        "netrc-password",
        "machine|default login",
        rf"(?P<keep>\b(?:machine\s+\S{{1,200}}|default)\s+login\s+\S{{1,200}}\s+password\s+){_FILLED_IN}\S{{4,200}}",
    ),
    _rule(
        "pgpass",
        ":",
        r"(?m:(?P<keep>^(?:[\w.*-]{1,100}):(?:\d{2,5}|\*):(?:[\w*-]{1,64}):(?:[\w.@-]{1,64}):))"
        rf"{_FILLED_IN}(?=[^\s:]{{0,100}}[0-9\W])[^\s:\"'`<>\\]{{6,200}}(?=\s|\\n|$)",
    ),
    _rule(
        "password-in-words",
        "assword|asswd|assphrase|ASSWORD",
        r"(?P<keep>\b(?i:(?:password|passwd|passphrase)\s(?:is|was|to)(?:\s(?:now|just|set\sto))?:?"
        r"|(?:with|using|and|use|try|enter)\s(?:the\s)?(?:password|passwd|passphrase)"
        r"|(?:password|passwd|passphrase)\sfor\s(?:the\s)?[\w@.'-]{1,40}(?:\s\w{1,20})?(?:\sis:?|:)"
        r"|(?:user(?:name)?|login|account)\s[^\s,]{1,40},?\s(?:and\s|with\s)?(?:password|passwd))\s{1,2}\\?[\"'`]?)"
        rf"{_PROSE_VALUE}",
    ),
    _rule(
        "password-in-words",
        "creds|redentials|ogin: |ogin is|ogins ",
        r"(?P<keep>\b(?i:creds?|credentials|log-?ins?)\s?(?:are|is|:|=)\s{0,2}[\w.@-]{1,40}(?:\s/\s|:\s{0,2})[\"'`]?)"
        rf"{_PROSE_VALUE}",
    ),
    _rule(
        "password-in-words",
        "asswor|ennwor|ot de passe|ontrase|enha|achtwoord|parola|hasło|lösenord|арол|密码|密碼|パスワード|비밀번호",
        r"(?P<keep>(?i:\b(?:passwort|kennwort|mot de passe|contrase[nñ]a|senha|wachtwoord|parola|hasło|lösenord"
        r"|пароль?)"
        r"(?:\s[\w-]{1,20}){0,4}?(?:\s(?:lautet|ist|heißt|est|es|é|è|is|jest|är)(?:\s(?:jetzt|nun|ahora))?:?|\s?[:：])\s{0,2}"
        r"|(?:密码|密碼|パスワード|비밀번호)\s?(?:[:：=]|是|为|は|는)\s?)\\?[\"'`„“«]?)"
        rf"{_PROSE_VALUE}",
    ),
    _rule(
        "passphrase",
        "hrase|HRASE|nemonic|NEMONIC",
        r"(?P<keep>(?i:(?:pass|seed|recovery|backup|wallet)[-_ ]?phrase|mnemonic(?:[-_ ]?(?:phrase|words))?)"
        r"\\?[\"'`]?\s{0,4}(?:(?:=>?|:=?)\s{0,4}\\?[\"'`]?|(?:is|was)\s:?\s{0,4}\\?[\"'`]))"
        rf"(?:{_PHRASE_WORD}[ -]){{3,23}}{_PHRASE_WORD}"
        r"(?=\\?[\"'`]|[.,;]?[ \t]{0,4}(?:\\n|[\r\n]|$))",
    ),
    _rule(
        "bearer",
        "earer|BEARER",
        r"(?P<keep>\b(?:[Bb]earer|BEARER)(?:\s+|%20))(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{12,}",
    ),
    _rule(
        "authorization",
        "uthorization|UTHORIZATION|uth-|UTH-",
        r"(?P<keep>(?:[Aa]uthorization|AUTHORIZATION|[Xx]-[Aa]uth-[A-Za-z-]{1,20})\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
        r"(?:(?:[Bb]asic|[Bb]earer|[Tt]oken|[Dd]igest|[Aa]pi[Kk]ey|SSWS|Splunk|GenieKey|[Aa][Pp][Ii]-[Tt]oken)\s+(?:token=)?)?)"
        r"(?!\[redacted:|[xX]{4}|[A-Za-z]+\d?\b(?![._~+/=-]))(?:(?<=\s)(?=\S{8,})|(?=[A-Za-z._~+/=-]{0,200}\d))[A-Za-z0-9._~+/=-]{8,}",
    ),
    _rule(
        "cookie",
        "ookie",
        r"(?P<keep>(?:[Cc]ookie|COOKIE)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?:[\w.-]{1,64}=[^;\s\"'\\]{0,400};\s?){0,8}?"
        r"[\w.-]{0,40}(?i:sess|sid|auth|token|jwt|csrf|remember)[\w.-]{0,40}=)"
        r"(?!\[redacted:|\$|%|\{|<)(?=[^;\s\"'\\]{0,100}\d)[^;\s\"'\\]{12,4000}",
    ),
)


KEYS = tuple(key.rule() for key in _KEYS)
"""What is a key wherever it stands."""

RULES = (*KEYS, *_SHAPES)

_URL = _rule(  # not the ones of examples: too short, words alone, on this machine
    "url-password",
    "://",
    r"(?P<keep>://[^\s/:@\"'`<>\\]{0,200}:)(?=[^\s/@]{0,100}[0-9])(?=[^\s/@]{0,100}[A-Za-z])"
    r"[^\s/@\"'`<>\\$%{}*\[\]()]{12,400}(?=@(?!localhost|127\.|0\.0\.|(?:[\w-]{1,60}\.){0,4}example\b)[A-Za-z0-9])",
)
_MADE = (
    "sk-key sendgrid-key resend-key airtable-token dynatrace-token cloudflare-token terraform-token pypi-token"
    " azure-secret telegram-token discord-token mailchimp-key firebase-key webhook"
)
IN_FILES = (*KEYS, *(rule for rule in _SHAPES if rule.name in _MADE.split()), _URL)
"""What even a file of a project's own may be asked for: one is not there by chance, nor as an example."""
