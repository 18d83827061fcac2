"""``python -m tests.torture.fleet``: the campaign of `tests.torture.fleet.campaign`."""

from tests.torture.fleet.campaign import main

if __name__ == "__main__":
    main()
