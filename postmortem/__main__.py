"""`python -m postmortem`, the same as the command."""

from postmortem.cli.app import main

if __name__ == "__main__":
    main()
