"""Where a batch finds its runs: directories, globs, archives within archives, object stores."""
