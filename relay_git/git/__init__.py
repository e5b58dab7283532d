"""The only door to git: objects, refs, notes, worktrees, hooks, snapshot.

Promise: nothing here touches the user's main work tree, index, stash or other branches unless a function's name
says that it lands work there; every git that is started has a scrubbed environment.
"""
