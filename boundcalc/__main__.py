"""`python -m boundcalc`."""

from boundcalc.cli import main

if __name__ == "__main__":
    main(prog_name="boundcalc")
