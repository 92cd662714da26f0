"""Whether two kernels compute the same."""

from blockcell_tools.reference.inputs import scaled_error


class DisagreementError(Exception):
    """The two kernels do not compute the same."""


def compare(case, stock, ours):
    """Checks that two sets of outputs agree, and returns the scaled error of each output."""
    errors = {name: scaled_error(ours[name], want) for name, want in stock.items()}
    for name, error in errors.items():
        # Written so that NaN, which compares false, does not pass.
        if not error <= case.largest_error:
            raise DisagreementError(
                f"{case}: {name} differs by {error:.1e} of its largest element, allowed are "
                f"{case.largest_error:.1e}"
            )
    return errors
