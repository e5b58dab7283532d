"""Measurements on the real command, real git and the demo agent: `python -m bench [TOPIC...]`.

Promise: what is compared is measured in the same run, in turns, and nothing of the user's own is read or written.
"""
