"""Tasks as data: a law of sequences and answers that knows its Bayes risk and its complexity."""

from boundcalc.learning.tasks.arrays import ArraysTask as ArraysTask
from boundcalc.learning.tasks.base import TASKS as TASKS
from boundcalc.learning.tasks.base import Complexity as Complexity
from boundcalc.learning.tasks.base import Risk as Risk
from boundcalc.learning.tasks.base import Shape as Shape
from boundcalc.learning.tasks.base import Task as Task
from boundcalc.learning.tasks.base import task_from_json as task_from_json
from boundcalc.learning.tasks.base import task_names as task_names
from boundcalc.learning.tasks.boolean import BooleanTask as BooleanTask
from boundcalc.learning.tasks.latent import GaussianLinearTask as GaussianLinearTask
from boundcalc.learning.tasks.latent import MaskedTokenTask as MaskedTokenTask
from boundcalc.learning.tasks.latent import MixtureTask as MixtureTask
