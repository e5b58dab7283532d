"""What the user may set for a run, with the defaults; `cli` reads it from `git config relay.*`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relay_git.agents.agent import Permission
from relay_git.contract.budget import DEFAULT
from relay_git.git.losses import MAX_FILE
from relay_git.quota.entry import Account
from relay_git.quota.policy import Rules


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in seconds.

    `grace`: how long a pause waits for the agent's next commit. `hard_limit`: how long it then waits for the end of a
    tool call before it interrupts one. `term_grace`: from TERM to KILL. `ack_timeout`: how long the next agent may
    take to show that it has picked the work up. `hang_timeout`: how long a leg may show no sign of life, 0 for ever.
    `max_wait`: how long a tool may wait by itself for its model before that counts as a limit, 0 for ever. `agents`:
    the user's order where `--then` is not given. `max_file`: how many bytes a file in a snapshot may have. `setup`: a
    shell command for each new worktree. `own_session`: whether an agent that follows itself goes on in its own
    session, with all of its conversation, instead of beginning anew on the brief. `rules`: when to hand over for want
    of quota. `budgets`: the share of each window that an account may be brought to. `proxy`: whether the limits are
    read by a proxy on loopback before the agent's service. `redact_allow`: patterns of what looks like a secret and is
    none. `contract_budget`: about how many tokens a brief may take. `ask`: whether an agent that is left before its
    wall is asked what the next one must know, `ask_timeout`: for how long.
    """

    grace: float = 120.0
    hard_limit: float = 60.0
    term_grace: float = 5.0
    ack_timeout: float = 300.0
    hang_timeout: float = 1800.0
    max_wait: float = 600.0
    agents: tuple[str, ...] = ()
    permissions: Mapping[str, Permission] = field(default_factory=dict)
    log_bytes: int = 32 << 20
    max_file: int = MAX_FILE
    setup: str = ""
    own_session: bool = True
    rules: Rules = field(default_factory=Rules)
    budgets: Mapping[Account, float] = field(default_factory=dict)
    proxy: bool = False
    redact_allow: tuple[str, ...] = ()
    contract_budget: int = DEFAULT
    ask: bool = True
    ask_timeout: float = 60.0

    def permission(self, agent: str) -> Permission:
        """How far this agent may reach; its own sandbox unless the user said otherwise."""
        return self.permissions.get(agent, Permission.SANDBOX)
