"""The budget: what is left of every account, when it runs dry, and what to do about it.

    readings, refusals -> history.record -> wallet.build -> forecast.of -> policy.decide

Promise: all but `history` is pure; nothing here starts a process, knows an agent's format, or reads a clock.
"""
