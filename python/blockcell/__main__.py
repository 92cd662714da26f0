"""The command `blockcell`, also `python -m blockcell`."""

import sys


def main() -> None:
    """Runs the command line; says in one line what is missing if it cannot."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        sys.exit(
            f"blockcell: the command line needs the package {error.name}: "
            f"{sys.executable} -m pip install click rich"
        )
    from blockcell.cli import main

    main()


if __name__ == "__main__":
    main()
