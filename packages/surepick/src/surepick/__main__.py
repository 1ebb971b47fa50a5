"""`python -m surepick`: the same as the command `surepick`."""

from surepick.cli import main

if __name__ == "__main__":
    main()
