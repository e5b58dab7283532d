"""The run of a session: start an agent, watch it, pause it, hand over, start the next one, recover.

Promise: what a leg left is snapshotted and its whole process tree proven gone before anybody else may write there.
"""
