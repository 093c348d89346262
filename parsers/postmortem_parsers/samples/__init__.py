"""Memory samples: whatever tool took them, they become rows of `samples` (and of `marks` where a limit is stated)."""
