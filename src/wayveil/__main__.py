"""`python -m wayveil` runs the command line."""

from wayveil.cli.main import console_script

if __name__ == "__main__":
    console_script()
