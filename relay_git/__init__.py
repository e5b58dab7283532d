"""git relay carries a coding task from one AI agent CLI to the next without losing what the first one knew."""

__version__ = "0.1.0"
