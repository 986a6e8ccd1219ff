"""Tasks as data: laws of sequences and answers."""

from boundcalc.lab.train.tasks.arrays import ArraysTask as ArraysTask
from boundcalc.lab.train.tasks.base import TASKS as TASKS
from boundcalc.lab.train.tasks.base import Shape as Shape
from boundcalc.lab.train.tasks.base import Task as Task
from boundcalc.lab.train.tasks.base import task_from_json as task_from_json
from boundcalc.lab.train.tasks.base import task_names as task_names
from boundcalc.lab.train.tasks.boolean import BooleanTask as BooleanTask
from boundcalc.lab.train.tasks.latent import GaussianLinearTask as GaussianLinearTask
from boundcalc.lab.train.tasks.latent import MaskedTokenTask as MaskedTokenTask

for _kind in (BooleanTask, GaussianLinearTask, MaskedTokenTask, ArraysTask):
    TASKS.register(_kind)
