"""``python -m dpgrams_core`` is the command line."""

from dpgrams_core.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
