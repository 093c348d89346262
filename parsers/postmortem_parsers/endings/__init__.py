"""Words and blocks by which programs, shells, runtimes and userland OOM daemons say that something ended."""
