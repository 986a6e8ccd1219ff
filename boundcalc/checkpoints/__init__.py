"""From a checkpoint to certified norms, a setting and an a-posteriori bound.

Imports neither torch nor transformers.
"""

from boundcalc.checkpoints.audit import Audit as Audit
from boundcalc.checkpoints.audit import audit as audit
from boundcalc.checkpoints.errors import CheckpointError as CheckpointError
from boundcalc.checkpoints.families import FAMILIES as FAMILIES
from boundcalc.checkpoints.families import Options as Options
from boundcalc.checkpoints.readers import open_checkpoint as open_checkpoint
