"""The command line: ``python -m helpers fetch | run | compare | record | notebooks``."""

import argparse
import logging
import sys

from helpers.recording import ROOT, recording_mode

logging.getLogger("transformers").setLevel(logging.ERROR)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; errors that have a way out are one line, without a traceback."""
    parser = argparse.ArgumentParser(prog="python -m helpers")
    commands = parser.add_subparsers(required=True, metavar="command")
    fetch = commands.add_parser("fetch", help="download the weights that a profile needs")
    fetch.add_argument("profile", nargs="?", help="cpu (default), tiny or gpu")
    fetch.set_defaults(run=_fetch)
    for name, function, about in (
        ("run", _run, "compute everything that the notebooks show, with progress bars"),
        ("compare", _compare, "run notebooks 01 to 07 into build/ and print the tables"),
        ("record", _record, "make the last live run the recording in data/recorded"),
        ("notebooks", _notebooks, "run all notebooks and keep their outputs"),
    ):
        commands.add_parser(name, help=about).set_defaults(run=function)
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    except (RuntimeError, ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _fetch(options):
    from helpers.calibration import calibrate
    from helpers.models import fetch_profile
    from helpers.profiles import load_profile
    from helpers.weights import WEIGHTS

    profile = load_profile(options.profile)
    for line in fetch_profile(profile):
        print(line)
    for model in dict.fromkeys((profile.writer, profile.judge)):
        # Here and not at the first call: it takes a minute or two, and a fetch is waited for anyway.
        if model in WEIGHTS and (line := calibrate(model)):
            print(line)


def _run(options):
    from helpers.manifest import run_everything

    print(run_everything())


def _compare(options):
    from helpers.notebooks import run_main_job
    from helpers.report import comparison

    folder = ROOT / "build" / "compare"
    print(f"mode {recording_mode()}; notebooks and pictures go to build/compare")
    for line in run_main_job(folder):
        print(line, flush=True)
    print(comparison())
    print("pictures: build/compare/pictures")


def _record(options):
    from helpers.manifest import promote

    print(promote())


def _notebooks(options):
    from helpers.notebooks import refresh

    refresh()


if __name__ == "__main__":
    sys.exit(main())
