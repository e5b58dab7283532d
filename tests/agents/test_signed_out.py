"""By what each tool says that its login is refused, in its own words as they were seen, and what is none of that."""

from __future__ import annotations

import json

import pytest

from relay_git.agents import AGENTS
from relay_git.agents.agent import Ended
from relay_git.agents.signed_out import login_refused

OPENAI = (
    "Incorrect API key provided: sk-test. You can find your API key at https://platform.openai.com/account/api-keys."
)
CODEX = f"unexpected status 401 Unauthorized: {OPENAI}, url: https://api.openai.com/v1/responses"
GEMINI = '[API Error: {"error":{"code":401,"message":"Expected OAuth2 access token.","status":"UNAUTHENTICATED"}}]'
COPILOT = "Authentication failed with provider at http://127.0.0.1:40805/v1 (HTTP 401).\n  Check your COPILOT_TOKEN"
# What each prints last, as Claude Code 2.1.332, Codex 0.171.0, opencode, Gemini CLI, Qwen Code and Copilot CLI did.
LAST = {
    "claude": [
        {"type": "result", "is_error": True, "subtype": "success", "api_error_status": 401}
        | {"result": "Failed to authenticate. API Error: 401 OAuth token has expired. Please obtain a new token."}
    ],
    "codex": [{"type": "turn.failed", "error": {"message": CODEX}}],
    "opencode": [{"type": "error", "error": {"name": "APIError", "data": {"message": "no", "statusCode": 401}}}],
    "gemini": [{"type": "result", "status": "error", "error": {"message": GEMINI}}],
    "qwen": [{"type": "result", "is_error": True, "error": {"message": f"[API Error: 401 {OPENAI}]"}}],
    "copilot": [
        {"type": "session.error", "data": {"errorType": "authentication", "message": COPILOT, "statusCode": 401}},
        {"type": "result", "exitCode": 1},
    ],
}


@pytest.mark.parametrize("tool", LAST)
def test_what_each_tool_says_last_tells_that_its_login_is_refused(tool: str) -> None:
    heard = [one for record in LAST[tool] for one in AGENTS[tool].hear(json.dumps(record).encode())]
    assert heard
    assert all(isinstance(one, Ended) and not one.ok for one in heard)
    assert any(login_refused(one.detail) for one in heard if isinstance(one, Ended))


@pytest.mark.parametrize(
    "said",
    [
        "Failed to authenticate: OAuth session expired and could not be refreshed",
        "Invalid API key · Please run /login",
        "Your access token could not be refreshed because your refresh token was already used. Please log out and sign "
        "in again.",
        "Your access token could not be refreshed. Please log out and sign in again.",
        "API key not valid. Please pass a valid API key.",
        "litellm.AuthenticationError: OpenAIException - no",
        "invalid_grant",
    ],
)
def test_tokens_that_are_over_are_known(said: str) -> None:
    assert login_refused(said)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Your credit balance is too low",
        "status 403: your organization does not allow this model",
        "401 files changed",
        "error TS4010: no such name",
        "the session was ended by the user",
        "prompt is too long: 401000 tokens",
    ],
)
def test_other_failures_are_none(said: str) -> None:
    assert not login_refused(said)
