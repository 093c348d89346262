"""Recording a process as it runs: a directory that `analyze` understands, whatever way the process ends."""
