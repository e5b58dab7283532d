"""`python -m relay_git` is `git-relay`."""

from relay_git.cli import main

main()
