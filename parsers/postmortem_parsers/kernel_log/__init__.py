"""The Linux kernel's log: taking its dresses off, and reading its out-of-memory reports."""
