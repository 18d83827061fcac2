"""See `tests.torture.fleet.campaign`."""

from tests.torture.fleet.campaign import main

if __name__ == "__main__":
    main()
