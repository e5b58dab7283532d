"""The record in git: the journal of each session, its contracts, and the notes that stock git shows.

Promise: one ref a session, one writer a session; what was recorded is never rewritten, only added to.
"""
