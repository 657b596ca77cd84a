"""``python -m priornet``: the command line."""

from priornet.cli import main

if __name__ == "__main__":
    main()
