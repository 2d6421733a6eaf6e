"""`python -m wayveil` runs the command line."""

from wayveil.cli.main import main

if __name__ == "__main__":
    main()
