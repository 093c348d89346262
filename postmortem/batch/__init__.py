"""Many runs: one worker's work, the pool or cluster that does it, and the tables that it leaves."""
