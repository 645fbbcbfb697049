"""Every testable sentence of the control paper."""

from functools import partial

from fewer.studies.claims import Claim, Records, Verdict
from fewer.systems.control.studies.claims.scores import SCORES
from fewer.systems.control.studies.claims.sizes import SIZES

__all__ = ["CLAIMS"]


def _never(why: str, records: Records) -> Verdict:
    return Verdict("untestable", why=why)


CLAIMS = (
    *SCORES,
    *SIZES,
    Claim("online-50", "Section 4", "Pruning during online training keeps performance up to 50 % only.", (),
          partial(_never, "a sentence about another paper; there is no online training here")),
    Claim("faster", "Sections 4 and 6", "With the right software a pruned network trains and infers faster.", (),
          partial(_never, "no study times it; `fewer bench sparse_training` and `fewer bench sparse` do, in RESULTS")),
)  # fmt: skip
