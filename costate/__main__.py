"""python -m costate: the command line."""

from costate.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
