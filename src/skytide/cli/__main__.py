"""`python -m skytide.cli` is the command `skytide`."""

from skytide.cli import main

main()
