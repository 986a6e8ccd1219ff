"""From a checkpoint to certified norms, a setting, proxies and an a-posteriori bound.

Imports neither torch nor transformers.
"""

from boundcalc.weights.audit import Audit as Audit
from boundcalc.weights.audit import audit as audit
from boundcalc.weights.errors import CheckpointError as CheckpointError
from boundcalc.weights.families import FAMILIES as FAMILIES
from boundcalc.weights.families import Options as Options
from boundcalc.weights.readers import open_checkpoint as open_checkpoint
from boundcalc.weights.tasks import Want as Want
