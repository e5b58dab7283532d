"""How faithful a contract is: recorded sessions, what is true of each, and how much of that a contract says."""
